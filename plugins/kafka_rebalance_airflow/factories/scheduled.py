"""A DAG for each cluster that has a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from kafka_rebalance_airflow.assets import snapshot_asset
from kafka_rebalance_airflow.clusters import AFTER_SNAPSHOT, read_clusters
from kafka_rebalance_airflow.factories.rebalance import DOC, rebalance_dag

SCHEDULED_DOC = """
### Rebalance {name} on schedule

The DAG `kafka_rebalance` for one cluster, with the defaults of the file of clusters: it plans on schedule, does nothing
if the imbalance is under the thresholds (skipped, with the figures), and asks for a review otherwise, unless the plan
is within the limits of automatic approval. It can be triggered by hand too. Hours of a cron expression are UTC, unless
Airflow's `[core] default_timezone` is another zone.
"""


def scheduled_dags(file: Path | None = None, spark: Mapping[str, Any] | None = None) -> list[DAG]:
    """The DAGs ``kafka_rebalance_scheduled_NAME``, one for each cluster of the file with a schedule.

    One for a wrong entry is there too: runs of it may be under way. It has no schedule, and refuses new runs.

    Args:
        file: The file of clusters, if the installation sets none.
        spark: What their Spark jobs are given; goes before what the file says.

    Raises:
        ValueError: The file cannot be read.
    """
    return [
        rebalance_dag(
            f"kafka_rebalance_scheduled_{one.name}",
            defaults=one.fields,
            clusters=file,
            spark=spark,
            schedule=[snapshot_asset(one.name)] if one.schedule == AFTER_SNAPSHOT else one.schedule,
            tags=["scheduled", one.name],
            doc_md=(f"**{one.problem}**\n" if one.problem else "") + SCHEDULED_DOC.format(name=one.name) + DOC,
            problem=one.problem,
            is_paused_upon_creation=True,
            max_active_runs=1,
        )
        for one in read_clusters(file).clusters
        if one.schedule or one.problem
    ]
