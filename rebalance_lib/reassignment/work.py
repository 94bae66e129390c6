"""What a plan has to do, in arrays: the partitions that change, and for each the copies to make and to remove.

A *copy* is a new replica on another broker, or a replica that goes to another log dir of its broker. It is as large as
its source: the leader's replica (the largest one where the leader's size is not known), or itself. A replica that is
only being added when the snapshot is taken does not count, as everywhere.

Example: ``foo-0`` of 10 bytes goes from [1, 2] to [3, 2], and its replica on 2 to another log dir. That is one
partition with two copies of 10 bytes, to broker 3 and within broker 2, and with two removals: that of broker 1, and
that of the old log dir of broker 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.columns import Lists, find_sorted, list_lengths, one_chunk, partition_at
from rebalance_lib.reassignment.log_dirs import UNKNOWN, LogDirs, one_path_each
from rebalance_lib.topology.texts import encode_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rebalance_lib.plan import Plan
    from rebalance_lib.topology import Snapshot

ANY = "any"
NOBODY = -1


@dataclass(frozen=True, eq=False)
class Replicas:
    """The replicas of some partitions as they are: those of partition p are offsets[p] up to offsets[p + 1]."""

    brokers: Lists  # places among the broker ids
    size: NDArray[np.int64]  # -1 where it is not known
    log_dir: NDArray[np.int64]
    in_sync: NDArray[np.bool_]
    leads: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> Replicas:
        """Those of these partitions."""
        slots = Lists(self.brokers.offsets, np.arange(len(self.size), dtype=np.int32)).take(rows)
        at = slots.values
        brokers = Lists(slots.offsets, self.brokers.values[at])
        return Replicas(brokers, self.size[at], self.log_dir[at], self.in_sync[at], self.leads[at])


@dataclass(frozen=True, eq=False)
class Cluster:
    """What a snapshot says, read once for all plans that are for it; partitions are in the order of their names."""

    topics: pa.Array  # sorted
    keys: NDArray[np.int64]  # by partition: the place of its topic in the upper 32 bits, its number in the lower
    replicas: Replicas
    log_dirs: LogDirs
    alive: NDArray[np.bool_]
    write_rate: NDArray[np.float64]  # by partition; 0 where it is not known
    rates_known: bool

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        write_rates: pa.Table | None = None,
        other_bytes: Mapping[tuple[int, str | None], int] | None = None,
    ) -> Cluster:
        """Read a snapshot; ``write_rates`` has topic, partition and write_rate; other bytes are those of `LogDirs`."""
        table, log_dirs = snapshot.replicas, LogDirs.of(snapshot, other_bytes)
        topics = pa.array(sorted(encode_texts(table["topic"])[1].to_pylist()), pa.string())
        keys = _keys(table, topics)
        rows = np.flatnonzero(~table["adding"].to_numpy())
        position = table["position"].to_numpy()
        if not _in_order(keys[rows], position[rows]):
            rows = rows[np.lexsort((position[rows], keys[rows]))]
        starts = np.flatnonzero(np.diff(keys[rows], prepend=-1))
        names, lengths = keys[rows[starts]], np.diff(starts, append=len(rows))
        places = find_sorted(log_dirs.broker_ids, table["broker"].to_numpy()[rows]).astype(np.int32)
        replicas = Replicas(
            brokers=Lists.from_lengths(lengths, places),
            size=pc.fill_null(table["size_bytes"], -1).to_numpy()[rows],
            log_dir=log_dirs.of_replica[rows],
            in_sync=table["in_sync"].to_numpy()[rows],
            leads=table["leader"].to_numpy()[rows],
        )
        rate, known = np.zeros(len(names)), False
        if write_rates is not None:
            given = write_rates.filter(pc.is_valid(write_rates["write_rate"]))
            place, known = find_sorted(names, _keys(given, topics)), given.num_rows > 0
            rate[place[place >= 0]] = given["write_rate"].to_numpy()[place >= 0]
        return cls(topics, names, replicas, log_dirs, _alive(snapshot, log_dirs), rate, known)

    def rows_of(self, plan: Plan) -> NDArray[np.int64]:
        """The partition of each entry of a plan."""
        rows = find_sorted(self.keys, _keys(plan.entries, self.topics))
        if len(missing := np.flatnonzero(rows < 0)):
            where = partition_at(plan.entries, missing[0])
            others = f", nor are {len(missing) - 1} others" if len(missing) > 1 else ""
            raise InvalidInputError(
                f"{where} is in the plan but not in the snapshot{others}; take another, or leave it out of the plan"
            )
        return rows


def _in_order(keys: NDArray[np.int64], position: NDArray[np.int16]) -> bool:
    """Whether rows are sorted by partition and position, as snapshots are written."""
    later = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (position[1:] > position[:-1]))
    return bool(later.all())


def _keys(table: pa.Table, topics: pa.Array) -> NDArray[np.int64]:
    """By row: its partition as one number, which is negative for a topic that is none of these."""
    codes, texts = encode_texts(table["topic"])
    place = pc.fill_null(pc.index_in(texts, value_set=topics), -1).to_numpy().astype(np.int64)
    keys: NDArray[np.int64] = (place[codes] << 32) + table["partition"].to_numpy()
    return keys


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies to make, by partition, then in the order of the target; brokers are places among the broker ids."""

    partition: NDArray[np.int64]
    broker: NDArray[np.int64]
    log_dir: NDArray[np.int64]  # UNKNOWN where it is chosen when the copy begins
    size: NDArray[np.int64]
    within: NDArray[np.bool_]  # stays on its broker
    from_log_dir: NDArray[np.int64]  # for those within, where the old one is


