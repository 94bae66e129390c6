"""A snapshot as arrays: what the planner thinks in.

Brokers are numbered in the order of their ids, log dirs broker by broker, partitions in the order of the snapshot. The
replicas of all partitions follow one another in *slots*: those of partition p are ``offsets[p]`` up to
``offsets[p + 1]``, the first of them the preferred leader. A replica that is only being added has no slot.

What is not known: a replica without a size counts as its partition's largest known one, 0 if there is none. Racks count
only if all live brokers have one, as in Kafka. Capacities are those of `resources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_lib.planner.broker_sets import Sets
from rebalance_lib.planner.resources import CAPACITIES, Resource
from rebalance_lib.topology import Snapshot
from rebalance_lib.topology.texts import encode_texts

if TYPE_CHECKING:
    from rebalance_lib.planner.rest import Rest

NO_LIMIT = np.int64(1) << 62
_MOST_BYTES = float(1 << 61)


@dataclass(frozen=True, eq=False)
class LogDirs:
    """The log dirs of all brokers: those of broker b are offsets[b] up to offsets[b + 1]."""

    offsets: NDArray[np.int64]
    paths: list[str]
    total: NDArray[np.int64]  # NO_LIMIT where it is not known
    usable: NDArray[np.int64]
    cordoned: NDArray[np.bool_]  # given nothing; not, where the broker did not say


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """A cluster at one moment, in numbers."""

    snapshot: Snapshot
    broker_ids: NDArray[np.int32]
    alive: NDArray[np.bool_]
    rack: NDArray[np.int32]  # all 0 if racks do not count; -1 for a broker whose rack is not known
    rack_names: list[str]
    log_dirs: LogDirs
    topics: list[str]
    internal: NDArray[np.bool_]  # by topic
    topic: NDArray[np.int32]  # by partition, as the next three
    partition: NDArray[np.int32]
    size: NDArray[np.int64]
    moving: NDArray[np.bool_]  # is being reassigned now
    offsets: NDArray[np.int64]
    broker: NDArray[np.int32]  # by slot, as the next three
    bytes: NDArray[np.int64]
    log_dir: NDArray[np.int32]
    in_sync: NDArray[np.bool_]
    capacity: Mapping[Resource, NDArray[np.float64]] = field(default_factory=dict)  # by broker; NaN if not known
    write_rate: NDArray[np.float64] | None = None  # by partition, bytes per second, as the next
    read_rate: NDArray[np.float64] | None = None
    expected_size: NDArray[np.int64] | None = None  # by partition: what a replica will occupy after the horizon
    sets: Sets | None = None  # None if no broker is in a set
    rest: Rest | None = None  # what partitions beside those of the model add; None if there are no others

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self.size)

    @property
    def brokers(self) -> int:
        """How many brokers there are, dead ones included."""
        return len(self.broker_ids)

    @property
    def has_racks(self) -> bool:
        """Whether racks count."""
        return bool(self.rack_names)

    @cached_property
    def replication_factor(self) -> NDArray[np.int64]:
        """By partition."""
        return np.diff(self.offsets)

    @cached_property
    def leader(self) -> NDArray[np.int32]:
        """By partition: the broker of the preferred leader."""
        return self.broker[self.offsets[:-1]] if len(self.broker) else np.empty(0, np.int32)

    @cached_property
    def slot_partition(self) -> NDArray[np.int64]:
        """By slot: its partition."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.replication_factor)

    def name(self, p: int) -> str:
        """A partition as Kafka prints it."""
        return f"{self.topics[self.topic[p]]}-{self.partition[p]}"

    def indices(self, ids: list[int]) -> NDArray[np.int64]:
        """Where these brokers are in the model; all must be known."""
        return np.searchsorted(self.broker_ids, np.array(ids, np.int32))

    @classmethod
    def of(
        cls, snapshot: Snapshot, loads: pa.Table | None = None, held_bytes: Mapping[int, int] | None = None
    ) -> ClusterModel:
        """Read a snapshot.

        Args:
            snapshot: All brokers, and the replicas that the model is to have.
            loads: A row per partition, see `with_loads`.
            held_bytes: By id of each broker that holds replicas, where the snapshot does not have all of them.
        """
        rows = snapshot.replicas
        moving = pc.or_(rows["adding"], rows["removing"])
        if pc.any(rows["adding"]).as_py():
            keep = pc.invert(rows["adding"])
            busy = rows.filter(moving).select(["topic", "partition"])
            rows = rows.filter(keep)
        else:
            busy = rows.filter(moving).select(["topic", "partition"])
        topic_of_row, texts = encode_texts(rows["topic"])
        topics = texts.to_pylist()
        partition_of_row = rows["partition"].to_numpy()
        starts = _starts(topic_of_row, partition_of_row)
        offsets = np.append(starts, rows.num_rows).astype(np.int64)
        topic, partition = topic_of_row[starts].astype(np.int32), partition_of_row[starts].astype(np.int32)
        internal = np.zeros(len(topics), np.bool_)
        internal[topic_of_row[rows["internal"].to_numpy(zero_copy_only=False)]] = True

        holders = pc.unique(rows["broker"]).to_pylist() if held_bytes is None else held_bytes
        brokers = _with_unregistered(snapshot.brokers, holders).sort_by("broker")
        ids = brokers["broker"].to_numpy().astype(np.int32)
        alive = brokers["alive"].to_numpy(zero_copy_only=False)
        rack, rack_names = _racks(brokers["rack"].to_pylist(), alive)
        capacities = _given_capacities(brokers)
        broker = np.searchsorted(ids, rows["broker"].to_numpy()).astype(np.int32)
        size, held = _sizes(rows["size_bytes"], rows["leader"], offsets)
        listed = brokers["log_dirs"].to_pylist()
        used = np.bincount(broker, held, minlength=len(ids)).astype(np.float64)
        if held_bytes is not None:
            used = np.array([held_bytes.get(id_, 0) for id_ in ids.tolist()], np.float64)
        log_dirs = _log_dirs(listed, capacities, used)
        model = cls(
            snapshot=snapshot,
            broker_ids=ids,
            alive=alive,
            rack=rack,
            rack_names=rack_names,
            log_dirs=log_dirs,
            topics=topics,
            internal=internal,
            topic=topic,
            partition=partition,
            size=size,
            moving=_marked(topics, topic, partition, busy),
            offsets=offsets,
            broker=broker,
            bytes=held,
            log_dir=_slot_dirs(rows["log_dir"], broker, log_dirs, np.array([not of_broker for of_broker in listed])),
            in_sync=rows["in_sync"].to_numpy(zero_copy_only=False),
            capacity=_capacity(capacities, log_dirs),
            sets=Sets.of(brokers, snapshot.brokers["broker"].to_pylist(), topics, topic_of_row, broker),
        )
        return model if loads is None else model.with_loads(loads)

    def select(self, rows: NDArray[np.int64]) -> tuple[ClusterModel, NDArray[np.int64]]:
        """A model of these partitions alone, in this order, and where its slots are in this one."""
        lengths = self.replication_factor[rows]
        ends = np.cumsum(lengths)
        slots = np.repeat(self.offsets[rows] - (ends - lengths), lengths) + np.arange(lengths.sum())
        part = replace(
            self,
            topic=self.topic[rows],
            partition=self.partition[rows],
            size=self.size[rows],
            moving=self.moving[rows],
            offsets=np.r_[0, ends].astype(np.int64),
            broker=self.broker[slots],
            bytes=self.bytes[slots],
            log_dir=self.log_dir[slots],
            in_sync=self.in_sync[slots],
            write_rate=None if self.write_rate is None else self.write_rate[rows],
            read_rate=None if self.read_rate is None else self.read_rate[rows],
            expected_size=None if self.expected_size is None else self.expected_size[rows],
        )
        return part, slots

    @property
    def written(self) -> NDArray[np.float64]:
        """By partition: bytes per second that producers write; 0 where that is not known."""
        return np.zeros(self.partitions) if self.write_rate is None else self.write_rate

    @property
    def read(self) -> NDArray[np.float64]:
        """By partition: bytes per second that consumers read; where that is not known, what is written, once."""
        return self.written if self.read_rate is None else self.read_rate

    def with_loads(self, loads: pa.Table) -> ClusterModel:
        """The same with the loads of each partition; columns that are missing are not known, nulls count as 0.

        Args:
            loads: topic, partition, write_rate, read_rate (bytes per second), and size_bytes, what one replica will
                occupy after the horizon; where that is null, its size is taken to stay.
        """
        found = _find(self._keys, _keys(self.topics, loads))

        def values(name: str) -> NDArray[np.float64] | None:
            if name not in loads.column_names or loads[name].null_count == len(loads[name]):
                return None
            column = np.zeros(self.partitions)
            column[found[found >= 0]] = pc.fill_null(loads[name], 0).to_numpy()[found >= 0]
            return column

        expected: NDArray[np.int64] | None = None
        if (sizes := values("size_bytes")) is not None:
            known = found[(found >= 0) & pc.is_valid(loads["size_bytes"]).to_numpy(zero_copy_only=False)]
            stays = np.ones(self.partitions, np.bool_)
            stays[known] = False
            largest = _MOST_BYTES / max(1, len(self.broker))  # so that no sum of them overflows
            expected = np.where(stays, self.size, np.maximum(self.size, np.minimum(sizes, largest))).astype(np.int64)
        written, read = values("write_rate"), values("read_rate")
        return replace(self, write_rate=written, read_rate=read, expected_size=expected)

    def at_horizon(self) -> ClusterModel:
        """The same with the sizes that are expected after the horizon, and so much less space on disks."""
        if self.expected_size is None:
            return self
        held = self.expected_size[self.slot_partition]
        known = self.log_dir >= 0
        grown = np.bincount(self.log_dir[known], (held - self.bytes)[known], minlength=len(self.log_dirs.paths))
        dirs, rest = self.log_dirs, self.rest
        if rest is not None:
            before, after = (rest.sums.by_log_dir(name, len(dirs.paths)) for name in ("bytes", "expected"))
            grown, rest = grown + (after - before).astype(np.int64), rest.at_horizon()
        usable = np.where(dirs.usable < NO_LIMIT, dirs.usable - grown.astype(np.int64), NO_LIMIT)
        return replace(self, size=self.expected_size, bytes=held, log_dirs=replace(dirs, usable=usable), rest=rest)

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        return (self.topic.astype(np.int64) << 32) + self.partition


