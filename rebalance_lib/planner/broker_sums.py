"""What brokers hold, added up: all that shares, budgets and free space need of partitions that are not looked at.

A row for each broker, log dir (-1 where it is not known) and replication factor. Whatever is looked up is a sum over
rows, so that sums of several parts of a cluster are their rows one after another. All are whole numbers, in which the
order of adding up makes no difference: rates count in parts of a byte, see `RATE`.

What a partition leads counts at the log dir of its first replica.

Example: ``foo-0`` with 10 bytes on brokers 1 and 2, ``foo-1`` with 20 on broker 2 alone. Broker 1 has a row for factor
2 with 1 replica, 10 bytes and 1 leader; broker 2 one for factor 2 with 1 replica, 10 bytes and none, and one for factor
1 with 1 replica, 20 bytes and 1 leader.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.planner.compiled.sums import sums
from rebalance_lib.planner.resources import FOLLOWER_IN, LEADER_IN, LEADER_OUT, Resource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.topology import Snapshot

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

RATE = 1024  # parts of a byte per second, so that sums of rates are whole numbers too
KEYS = ("broker", "log_dir", "replication_factor")
OF_REPLICAS = ("replicas", "bytes", "size", "expected", "written")  # `size`: what a copy made now would occupy
OF_LEADERS = ("leaders", "led_written", "led_read")
OF_FIXED = ("fixed_replicas", "fixed_bytes", "fixed_expected", "fixed_written")  # replicas that may not move
FACTS = ("snapshot_bytes", "unknown_sizes", "write_known", "read_known", "size_known", "offline")
"""Of all brokers together, in any row: bytes and replicas without a size in the snapshot, partitions whose loads are
known, and partitions that are left alone because a replica of theirs is on a dead broker.
"""
SUMS = (*OF_REPLICAS, *OF_FIXED, *OF_LEADERS, *FACTS)
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


@dataclass(frozen=True, eq=False)
class BrokerSums:
    """Sums by broker, log dir and replication factor; brokers and log dirs are numbered as in a model."""

    broker: NDArray[np.int32]
    log_dir: NDArray[np.int32]
    factor: NDArray[np.int32]
    columns: Mapping[str, NDArray[Any]]  # by name of `SUMS`, a value for each row

    @classmethod
    def of(cls, model: ClusterModel, movable: NDArray[np.bool_], facts: Mapping[str, int] | None = None) -> BrokerSums:
        """All partitions of a model; `movable` is by partition, `facts` by name of `FACTS`."""
        partition, factors = model.slot_partition, int(model.replication_factor.max(initial=0)) + 1
        dirs = len(model.log_dirs.paths)
        place = np.where(model.log_dir >= 0, model.log_dir, dirs + model.broker).astype(np.int64)
        cells, row = np.unique(place * factors + model.replication_factor[partition], return_inverse=True)
        at = cells // factors
        owner = np.repeat(np.arange(model.brokers), np.diff(model.log_dirs.offsets))
        broker = np.append(owner, np.arange(model.brokers))[at]
        written = np.rint(RATE * model.written)
        expected = model.size if model.expected_size is None else model.expected_size
        of_slot = {
            "replicas": np.ones(len(row)),
            "bytes": model.bytes,
            "size": model.size[partition],
            "expected": expected[partition],
            "written": written[partition],
        }
        fixed = ~movable[partition]
        of_slot |= {f"fixed_{name}": np.where(fixed, of_slot[name], 0) for name in ("replicas", "bytes", "expected")}
        of_slot["fixed_written"] = np.where(fixed, of_slot["written"], 0)
        of_partition = {
            "leaders": np.ones(model.partitions),
            "led_written": written,
            "led_read": np.zeros(model.partitions) if model.read_rate is None else np.rint(RATE * model.read_rate),
        }
        first = row[model.offsets[:-1]] if len(row) else np.empty(0, np.int64)
        count = len(cells)
        columns = {name: _sum(row, values, count) for name, values in of_slot.items()}
        columns |= {name: _sum(first, values, count) for name, values in of_partition.items()}
        for name in FACTS:
            columns[name] = np.zeros(count, np.int64)
            columns[name][:1] = (facts or {}).get(name, 0)
        log_dir, factor = np.where(at < dirs, at, -1), cells % factors
        return cls(broker.astype(np.int32), log_dir.astype(np.int32), factor.astype(np.int32), columns)

    def __add__(self, other: BrokerSums) -> BrokerSums:
        broker, log_dir, factor = (
            np.concatenate([getattr(one, key) for one in (self, other)]) for key in ("broker", "log_dir", "factor")
        )
        columns = {name: np.concatenate([self.columns[name], other.columns[name]]) for name in SUMS}
        return BrokerSums(broker, log_dir, factor, columns)

    def __mul__(self, factor: float) -> BrokerSums:
        columns = {name: values * factor for name, values in self.columns.items()}
        return BrokerSums(self.broker, self.log_dir, self.factor, columns)

    def with_facts(self, facts: Mapping[str, int]) -> BrokerSums:
        """The same with these in place of its own."""
        more = {name: np.array([facts[name] - self.total(name) if name in facts else 0]) for name in SUMS}
        none = np.zeros(1, np.int32)
        return self + BrokerSums(none, none - 1, none, more)

    def at_horizon(self) -> BrokerSums:
        """The same with the sizes that are expected after the horizon."""
        expected, fixed = self.columns["expected"], self.columns["fixed_expected"]
        grown = {"bytes": expected, "size": expected, "fixed_bytes": fixed}
        return BrokerSums(self.broker, self.log_dir, self.factor, {**self.columns, **grown})

    def total(self, name: str) -> int:
        """A sum over all brokers."""
        return int(np.rint(self.columns[name].sum()))

    @property
    def partitions(self) -> float:
        """How many partitions there are: each has a first replica."""
        return float(self.columns["leaders"].sum())

    def whole_by_broker(self, name: str, brokers: int) -> Ints:
        """The same, exactly, of sums that are whole numbers."""
        return _sum(self.broker, self.columns[name], brokers)

    def by_broker(self, name: str, brokers: int) -> Floats:
        """A sum for each broker of the model."""
        return np.bincount(self.broker, self.columns[name], minlength=brokers).astype(np.float64, copy=False)

    def by_log_dir(self, name: str, log_dirs: int) -> Floats:
        """A sum for each log dir of the model, of replicas whose log dir is known."""
        known = self.log_dir >= 0
        return np.bincount(self.log_dir[known], self.columns[name][known], minlength=log_dirs).astype(np.float64)

    def load(self, model: ClusterModel, resource: Resource) -> Floats:
        """By broker: its load of a resource."""
        return np.bincount(self.broker, self._loads(model, resource), minlength=model.brokers).astype(np.float64)

    def fixed(self, resource: Resource, brokers: int) -> Floats:
        """By broker: what it holds of a resource that follows from where replicas are, in those that may not move."""
        name = {Resource.DISK: "fixed_bytes", Resource.REPLICAS: "fixed_replicas", Resource.NETWORK_IN: "fixed_written"}
        load = self.by_broker(name[resource], brokers)
        return load / RATE if resource is Resource.NETWORK_IN else load

    def by_factor(self, resource: Resource) -> Floats:
        """By replication factor: what one copy of all its partitions takes of a resource that replicas take."""
        name = {Resource.DISK: "size", Resource.REPLICAS: "replicas", Resource.NETWORK_IN: "written"}[resource]
        of_copy = self.columns[name] / np.maximum(1, self.factor)
        load = np.bincount(self.factor, of_copy).astype(np.float64)
        return load / RATE if resource is Resource.NETWORK_IN else load

    @cached_property
    def movable_factors(self) -> set[int]:
        """The replication factors of partitions that may move."""
        movable = np.bincount(self.factor, self.columns["replicas"] - self.columns["fixed_replicas"])
        return set(np.flatnonzero(movable > 0.5).tolist())  # half a replica is none: parts may be fractions

    def _loads(self, model: ClusterModel, resource: Resource) -> Floats:
        """By row: the load of a resource."""
        held = {Resource.DISK: "bytes", Resource.REPLICAS: "replicas", Resource.LEADERS: "leaders"}
        if resource in held:
            return np.asarray(self.columns[held[resource]], np.float64)
        written, led = self.columns["written"] / RATE, self.columns["led_written"] / RATE
        read = led if model.read_rate is None else self.columns["led_read"] / RATE
        sent = led * np.maximum(0, self.factor - 1) + read
        match resource:
            case Resource.NETWORK_IN:
                return written
            case Resource.NETWORK_OUT:
                return sent
            case _:
                return FOLLOWER_IN * written + (LEADER_IN - FOLLOWER_IN) * led + LEADER_OUT * sent

    def to_table(self, broker_ids: NDArray[np.int32], paths: Sequence[str]) -> pa.Table:
        """As TOTALS."""
        ids = pa.array(broker_ids[self.broker], pa.int32())
        named = pa.array(list(paths), pa.string()).take(pa.array(self.log_dir, mask=self.log_dir < 0))
        values = [pa.array(self.columns[name], pa.int64()) for name in SUMS]
        return pa.table([ids, named, pa.array(self.factor, pa.int32()), *values], schema=TOTALS)

    @classmethod
    def from_table(cls, table: pa.Table, model: ClusterModel) -> BrokerSums:
        """Read TOTALS for a model that has all their brokers."""
        table = table.sort_by([(key, "ascending") for key in KEYS])
        dirs, owner = model.log_dirs, np.repeat(model.broker_ids, np.diff(model.log_dirs.offsets)).tolist()
        place = {key: at for at, key in enumerate(zip(owner, dirs.paths, strict=True))}
        named = zip(table["broker"].to_pylist(), table["log_dir"].to_pylist(), strict=True)
        broker = np.searchsorted(model.broker_ids, table["broker"].to_numpy())
        log_dir = np.array([place.get(key, -1) for key in named], np.int32)
        columns = {name: table[name].to_numpy() for name in SUMS}
        return cls(broker.astype(np.int32), log_dir, table["replication_factor"].to_numpy(), columns)


@dataclass(frozen=True, eq=False)
class GivenLoads(BrokerSums):
    """Sums whose loads are given, whatever the columns add up to."""

    loads: Mapping[Resource, Floats]  # by resource and broker

    def load(self, _model: ClusterModel, resource: Resource) -> Floats:
        """By broker: its load of a resource."""
        return self.loads[resource].copy()


def facts_of(snapshot: Snapshot, loads: pa.Table | None) -> dict[str, int]:
    """What a summary says of a snapshot and its loads; how many partitions are offline is not among it."""
    sizes = snapshot.replicas["size_bytes"]
    known = dict.fromkeys(("write_known", "read_known", "size_known"), 0)
    if loads is not None:
        columns = zip(known, ("write_rate", "read_rate", "size_bytes"), strict=True)
        known = {name: len(loads) - loads[of].null_count if of in loads.column_names else 0 for name, of in columns}
    return {"snapshot_bytes": pc.sum(sizes).as_py() or 0, "unknown_sizes": sizes.null_count, **known}


def summed(tables: Sequence[pa.Table]) -> pa.Table:
    """TOTALS of several parts added up, as ``SELECT keys, sum(...) GROUP BY keys`` does."""
    grouped = pa.concat_tables(tables).group_by(list(KEYS)).aggregate([(name, "sum") for name in SUMS])
    ordered = grouped.rename_columns([name.removesuffix("_sum") for name in grouped.column_names])
    return ordered.select(TOTALS.names).cast(TOTALS).sort_by([(key, "ascending") for key in KEYS])


def _sum(row: NDArray[np.integer], values: NDArray[Any], count: int) -> Ints:
    """Whole numbers by row, exactly."""
    found: Ints = sums(row.astype(np.int32), values.astype(np.int64), count)
    return found