@dataclass(frozen=True, eq=False)
class Work:
    """A plan beside the cluster that it is for."""

    entries: pa.Table  # of the partitions that change
    brokers: NDArray[np.int64]  # their ids
    alive: NDArray[np.bool_]
    log_dirs: LogDirs
    replicas: Replicas
    target: Lists
    leader: NDArray[np.int64]  # by partition: a place among the broker ids, or NOBODY
    size: NDArray[np.int64]  # of a new replica
    write_rate: NDArray[np.float64]
    rates_known: bool
    unknown_sizes: int
    copies: Copies
    leaving: NDArray[np.int64]  # replicas that end with the reassignment: places in `replicas`

    @property
    def partitions(self) -> int:
        """How many partitions change."""
        return int(self.entries.num_rows)

    @classmethod
    def of(cls, plan: Plan, cluster: Cluster) -> Work:
        """Set a plan beside the cluster that it is for.

        Raises:
            InvalidInputError: The plan names a partition or a broker that the snapshot does not have.
        """
        log_dirs, own = cluster.log_dirs, cluster.rows_of(plan)
        replicas = cluster.replicas.take(own)
        target = _target(plan, log_dirs)
        goes_to = _named_log_dirs(plan, log_dirs, target)
        place = target.position_in(replicas.brokers)
        stays = place >= 0
        within = stays & (goes_to != UNKNOWN) & (goes_to != np.where(stays, replicas.log_dir[place], UNKNOWN))
        changes = ~target.same_rows(replicas.brokers) | (target.count_by_row(within) > 0)
        changed = np.flatnonzero(changes)
        leaves = np.ones(len(replicas.size), np.bool_)
        leaves[place[stays]] = False
        size = _sizes(replicas)
        rows = target.rows
        copied = within | ~stays
        new = np.full(len(plan), -1, np.int64)
        new[changed] = np.arange(len(changed))
        copies = Copies(
            partition=new[rows[copied]],
            broker=target.values[copied].astype(np.int64),
            log_dir=goes_to[copied],
            size=np.where(within, np.maximum(replicas.size[place], 0), size[rows])[copied],
            within=within[copied],
            from_log_dir=np.where(within, replicas.log_dir[place], UNKNOWN)[copied],
        )
        entries, held, after = plan.entries, replicas, target
        if not changes.all():
            entries, held, after = entries.take(pa.array(changed)), held.take(changed), after.take(changed)
        return cls(
            entries=entries,
            brokers=log_dirs.broker_ids,
            alive=cluster.alive,
            log_dirs=log_dirs,
            replicas=held,
            target=after,
            leader=_leaders(held, cluster.alive),
            size=size[changed],
            write_rate=cluster.write_rate[own[changed]],
            rates_known=cluster.rates_known,
            unknown_sizes=int(np.count_nonzero(held.size < 0)),
            copies=copies,
            leaving=np.flatnonzero(leaves[changes[replicas.brokers.rows]]),
        )


