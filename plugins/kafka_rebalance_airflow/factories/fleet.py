"""The DAG that plans for all clusters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, chain

from kafka_rebalance_airflow.clusters import read_clusters
from kafka_rebalance_airflow.factories.steps import RETRY_DELAY, form_field
from kafka_rebalance_airflow.fields import request_params, settings_params
from kafka_rebalance_airflow.operators.fleet import FleetReportOperator
from kafka_rebalance_airflow.operators.form import CheckFormOperator
from kafka_rebalance_airflow.operators.plan import ComputePlacementOperator, SnapshotTopologyOperator

DOC = """
### Plan for all clusters

A dry run over all clusters of the file of clusters: a snapshot of each, one Spark job that plans for all of them, and
one report with how even each is, what its plan would move, how long that would take, and what may go wrong. Nothing is
changed. A cluster that cannot be reached does not keep the others from their plans.
"""


def fleet_dag(
    file: Path | None = None,
    dag_id: str = "kafka_fleet_plan",
    *,
    spark: Mapping[str, Any] | None = None,
    **dag_arguments: Any,
) -> DAG:
    """A DAG that plans for all clusters of the file, and changes nothing.

    Args:
        file: The file of clusters, if the installation sets none.
        dag_id: Its id.
        spark: What the Spark job is given; goes before what the file says of all clusters. One job is about all of
            them: what it says of single ones has no part in it.
        **dag_arguments: What else `airflow.sdk.DAG` takes.
    """
    known = read_clusters(file)
    clusters = known.connected()
    snapshots = [f"snapshot_{one.name}" for one in clusters]
    with DAG(
        dag_id=dag_id,
        schedule=None,
        params={**request_params(), **settings_params()},
        tags=["kafka", "rebalance"],
        **{"doc_md": DOC, "max_active_runs": 1, "is_paused_upon_creation": False, **dag_arguments},
    ) as dag:
        check_form = CheckFormOperator(task_id="check_form", retries=2, retry_delay=RETRY_DELAY)
        compute_placement = ComputePlacementOperator(
            task_id="compute_placement",
            run_uris=f"{{{{ ti.xcom_pull(task_ids={snapshots}) | select | map(attribute='run') | list | tojson }}}}",
            request=form_field("request"),
            pace=form_field("pace"),
            loads=form_field("loads"),
            spark=spark,
            spark_by_connection={"": known.spark},
            trigger_rule="all_done_min_one_success",
            retries=1,
            retry_delay=RETRY_DELAY,
        )
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
            chain(check_form, snapshot, compute_placement)
        report = FleetReportOperator(task_id="report", clusters=[one.name for one in clusters], trigger_rule="all_done")
        compute_placement >> report
    return dag
