"""Disk space and budgets for the verifier, counted from the plan and the snapshot alone.

It is independent of any planner: sizes, log dirs and free bytes are read anew, and nothing of a planner's arrays is
used. The Spark job states the same rules once more, as SQL over the files that it wrote.

    log-dir-capacity   a log dir that is given replicas is, afterwards, no fuller than max fill
    broker-capacity    replicas for which no log dir is named fit, each in one and all of them together
    cordoned           no replica comes to a cordoned broker or log dir
    budget             no more bytes and replicas are copied, between brokers or within one, than allowed

A replica of unknown size counts as the largest of its partition; a copy is as large as the leader. What leaves frees
disk space, but only what is known to be on that log dir. A broker or log dir that did not say how large it is has no
limit. A plan may leave a log dir as full as it is.

Example: max fill is 0.9, a log dir of 100 bytes has 30 left: 20 more may come, or 25 if 5 go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import Lists, find_sorted, list_lengths, one_chunk, partition_keys
from rebalance_lib.plan.faults import ANY_LOG_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rebalance_lib.topology import Snapshot

_UNLIMITED = np.int64(1) << 62


class Breach(NamedTuple):
    """A limit that is not kept: its rule, the row of the plan where it is seen, and what is said."""

    rule: str
    row: int
    message: str


@dataclass(frozen=True, eq=False)
class Limits:
    """A snapshot's disks and replicas, and what a request allows."""

    max_fill: float
    byte_budget: int | None
    move_budget: int | None
    partitions: pa.Table  # topic and partition, each once, in their order
    brokers: Lists  # by partition: those that have its replicas
    bytes: NDArray[np.int64]  # by replica, as the next
    log_dir: NDArray[np.int64]  # where in `dirs`; -1 if not known
    copy: NDArray[np.int64]  # by partition: what a new replica of it occupies
    dirs: _Dirs

    @classmethod
    def of(
        cls, snapshot: Snapshot, max_fill: float, byte_budget: int | None = None, move_budget: int | None = None
    ) -> Limits:
        """Read sizes and log dirs."""
        rows = snapshot.replicas.filter(pc.invert(snapshot.replicas["adding"]))
        keys = partition_keys(rows)[0]
        if np.any(keys[1:] < keys[:-1]):
            order = np.argsort(keys, kind="stable")
            rows, keys = rows.take(pa.array(order)), keys[order]
        begins = np.flatnonzero(np.append([True] * min(1, len(keys)), keys[1:] != keys[:-1]))
        brokers = Lists(np.append(begins, len(keys)), rows["broker"].to_numpy().astype(np.int32))
        held, copy = _sizes(brokers, rows["size_bytes"], rows["leader"])
        dirs = _Dirs.of(snapshot.brokers, max_fill, np.unique(brokers.values), _sum(brokers.values, held))
        log_dir = dirs.find(brokers.values, rows["log_dir"])
        partitions = rows.select(["topic", "partition"]).take(pa.array(begins))
        return cls(max_fill, byte_budget, move_budget, partitions, brokers, held, log_dir, copy, dirs)

    def breaches(self, entries: pa.Table) -> Iterator[Breach]:
        """All limits that a plan's entries do not keep; partitions that the snapshot does not have weigh nothing."""
        moves = _Moves.of(self, entries)
        yield from self._over_budget(moves)
        yield from self._overfull(moves)
        yield from self._cordoned(moves)

    def _over_budget(self, moves: _Moves) -> Iterator[Breach]:
        copied = np.flatnonzero(moves.copied)
        for limit, used, unit in (
            (self.byte_budget, int(moves.bytes[copied].sum()), "bytes"),
            (self.move_budget, len(copied), "replicas"),
        ):
            if limit is not None and used > limit:
                row = int(moves.row[copied[0]])
                yield Breach("budget", row, f"the plan copies {used} {unit}, but the budget is {limit}")

    def _cordoned(self, moves: _Moves) -> Iterator[Breach]:
        dirs = self.dirs
        closed = np.append(dirs.cordoned, False)[moves.to_dir] | np.isin(moves.to_broker, dirs.closed_brokers)
        for at in np.flatnonzero(closed & moves.copied).tolist():
            where = dirs.paths[moves.to_dir[at]] if moves.to_dir[at] >= 0 else "each log dir"
            message = f"broker {moves.to_broker[at]} would be given a replica, but {where or 'its disk'} is cordoned"
            yield Breach("cordoned", int(moves.row[at]), message)

    def _overfull(self, moves: _Moves) -> Iterator[Breach]:
        dirs, count = self.dirs, len(self.dirs.free)
        known = moves.to_dir >= 0
        net = _sum(moves.to_dir[known], moves.bytes[known], count)
        leaves = moves.from_dir >= 0
        net -= _sum(moves.from_dir[leaves], moves.had[leaves], count)
        receives = np.bincount(moves.to_dir[known], minlength=count) > 0
        for at in np.flatnonzero(receives & (net > dirs.free)).tolist():
            row = int(moves.row[known][moves.to_dir[known] == at].min())
            path = dirs.paths[at] or "its disk"
            message = f"{path} of broker {dirs.owner[at]} would get {net[at]} bytes more than it gives, and may take "
            yield Breach("log-dir-capacity", row, f"{message}{max(0, dirs.free[at])}")
        yield from self._without_a_dir(moves, net)

    def _without_a_dir(self, moves: _Moves, net: NDArray[np.int64]) -> Iterator[Breach]:
        """Replicas for which the broker chooses the log dir: each must fit in one of them, all of them together too."""
        dirs = self.dirs
        free = np.where(dirs.free >= _UNLIMITED, _UNLIMITED, dirs.free - net)
        open_ = np.flatnonzero((moves.to_dir < 0) & (moves.to_broker >= 0) & moves.copied)
        for broker in np.unique(moves.to_broker[open_]).tolist():
            here = open_[moves.to_broker[open_] == broker]
            of_broker = free[(dirs.owner == broker) & ~dirs.cordoned]
            if not len(of_broker) or np.any(of_broker >= _UNLIMITED):
                continue
            wanted, largest = int(moves.bytes[here].sum()), int(moves.bytes[here].max())
            most, together = int(of_broker.max()), int(np.maximum(0, of_broker).sum())
            if largest > most or wanted > together:
                row = int(moves.row[here[np.argmax(moves.bytes[here])]])
                message = f"broker {broker} would get {wanted} bytes, the largest replica {largest}, and may take "
                yield Breach("broker-capacity", row, f"{message}{together}, {max(0, most)} of them in one log dir")


