"""Shards of a cluster as tables: what tasks that know nothing of one another are given, and what they hand on.

    stage    by                what comes in                                         what goes out
    1        cluster, shard    REPLICAS rows of the shard, BROKERS, loads            `totals_of`: TOTALS rows
    2        cluster           TOTALS rows of all shards                             `summed`, or SQL: sum by the keys
    3        cluster, shard    as in 1, and the cluster's TOTALS                     `shard_tables`: ShardTables
    4        cluster           REPLICAS rows and loads of kept partitions, BROKERS,  `joined`: model, scope, candidates
                               SHARD_ROWS and rests of all shards, TOTALS

Rows of a shard must be sorted as those of a snapshot are: by topic, partition and position. Names of topics are looked
at nowhere but in the shard that has them: a request that names a topic which is nowhere fails in stage 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rebalance_lib.planner.candidates import Candidate
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope
    from rebalance_lib.topology import Snapshot

KEYS = ("broker", "log_dir", "replication_factor")
SUMS = (
    "replicas",
    "bytes",
    "size",
    "expected",
    "written",
    "leaders",
    "led_written",
    "led_read",
    "fixed_replicas",
    "fixed_bytes",
    "fixed_expected",
    "fixed_written",
    "offline",
    "snapshot_bytes",
    "unknown_sizes",
    "write_known",
    "read_known",
    "size_known",
)
TOTALS = pa.schema(
    [
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("log_dir", pa.string()),
        pa.field("replication_factor", pa.int32(), nullable=False),
        *(pa.field(name, pa.int64(), nullable=False) for name in SUMS),
    ]
)
"""What brokers hold: a row for each broker, log dir (null where it is not known) and replication factor.

All but the first three, `KEYS`, are `SUMS`, whole numbers that are added up over shards.
"""
SHARD_ROWS = pa.schema(
    [
        pa.field("candidate", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("brokers", pa.list_(pa.int32()), nullable=False),  # ids, the leader first
        pa.field("log_dirs", pa.list_(pa.string()), nullable=False),  # paths; null where it is not known
    ]
)
"""Where a candidate puts the replicas of a partition; only of partitions that it changes."""


@dataclass(frozen=True, eq=False)
class ShardInput:
    """Some partitions of a cluster: all its brokers, the replicas of these partitions alone, and their loads."""

    snapshot: Snapshot  # replicas sorted by topic, partition and position
    loads: pa.Table | None = None  # see `ClusterModel.with_loads`; None if nothing is known


@dataclass(frozen=True, eq=False)
class ShardTables:
    """What a shard hands on."""

    kept: pa.Table  # topic, partition: whose REPLICAS rows and loads the last stage needs; sorted as the shard's rows
    placements: pa.Table  # SHARD_ROWS
    rest: bytes  # what all other partitions of the shard add up to


@dataclass(frozen=True, eq=False)
class Joined:
    """A cluster planned in shards: the partitions that were kept, what all others add up to, and the plans."""

    model: ClusterModel  # of the kept partitions; its `rest` is that of all shards
    scope: Scope
    candidates: Sequence[Candidate]


def shard_of(topics: pa.ChunkedArray, partitions: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """By row: its shard, 0 up to ``count``; the same in every process. A topic is in one shard unless it is huge."""
    raise NotImplementedError


def totals_of(shard: ShardInput, request: Request) -> pa.Table:
    """What the rows of one shard add up to: TOTALS rows, to be summed over all shards of the cluster."""
    raise NotImplementedError


def summed(tables: Sequence[pa.Table]) -> pa.Table:
    """TOTALS rows of several shards added up, as ``SELECT keys, sum(...) GROUP BY keys`` does."""
    raise NotImplementedError


def shard_tables(shard: ShardInput, request: Request, totals: pa.Table, count: int) -> ShardTables:
    """Plan one shard of ``count``, for every candidate of the request.

    Args:
        shard: Its rows.
        request: As for the whole cluster; its ``shards`` are not looked at.
        totals: TOTALS of the whole cluster, a row for each key, in any order.
        count: How many shards there are.
    """
    raise NotImplementedError


def joined(
    kept: ShardInput, request: Request, totals: pa.Table, placements: pa.Table, rests: Sequence[bytes]
) -> Joined:
    """The plans of all shards put together, and what they left uneven evened out; see `shard_tables`.

    Args:
        kept: The rows of all partitions that the shards kept.
        request: As for the whole cluster.
        totals: TOTALS of the whole cluster.
        placements: The SHARD_ROWS of all shards, in any order.
        rests: What each shard added up, in any order.
    """
    raise NotImplementedError
