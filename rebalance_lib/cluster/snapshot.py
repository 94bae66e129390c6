"""Look at a live cluster once, and write down what is there."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from rebalance_lib.cluster.client import Cluster
from rebalance_lib.cluster.offsets import Offsets
from rebalance_lib.cluster.values import LogDir, PartitionMetadata, Reassignment
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import BROKERS, REPLICAS, Snapshot, TopicPartition

MIN_INSYNC = "min.insync.replicas"
Holding = tuple[str, int]  # log dir and bytes of one replica on one broker


def take_snapshot(cluster: Cluster) -> Snapshot:
    """Brokers with racks and log dirs, and every replica with its size, leader, ISR, reassignment marks and offsets.

    Each replica also has its topic's ``min.insync.replicas``. Which log dirs are cordoned comes with their description,
    from Kafka 4.3 on.

    Sizes are the replica's own, from the log dirs of its broker; offsets are the leader's. Where a broker is down or
    does not answer, its replicas are there all the same, with no size, and what it leads has no offsets.
    """
    described = cluster.describe()
    moving = cluster.reassignments()
    partitions = cluster.partitions()
    brokers, held = _brokers(cluster, described["brokers"])
    offsets = cluster.offsets({tp: state.leader for tp, state in partitions.items() if state.leader is not None})
    return Snapshot(
        cluster_id=described["cluster_id"],
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        brokers=pa.Table.from_pylist(brokers, schema=BROKERS),
        replicas=_replicas(partitions, moving, held, offsets, _min_insync(cluster, partitions)),
    )


def _brokers(
    cluster: Cluster, entries: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[tuple[str, int, int], Holding]]:
    rows = []
    held: dict[tuple[str, int, int], Holding] = {}
    described: dict[int, list[LogDir]] = {}
    with suppress(ClusterError):
        described = cluster.describe_log_dirs(entry["broker_id"] for entry in entries if not entry.get("is_fenced"))
    for entry in sorted(entries, key=lambda e: int(e["broker_id"])):
        broker = entry["broker_id"]
        log_dirs = described.get(broker, [])
        for log_dir in log_dirs:
            for replica in log_dir.replicas:
                if not replica.future:
                    held[*replica.partition, broker] = (log_dir.path, replica.size)
        rows.append(
            {
                "broker": broker,
                "rack": entry["rack"],
                "host": entry["host"],
                "port": entry["port"],
                "alive": not entry.get("is_fenced"),
                "log_dirs": [
                    {
                        "path": one.path,
                        "total_bytes": one.total_bytes,
                        "usable_bytes": one.usable_bytes,
                        "cordoned": one.cordoned,
                    }
                    for one in log_dirs
                    if one.online
                ],
                "cordoned": _is_cordoned([one for one in log_dirs if one.online]),
            }
        )
    return rows, held


def _is_cordoned(log_dirs: list[LogDir]) -> bool | None:
    """Whether a broker is given no new partitions: all its log dirs are cordoned; None where it did not say."""
    if not log_dirs or any(one.cordoned is None for one in log_dirs):
        return None
    return all(one.cordoned for one in log_dirs)


def _min_insync(cluster: Cluster, partitions: dict[TopicPartition, PartitionMetadata]) -> dict[str, int]:
    """The topics' own least numbers of in-sync replicas; none where this user may not read settings."""
    with suppress(ClusterError):
        found = cluster.topic_configs({tp.topic for tp in partitions}, [MIN_INSYNC])
        return {topic: int(values[MIN_INSYNC].value) for topic, values in found.items() if MIN_INSYNC in values}
    return {}


def _replicas(
    partitions: dict[TopicPartition, PartitionMetadata],
    moving: dict[TopicPartition, Reassignment],
    held: dict[tuple[str, int, int], Holding],
    offsets: dict[TopicPartition, Offsets],
    min_insync: dict[str, int],
) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in REPLICAS.names}
    for tp, state in sorted(partitions.items()):
        reassignment = moving.get(tp)
        start_offset, end_offset = offsets.get(tp, (None, None))
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
                start_offset,
                end_offset,
                min_insync.get(tp.topic),
            )
            for name, value in zip(REPLICAS.names, row, strict=True):
                columns[name].append(value)
    return pa.table(columns, schema=REPLICAS)