def _starts(topic: NDArray[np.int32], partition: NDArray[np.int32]) -> NDArray[np.int64]:
    if not len(topic):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.r_[True, (topic[1:] != topic[:-1]) | (partition[1:] != partition[:-1])])


def _keys(topics: list[str], table: pa.Table) -> NDArray[np.int64]:
    rank = pc.index_in(table["topic"], value_set=pa.array(topics, pa.string())).fill_null(-1)
    keys: NDArray[np.int64] = (rank.to_numpy().astype(np.int64) << 32) + table["partition"].to_numpy()
    return keys


def _find(known: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known[order], keys)
    place[place == len(known)] = 0
    found = order[place] if len(known) else np.full(len(keys), -1)
    return np.where(known[found] == keys, found, -1) if len(known) else found


def _marked(
    topics: list[str], topic: NDArray[np.int32], partition: NDArray[np.int32], table: pa.Table
) -> NDArray[np.bool_]:
    marks = np.zeros(len(topic), np.bool_)
    if table.num_rows:
        found = _find((topic.astype(np.int64) << 32) + partition, _keys(topics, table))
        marks[found[found >= 0]] = True
    return marks


def _with_unregistered(brokers: pa.Table, holders: Iterable[int]) -> pa.Table:
    """The registered brokers, and as dead ones those that hold replicas without being registered."""
    unregistered = sorted(set(holders) - set(brokers["broker"].to_pylist()))
    nobody: dict[str, Any] = {"rack": None, "host": "", "port": 0, "alive": False, "log_dirs": []}
    rows = [{"broker": b, **nobody} for b in unregistered]
    return pa.concat_tables([brokers, pa.Table.from_pylist(rows, schema=brokers.schema)])


