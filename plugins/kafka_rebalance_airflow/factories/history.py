"""The DAG that maintains the history and forecasts from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from kafka_rebalance_airflow.clusters import read_clusters
from kafka_rebalance_airflow.factories.steps import RETRY_DELAY
from kafka_rebalance_airflow.notifications import notify_of_failure
from kafka_rebalance_airflow.operators.history import CompactHistoryOperator, ForecastCapacityOperator
from kafka_rebalance_airflow.operators.plan import SnapshotTopologyOperator

DAILY = "30 1 * * *"  # UTC; a day counts as over an hour after midnight
DOC = """
### Daily maintenance of the history

A snapshot of each cluster says how large its disks are. From the history, `forecast_capacity` then says when log dirs,
brokers and clusters will be full: `capacity.txt`, `capacity.parquet` and `capacity.json` in the run's directory.
`compact_history` makes one file of each day that is over. Both run on Spark, one after the other, and
nothing is changed on any cluster.
"""


def history_dag(
    file: Path | None = None,
    dag_id: str = "kafka_history",
    *,
    schedule: str | None = DAILY,
    spark: Mapping[str, Any] | None = None,
    **dag_arguments: Any,
) -> DAG:
    """A DAG that compacts the history of all clusters, and forecasts when their disks are full.

    Args:
        file: The file of clusters, if the installation sets none.
        dag_id: Its id.
        schedule: When it runs; once a day is enough.
        spark: What the Spark jobs are given; goes before what the file says of all clusters. Each job is about all of
            them: what it says of single ones has no part in it.
        **dag_arguments: What else `airflow.sdk.DAG` takes.
    """
    known = read_clusters(file)
    clusters = known.connected()
    snapshots = [f"snapshot_{one.name}" for one in clusters]
    reached = f"ti.xcom_pull(task_ids={snapshots}) | select | map(attribute='%s') | list | tojson"
    with DAG(
        dag_id=dag_id,
        schedule=schedule,
        tags=["kafka", "snapshot"],
        **{
            "doc_md": DOC,
            "max_active_runs": 1,
            "max_active_tasks": 1,  # the forecast reads files that compaction removes
            "catchup": False,
            "is_paused_upon_creation": True,
            "on_failure_callback": notify_of_failure,
            **dag_arguments,
        },
    ) as dag:
        job: dict[str, Any] = {
            "spark": spark,
            "spark_by_connection": {"": known.spark},
            "retries": 1,
            "retry_delay": RETRY_DELAY,
        }
        forecast_capacity = ForecastCapacityOperator(
            task_id="forecast_capacity",
            clusters=len(clusters),
            run_uris=f"{{{{ {reached % 'run'} }}}}",
            cluster_ids=f"{{{{ {reached % 'cluster_id'} }}}}",
            trigger_rule="all_done_min_one_success",
            **job,
        )
        CompactHistoryOperator(task_id="compact_history", **job)  # alone: a task after it would hide that it failed
        for one in clusters:
            snapshot = SnapshotTopologyOperator(
                task_id=f"snapshot_{one.name}",
                kafka_conn_id=one.kafka_conn_id,
                subdirectory=one.name,
                restore=False,
                of_brokers={one.kafka_conn_id: one.of_brokers},
                retries=1,
                retry_delay=RETRY_DELAY,
            )
            snapshot >> forecast_capacity
    return dag