@dataclass(frozen=True, eq=False)
class _Dirs:
    """All log dirs: whose they are, how many bytes may come until they are as full as allowed, and if any may come."""

    owner: NDArray[np.int32]
    paths: list[str]
    free: NDArray[np.int64]
    cordoned: NDArray[np.bool_]
    closed_brokers: NDArray[np.int32]  # that are cordoned as a whole

    @classmethod
    def of(cls, brokers: pa.Table, max_fill: float, holders: NDArray[np.int32], held: NDArray[np.int64]) -> _Dirs:
        listed: list[tuple[int, str, int, bool]] = []
        closed = []
        for row in brokers.to_pylist():
            dirs = row["log_dirs"]
            if not dirs and (disk := (row["capacity"] or {}).get("disk")):
                at = np.flatnonzero(holders == row["broker"])
                used = int(held[at[0]]) if len(at) else 0
                dirs = [{"path": "", "total_bytes": disk, "usable_bytes": max(0, disk - used)}]
            for one in dirs:
                total, usable = one["total_bytes"], one["usable_bytes"]
                free = int(_UNLIMITED)
                if total is not None and usable is not None:
                    free = usable - int(np.ceil(np.float64(total) * (1 - max_fill)))
                listed.append((row["broker"], one["path"], free, one.get("cordoned") is True))
            if row.get("cordoned") or (dirs and all(one.get("cordoned") is True for one in dirs)):
                closed.append(row["broker"])
        listed.sort()
        return cls(
            np.array([one[0] for one in listed], np.int32),
            [one[1] for one in listed],
            np.array([one[2] for one in listed], np.int64),
            np.array([one[3] for one in listed], np.bool_),
            np.array(closed, np.int32),
        )

    def find(self, broker: NDArray[np.int32], path: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Where the log dirs are; where no path is given, the only one that a broker has; -1 for all others."""
        ids, first, count = np.unique(self.owner, return_index=True, return_counts=True)
        place = find_sorted(ids, broker)
        only = np.append(np.where(count == 1, first, -1), -1)[place]
        if path.null_count == len(path):
            return only
        names = pa.array([None, *sorted(set(self.paths))], pa.string())
        code = pc.index_in(path, value_set=names.slice(1)).fill_null(-1).to_numpy().astype(np.int64)
        own = np.array([names.to_pylist().index(one) - 1 for one in self.paths], np.int64)
        width = len(names)
        keys = self.owner.astype(np.int64) * width + own
        found = find_sorted(keys, np.where(code >= 0, broker.astype(np.int64) * width + code, -1))
        given = pc.is_valid(path).to_numpy(zero_copy_only=False)
        return np.where(given, found, only)


@dataclass(frozen=True, eq=False)
class _Moves:
    """A row for each replica that comes to a log dir, leaves one, or both; others are not there."""

    row: NDArray[np.int64]  # of the plan
    to_broker: NDArray[np.int64]  # -1 if it only leaves
    to_dir: NDArray[np.int64]
    from_dir: NDArray[np.int64]
    bytes: NDArray[np.int64]  # that come
    had: NDArray[np.int64]  # that leave
    copied: NDArray[np.bool_]

    @classmethod
    def of(cls, limits: Limits, entries: pa.Table) -> _Moves:
        wanted, known = partition_keys(entries, limits.partitions)
        partition = find_sorted(known, wanted)
        has = np.flatnonzero(partition >= 0)
        held = _slots(limits.brokers, partition, has)
        lengths, copy = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
        lengths[has], copy[has] = limits.brokers.lengths[partition[has]], limits.copy[partition[has]]
        before = Lists.from_lengths(lengths, limits.brokers.values[held])
        after = Lists.from_column(entries["replicas"])
        at = after.position_in(before)
        stays = at >= 0
        old = held[at] if len(held) else np.zeros(len(at), np.int64)
        named = _named(entries, len(after.values))
        target = limits.dirs.find(after.values, named)
        has_path = pc.is_valid(named).to_numpy(zero_copy_only=False)
        source = np.where(stays, limits.log_dir[old] if len(limits.log_dir) else -1, -1)
        shifts = stays & has_path & (target != source)
        comes = np.flatnonzero(~stays | shifts)
        size = np.where(stays, limits.bytes[old] if len(limits.bytes) else 0, copy[after.rows])
        kept = np.zeros(len(held), np.bool_)
        kept[at[stays]] = True
        gone = np.flatnonzero(~kept)
        goes = held[gone]
        none, zero = np.full(len(goes), -1, np.int64), np.zeros(len(goes), np.int64)
        return cls(
            np.r_[after.rows[comes], before.rows[gone]],
            np.r_[after.values[comes].astype(np.int64), none],
            np.r_[target[comes], none],
            np.r_[source[comes], limits.log_dir[goes]],
            np.r_[size[comes], zero],
            np.r_[np.where(stays, size, 0)[comes], limits.bytes[goes]],
            np.r_[np.ones(len(comes), np.bool_), np.zeros(len(goes), np.bool_)],
        )


def _named(entries: pa.Table, count: int) -> pa.Array:
    """By replica: the log dir that the plan names; null for any."""
    if "log_dirs" not in entries.column_names or entries["log_dirs"].null_count == entries.num_rows:
        return pa.nulls(count, pa.string())
    listed = one_chunk(entries["log_dirs"])
    given = np.repeat(listed.is_valid().to_numpy(zero_copy_only=False), list_lengths(one_chunk(entries["replicas"])))
    place = np.cumsum(given) - 1
    paths = listed.flatten().take(pa.array(np.where(given, place, 0), mask=~given))
    return pc.if_else(pc.equal(paths, ANY_LOG_DIR), pa.scalar(None, pa.string()), paths)


def _slots(lists: Lists, partition: NDArray[np.int64], has: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the replicas of these partitions are, one after another; the others have none."""
    begins, lengths = lists.offsets[partition[has]], lists.lengths[partition[has]]
    return np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())


def _sizes(
    brokers: Lists, column: pa.ChunkedArray, leads: pa.ChunkedArray
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By replica: what it occupies; by partition: what a new replica will."""
    size = pc.fill_null(column, -1).to_numpy().astype(np.int64)
    if not len(size):
        return size, size
    largest = np.maximum(0, np.maximum.reduceat(size, brokers.offsets[:-1]))
    copy = largest.copy()
    leader = one_chunk(leads).to_numpy(zero_copy_only=False) & (size >= 0)
    copy[brokers.rows[leader]] = size[leader]
    return np.where(size < 0, largest[brokers.rows], size), copy


def _sum(index: NDArray[np.integer], values: NDArray[np.int64], count: int = 0) -> NDArray[np.int64]:
    """Whole numbers summed by index, exactly; by distinct index if no count is given."""
    if not count:
        _, index = np.unique(index, return_inverse=True)
        count = int(index.max(initial=-1)) + 1
    found = np.zeros(count, np.int64)
    np.add.at(found, index, values)
    return found