def _racks(names: list[str | None], alive: NDArray[np.bool_]) -> tuple[NDArray[np.int32], list[str]]:
    if any(name is None for name, lives in zip(names, alive, strict=True) if lives):
        return np.zeros(len(names), np.int32), []
    known = sorted({name for name in names if name is not None})
    place = {name: number for number, name in enumerate(known)}
    return np.array([-1 if name is None else place[name] for name in names], np.int32), known


def _log_dirs(
    listed: list[list[dict[str, object]]], capacities: list[dict[str, Any]], held: NDArray[np.float64]
) -> LogDirs:
    """All log dirs; a broker of which only the capacity of its disk is known has one without a name."""
    listed = [
        of_broker
        if of_broker or not given.get("disk")
        else [{"path": "", "total_bytes": given["disk"], "usable_bytes": max(0, int(given["disk"] - used))}]
        for of_broker, given, used in zip(listed, capacities, held.tolist(), strict=True)
    ]
    every = [log_dir for of_broker in listed for log_dir in of_broker]
    known = [(d["total_bytes"], d["usable_bytes"]) for d in every]
    numbers = [(NO_LIMIT, NO_LIMIT) if total is None or usable is None else (total, usable) for total, usable in known]
    table = np.array(numbers, np.int64).reshape(-1, 2)
    offsets = np.r_[0, np.cumsum([len(of_broker) for of_broker in listed])].astype(np.int64)
    cordoned = np.array([d.get("cordoned") is True for d in every], np.bool_)
    return LogDirs(offsets, [str(d["path"]) for d in every], table[:, 0].copy(), table[:, 1].copy(), cordoned)


