"""What DAGs can be scheduled on."""

from __future__ import annotations

from airflow.sdk import Asset


def snapshot_asset(cluster: str) -> Asset:
    """Updated whenever a snapshot of this cluster, by its name in the file of clusters, was added to the history."""
    return Asset(name=f"kafka_snapshot_{cluster}", uri=f"x-kafka-rebalance://snapshots/{cluster}", group="kafka")
