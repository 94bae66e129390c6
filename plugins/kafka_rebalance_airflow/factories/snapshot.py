"""The DAG that feeds the history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from kafka_rebalance_airflow.assets import snapshot_asset
from kafka_rebalance_airflow.clusters import read_clusters
from kafka_rebalance_airflow.factories.steps import RETRY_DELAY
from kafka_rebalance_airflow.notifications import notify_of_failure
from kafka_rebalance_airflow.operators.recording import RecordSnapshotOperator, TidyOperator

DOC = """
### Snapshots of all clusters

Every few minutes, a snapshot of each cluster is appended to the history, from which the planner learns what is written
to each partition. Each updates an asset, `kafka_snapshot_` with the cluster's name, on which a DAG can be scheduled.
Throttles that dead runs left are restored first. `tidy` thins out and drops old history, and drops old runs, as
the installation sets it.
"""


def snapshot_dag(file: Path | None = None, dag_id: str = "kafka_snapshot", **dag_arguments: Any) -> DAG:
    """A DAG that takes snapshots of all clusters of the file.

    Args:
        file: The file of clusters, if the installation sets none.
        dag_id: Its id.
        **dag_arguments: What else `airflow.sdk.DAG` takes.
    """
    known = read_clusters(file)
    with DAG(
        dag_id=dag_id,
        schedule=known.snapshots,
        tags=["kafka", "snapshot"],
        **{
            "doc_md": DOC,
            "max_active_runs": 1,
            "catchup": False,
            "is_paused_upon_creation": True,
            "on_failure_callback": notify_of_failure,
            **dag_arguments,
        },
    ) as dag:
        tidy = TidyOperator(task_id="tidy", retries=1, retry_delay=RETRY_DELAY).as_teardown()  # does not fail the run
        for one in known.connected():
            snapshot = RecordSnapshotOperator(
                task_id=f"snapshot_{one.name}",
                kafka_conn_id=one.kafka_conn_id,
                outlets=[snapshot_asset(one.name)],
                retries=1,
                retry_delay=RETRY_DELAY,
            )
            snapshot >> tidy
    return dag
