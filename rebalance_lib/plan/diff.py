"""What a plan changes: the assignment before against the one after, partition by partition.

The partitions looked at are those that ``after`` names; ``before`` may be the whole cluster. For each that
changes:

    adding, removing   brokers that gain a replica, in the order of the target; brokers that lose theirs
    leader_moved       the first replica, which is the preferred leader, is another one
    order_only         the same brokers in another order: no data moves
    moving_log_dirs    brokers that keep the replica but shall hold it in another log dir
    bytes_moved        what goes over the network: the partition's size for each replica that is added
    bytes_between_log_dirs   what is copied within brokers: the replica's size for each of moving_log_dirs

A log dir of the target counts as moved unless ``before`` is known to have the replica there; ``any`` never
does.

Sizes come as a mapping from partition to bytes, or as a table with the columns topic, partition,
size_bytes. If the table has a column ``broker`` too, it has one row for each replica: then an added replica
copies what the preferred leader before has (the largest replica, if the leader's size is not known), and a
log dir move copies the replica's own size.

Example: ``foo-0`` goes from ``[1, 2, 3]`` to ``[4, 2, 3]`` and ``foo-1`` from ``[2, 3]`` to ``[3, 2]``,
each of 10 bytes. Two partitions change, one replica and 10 bytes move, both leaders move, and ``foo-1``
changes its order only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.columns import (
    Lists,
    find_sorted,
    list_lengths,
    one_chunk,
    partition_at,
    partition_keys,
)
from rebalance_lib.plan.faults import ANY_LOG_DIR
from rebalance_lib.plan.sizes import Sizes
from rebalance_lib.topology import TopicPartition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.plan.plan import Plan

SizeSource: TypeAlias = Mapping[TopicPartition, int] | pa.Table

_FIELDS: list[pa.Field[Any]] = [
    pa.field("topic", pa.string(), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("before", pa.list_(pa.int32()), nullable=False),
    pa.field("after", pa.list_(pa.int32()), nullable=False),
    pa.field("adding", pa.list_(pa.int32()), nullable=False),
    pa.field("removing", pa.list_(pa.int32()), nullable=False),
    pa.field("leader_moved", pa.bool_(), nullable=False),
    pa.field("order_only", pa.bool_(), nullable=False),
    pa.field("moving_log_dirs", pa.list_(pa.int32()), nullable=False),
    pa.field("bytes_moved", pa.int64()),
    pa.field("bytes_between_log_dirs", pa.int64()),
]
DIFF_SCHEMA = pa.schema(_FIELDS)
LARGEST_MOVES = 10  # partitions that a summary names, those that copy the most


@dataclass(frozen=True)
class PlanDiff:
    """The partitions that change, in order, and what it adds up to; bytes are None without sizes."""

    changes: pa.Table
    partitions_changed: int
    replicas_moved: int
    replicas_removed: int
    leaders_moved: int
    order_only: int
    log_dir_moves: int
    bytes_moved: int | None
    bytes_between_log_dirs: int | None

    def __bool__(self) -> bool:
        return self.partitions_changed > 0


def diff(before: Plan, after: Plan, sizes: SizeSource | None = None) -> PlanDiff:
    """What changes from one assignment to the other.

    Raises InvalidInputError for a partition of ``after`` that ``before`` lacks, and for one that moves data
    and that ``sizes`` lacks.
    """
    prior, target, moving = changed_entries(before, after)
    old, new = Lists.from_column(prior["replicas"]), Lists.from_column(target["replicas"])
    adding, removing = new.where(~new.contained_in(old)), old.where(~old.contained_in(new))
    leader_moved = new.values[new.offsets[:-1]] != old.values[old.offsets[:-1]]
    order_only = (adding.lengths == 0) & (removing.lengths == 0) & ~old.same_rows(new)
    bytes_moved, bytes_between = _bytes(sizes, prior, target, adding, moving)
    columns = [
        target["topic"],
        target["partition"],
        prior["replicas"],
        target["replicas"],
        adding.to_arrow(),
        removing.to_arrow(),
        pa.array(leader_moved),
        pa.array(order_only),
        moving.to_arrow(),
        bytes_moved,
        bytes_between,
    ]
    return PlanDiff(
        changes=pa.table(columns, schema=DIFF_SCHEMA),
        partitions_changed=target.num_rows,
        replicas_moved=len(adding.values),
        replicas_removed=len(removing.values),
        leaders_moved=int(leader_moved.sum()),
        order_only=int(order_only.sum()),
        log_dir_moves=len(moving.values),
        bytes_moved=None if sizes is None else pc.sum(bytes_moved, min_count=0).as_py(),
        bytes_between_log_dirs=None if sizes is None else pc.sum(bytes_between, min_count=0).as_py(),
    )


def changed_entries(before: Plan, after: Plan) -> tuple[pa.Table, pa.Table, Lists]:
    """The entries before and after of what changes, and the brokers where only the log dir does."""
    prior = before.entries.take(_rows_in(before, after))
    old, new = Lists.from_column(prior["replicas"]), Lists.from_column(after.entries["replicas"])
    moving = _moving_log_dirs(prior, after.entries, old, new)
    changed = np.flatnonzero(~old.same_rows(new) | (new.count_by_row(moving) > 0))
    return prior.take(changed), after.entries.take(changed), new.where(moving).take(changed)


def _rows_in(before: Plan, plan: Plan) -> NDArray[np.int64]:
    """The row of ``before`` for each partition of the plan; raises InvalidInputError if it has none."""
    keys, known = partition_keys(plan.entries, before.entries)
    rows = find_sorted(known, keys)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        partition = partition_at(plan.entries, missing[0])
        others = f", nor are {len(missing) - 1} others" if len(missing) > 1 else ""
        message = f"{partition} is in the plan but not in the assignment before it{others}"
        raise InvalidInputError(f"{message}; read the assignment again, or leave it out of the plan")
    return rows


def _bytes(
    source: SizeSource | None, prior: pa.Table, target: pa.Table, adding: Lists, moving: Lists
) -> tuple[Any, Any]:
    if source is None:
        unknown = pa.nulls(target.num_rows, pa.int64())
        return unknown, unknown
    sizes = Sizes.from_source(source)
    added, within = sizes.bytes_added(prior, adding), sizes.bytes_within_brokers(target, moving)
    return pa.array(added, pa.int64()), pa.array(within, pa.int64())


def _moving_log_dirs(prior: pa.Table, target: pa.Table, old: Lists, new: Lists) -> NDArray[np.bool_]:
    """For each replica of the target, whether it stays on its broker and goes to another log dir there."""
    if target["log_dirs"].null_count == target.num_rows:
        return np.zeros(len(new.values), dtype=np.bool_)
    codes_before, codes_after = _log_dir_codes(prior, target)
    place = new.position_in(old)
    stays = place >= 0
    moves: NDArray[np.bool_] = stays & (codes_after >= 0) & (codes_after != np.where(stays, codes_before[place], -1))
    return moves


def _log_dir_codes(*tables: pa.Table) -> list[NDArray[np.int64]]:
    """A number for the log dir of each replica, the same in all tables; -1 for ``any`` or none."""
    named = [_log_dir_of_replicas(table) for table in tables]
    encoded = pa.chunked_array(named, pa.string()).combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.split(codes, np.cumsum([len(column) for column in named])[:-1])


def _log_dir_of_replicas(table: pa.Table) -> Any:
    log_dirs, replicas = one_chunk(table["log_dirs"]), list_lengths(one_chunk(table["replicas"]))
    given = np.repeat(log_dirs.is_valid().to_numpy(zero_copy_only=False), replicas)
    place = np.where(given, np.cumsum(given) - 1, -1)
    flat = log_dirs.flatten()
    named = pc.if_else(pc.equal(flat, pa.scalar(ANY_LOG_DIR)), pa.scalar(None, pa.string()), flat)
    return named.take(pa.array(place, mask=place < 0))
