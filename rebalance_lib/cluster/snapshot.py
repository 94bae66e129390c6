"""Look at a live cluster once, and write down what is there."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from rebalance_lib.cluster.client import Cluster, PartitionState, Reassignment
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import BROKERS, REPLICAS, Snapshot, TopicPartition

Holding = tuple[str, int]  # log dir and bytes of one replica on one broker


def take_snapshot(cluster: Cluster) -> Snapshot:
    """Brokers with racks and log dirs, and every replica with its size, leader, ISR and reassignment marks.

    Sizes are the replica's own, from the log dirs of its broker. Where a broker is down or does not answer, its
    replicas are there all the same, with no size.
    """
    described = cluster.describe()
    moving = cluster.reassignments()
    partitions = cluster.partitions()
    brokers, held = _brokers(cluster, described["brokers"])
    return Snapshot(
        cluster_id=described["cluster_id"],
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        brokers=pa.Table.from_pylist(brokers, schema=BROKERS),
        replicas=_replicas(partitions, moving, held),
    )


def _brokers(
    cluster: Cluster, entries: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[tuple[str, int, int], Holding]]:
    rows = []
    held: dict[tuple[str, int, int], Holding] = {}
    for entry in sorted(entries, key=lambda e: int(e["broker_id"])):
        broker = entry["broker_id"]
        log_dirs = []
        alive = not entry.get("is_fenced")
        if alive:
            with suppress(ClusterError):
                log_dirs = cluster.log_dirs(broker)
        for log_dir in log_dirs:
            for topic in log_dir["topics"]:
                for part in topic["partitions"]:
                    if not part["is_future_key"]:
                        key = (topic["name"], part["partition_index"], broker)
                        held[key] = (log_dir["log_dir"], part["partition_size"])
        rows.append(
            {
                "broker": broker,
                "rack": entry["rack"],
                "host": entry["host"],
                "port": entry["port"],
                "alive": alive,
                "log_dirs": [
                    {"path": d["log_dir"], "total_bytes": d["total_bytes"], "usable_bytes": d["usable_bytes"]}
                    for d in log_dirs
                    if d["error_code"] == 0
                ],
            }
        )
    return rows, held


def _replicas(
    partitions: dict[TopicPartition, PartitionState],
    moving: dict[TopicPartition, Reassignment],
    held: dict[tuple[str, int, int], Holding],
) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in REPLICAS.names}
    for tp, state in sorted(partitions.items()):
        reassignment = moving.get(tp)
        for position, broker in enumerate(state.replicas):
            log_dir, size = held.get((tp.topic, tp.partition, broker), (None, None))
            row = (
                tp.topic,
                tp.partition,
                position,
                broker,
                broker == state.leader,
                broker in state.in_sync,
                reassignment is not None and broker in reassignment.adding,
                reassignment is not None and broker in reassignment.removing,
                state.internal,
                size,
                log_dir,
            )
            for name, value in zip(REPLICAS.names, row, strict=True):
                columns[name].append(value)
    return pa.table(columns, schema=REPLICAS)