def _given_capacities(brokers: pa.Table) -> list[dict[str, Any]]:
    """By broker: the capacities that were given for it."""
    return [given or {} for given in brokers["capacity"].to_pylist()]


def _capacity(given: list[dict[str, Any]], log_dirs: LogDirs) -> dict[Resource, NDArray[np.float64]]:
    """By resource and broker: what was given, and for disks else the sum of the log dirs, if it is known of all."""
    capacity = {
        resource: np.array([one.get(resource) or np.nan for one in given], np.float64) for resource in CAPACITIES
    }
    owner = np.repeat(np.arange(len(given)), np.diff(log_dirs.offsets))
    total = np.bincount(owner, log_dirs.total.astype(np.float64), minlength=len(given))
    known = (total > 0) & (np.bincount(owner, log_dirs.total >= NO_LIMIT, minlength=len(given)) == 0)
    disk = capacity[Resource.DISK]
    capacity[Resource.DISK] = np.where(np.isnan(disk) & known, total, disk)
    return capacity


def _sizes(
    column: pa.ChunkedArray, leads: pa.ChunkedArray, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What a new replica of each partition will occupy, which is its leader's size, and what each replica does."""
    known = pc.fill_null(column, -1).to_numpy()
    if not len(known):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    largest = np.maximum(np.maximum.reduceat(known, offsets[:-1]), 0)
    size = largest.copy()
    partition = np.repeat(np.arange(len(size)), np.diff(offsets))
    leading = np.flatnonzero(leads.to_numpy(zero_copy_only=False) & (known >= 0))
    size[partition[leading]] = known[leading]
    return size, np.where(known >= 0, known, largest[partition])


def _slot_dirs(
    column: pa.ChunkedArray, broker: NDArray[np.int32], log_dirs: LogDirs, nameless: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """By slot: its log dir; -1 if that is not known."""
    first = np.where(nameless & (np.diff(log_dirs.offsets) > 0), log_dirs.offsets[:-1], -1).astype(np.int32)
    if column.null_count == len(column):
        return first[broker]
    encoded = column.combine_chunks().dictionary_encode()
    paths = encoded.dictionary.to_pylist()
    path = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    place = np.full((len(log_dirs.offsets) - 1, len(paths) + 1), -1, np.int32)
    rank = {name: number for number, name in enumerate(paths)}
    for b in range(len(log_dirs.offsets) - 1):
        for at in range(log_dirs.offsets[b], log_dirs.offsets[b + 1]):
            place[b, rank.get(log_dirs.paths[at], -1)] = at
    place[:, -1] = first
    return np.asarray(place[broker, path], np.int32)