def _target(plan: Plan, log_dirs: LogDirs) -> Lists:
    target = Lists.from_column(plan.entries["replicas"])
    place = find_sorted(log_dirs.broker_ids, target.values)
    if len(strange := np.flatnonzero(place < 0)):
        where = partition_at(plan.entries, target.rows[strange[0]])
        raise InvalidInputError(f"{where}: the cluster has no broker {target.values[strange[0]]}; use one that it has")
    return Lists(target.offsets, place.astype(np.int32))


def _named_log_dirs(plan: Plan, log_dirs: LogDirs, target: Lists) -> NDArray[np.int64]:
    """By replica of the target: the log dir that the plan names, or UNKNOWN."""
    column = one_chunk(plan.entries["log_dirs"])
    found = np.full(len(target.values), UNKNOWN, np.int64)
    if column.null_count == len(column):
        return found
    given = np.repeat(
        column.is_valid().to_numpy(zero_copy_only=False), list_lengths(one_chunk(plan.entries["replicas"]))
    )
    numbers, names = one_path_each(pa.chunked_array([column.flatten()]))
    keys = target.values[given].astype(np.int64) * len(names) + numbers
    pairs, which = np.unique(keys, return_inverse=True)
    of_pair = np.full(len(pairs), UNKNOWN, np.int64)
    for place, pair in enumerate(pairs.tolist()):
        broker, path = pair // len(names), names[pair % len(names)]
        if path is None or path == ANY:
            continue
        number = log_dirs.named.get((broker, path))
        if number is None and len(log_dirs.paths) and _lists_some(log_dirs, broker):
            id_ = log_dirs.broker_ids[broker]
            raise InvalidInputError(f"broker {id_} has no log dir {path}; use one that the snapshot lists, or any")
        of_pair[place] = UNKNOWN if number is None else number
    found[given] = of_pair[which]
    return found


def _lists_some(log_dirs: LogDirs, broker: int) -> bool:
    return any(path is not None for path in log_dirs.paths[log_dirs.first[broker] : log_dirs.first[broker + 1]])


def _sizes(replicas: Replicas) -> NDArray[np.int64]:
    """What a new replica of each partition is to copy."""
    offsets = replicas.brokers.offsets
    if not len(replicas.size):
        return np.zeros(len(offsets) - 1, np.int64)
    size = np.maximum(np.maximum.reduceat(replicas.size, offsets[:-1]), 0)
    known = replicas.leads & (replicas.size >= 0)
    size[replicas.brokers.rows[known]] = replicas.size[known]
    return size


def _leaders(replicas: Replicas, alive: NDArray[np.bool_]) -> NDArray[np.int64]:
    leader = np.full(len(replicas.brokers.offsets) - 1, NOBODY, np.int64)
    able = replicas.leads & alive[replicas.brokers.values]
    leader[replicas.brokers.rows[able]] = replicas.brokers.values[able]
    return leader


def _alive(snapshot: Snapshot, log_dirs: LogDirs) -> NDArray[np.bool_]:
    living = snapshot.brokers.filter(snapshot.brokers["alive"])["broker"].to_numpy()
    return np.isin(log_dirs.broker_ids, living)
