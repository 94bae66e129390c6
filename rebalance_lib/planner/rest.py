"""What partitions add to a cluster that are not in its model: only their sums are known.

A cluster too large for one process is planned in shards, and only a sample of their partitions is brought together, see
``shards``. Loads, goals and figures of the whole cluster are then those of the model and of its rest:

    sums          what brokers hold, see ``broker_sums``
    inherited     what survivors lead and send once a broker or a rack has died, see ``goals.failover``
    topics        of wide topics, leaders and replicas by broker, see ``goals.topic_leaders``
    narrow        partitions that could be in more racks, see ``goals.racks``
    crowded       how far partitions are from a rack for each replica, see ``Outcome``
    matched       names and patterns of the request that match a topic
    changes       what a candidate changes of these partitions; nothing in the rest of the cluster as it is

Rests of several shards are added up.

Example: ``foo-0`` on brokers 1 and 2 and ``foo-1`` on 2 and 1; only the first is in the model. The rest has one leader
on broker 2, one replica on either, and that 1 inherits one leader if 2 dies. A candidate that puts ``foo-1`` of 10
bytes on 2 and 3 has a rest with a replica on 2 and on 3 instead, and as its changes one partition, one replica that
moves, 10 bytes that 3 receives and 2 sends.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_lib.planner.broker_sums import SUMS, BrokerSums
from rebalance_lib.planner.workspace import sum_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.outcome import Outcome

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


COUNTED = (
    "partitions_changed",
    "replicas_moved",
    "leaders_moved",
    "order_only",
    "bytes_moved",
    "log_dir_moves",
    "log_dir_bytes",
)
"""Figures of a plan that are sums over its partitions."""


@dataclass(frozen=True, eq=False)
class Changes:
    """What a plan does to some partitions, added up."""

    counts: Mapping[str, int] = field(default_factory=dict)  # by name of `COUNTED`, and in_fewer_racks
    flows: Mapping[str, Ints] = field(default_factory=dict)
    """Bytes that are copied: ``received`` by log dir, then by broker where that is not known; ``sent`` by broker, as
    the leader; ``within`` by broker, from one of its log dirs to another.
    """

    @classmethod
    def of(cls, outcome: Outcome) -> Changes:
        """Those of a plan, without what its rest adds."""
        model, layout = outcome.model, outcome.placement.layout
        figures, dirs = outcome.figures, len(model.log_dirs.paths)
        counts = {name: getattr(figures, name) for name in COUNTED} | {"in_fewer_racks": outcome.in_fewer_racks}
        comes, other_dir = outcome.arrivals, outcome.other_dir
        partition = outcome.partition_after[comes]
        copied, kept = outcome.placement.model.size[partition], outcome.bytes_after[other_dir]
        slots = np.r_[comes, other_dir]
        place = np.where(layout.log_dir[slots] >= 0, layout.log_dir[slots], dirs + layout.broker[slots])
        flows = {
            "received": sum_by(place, np.r_[copied, kept], dirs + model.brokers),
            "sent": sum_by(model.leader[partition], copied, model.brokers),
            "within": sum_by(layout.broker[other_dir], kept, model.brokers),
        }
        return cls(counts, flows)

    def __add__(self, other: Changes) -> Changes:
        counts = {name: self.count(name) + other.count(name) for name in {**self.counts, **other.counts}}
        flows = {**self.flows, **other.flows}
        flows |= {name: self.flows[name] + other.flows[name] for name in self.flows if name in other.flows}
        return Changes(counts, flows)

    def count(self, name: str) -> int:
        """A figure; 0 if nothing changes."""
        return self.counts.get(name, 0)


@dataclass(frozen=True, eq=False)
class Topics:
    """Leaders and replicas by topic and broker, of the topics that are counted."""

    names: list[str]
    leaders: NDArray[np.int32]  # by topic and broker
    replicas: NDArray[np.int32]

    def places_in(self, model: ClusterModel) -> Ints:
        """By topic: where it is among those of a model; behind its last if it is not there."""
        place = {name: number for number, name in enumerate(model.topics)}
        places = (place.get(name, len(place) + number) for number, name in enumerate(self.names))
        return np.fromiter(places, np.int64, len(self.names))

    def within(self, model: ClusterModel) -> tuple[Ints, Topics]:
        """Those that a model has partitions of, and where they are there."""
        places = self.places_in(model)
        known = np.flatnonzero(places < len(model.topics))
        named = [self.names[number] for number in known.tolist()]
        tables = (table.reshape(len(self.names), model.brokers)[known] for table in (self.leaders, self.replicas))
        return places[known], Topics(named, *tables)

    @classmethod
    def sum(cls, parts: Sequence[Topics]) -> Topics:
        """Several added up; a topic may be in more than one."""
        names = sorted({name for part in parts for name in part.names})
        row = {name: number for number, name in enumerate(names)}
        rows = np.array([row[name] for part in parts for name in part.names], np.int64)
        brokers = max((part.leaders.shape[1] for part in parts), default=0)
        leaders, replicas = (np.zeros((len(names), brokers), np.int32) for _ in range(2))
        if len(rows):
            np.add.at(leaders, rows, np.concatenate([part.leaders for part in parts if part.names]))
            np.add.at(replicas, rows, np.concatenate([part.replicas for part in parts if part.names]))
        return cls(names, leaders, replicas)


@dataclass(frozen=True, eq=False)
class Rest:
    """What partitions add that are not in a model."""

    sums: BrokerSums
    inherited: dict[str, Floats] = field(default_factory=dict)
    """By what dies, ``broker`` or ``rack``, and what is inherited: by group that dies and survivor."""
    topics: Topics = field(default_factory=lambda: Topics([], *(np.zeros((0, 0), np.int32) for _ in range(2))))
    narrow: int = 0
    crowded: int = 0
    matched: frozenset[str] = frozenset()
    changes: Changes = field(default_factory=Changes)

    def __add__(self, other: Rest) -> Rest:
        return Rest(
            self.sums + other.sums,
            {name: table + other.inherited[name] for name, table in self.inherited.items()},
            Topics.sum([self.topics, other.topics]),
            self.narrow + other.narrow,
            self.crowded + other.crowded,
            self.matched | other.matched,
            self.changes + other.changes,
        )

    @classmethod
    def sum(cls, parts: Iterable[Rest]) -> Rest:
        """Several added up, one after the other: tables of all pairs of brokers are large."""
        return reduce(Rest.__add__, parts)

    def at_horizon(self) -> Rest:
        """The same with the sizes that are expected after the horizon."""
        return replace(self, sums=self.sums.at_horizon())

    def to_bytes(self) -> bytes:
        """Packed, to be handed to another process; tables of which most is 0 take little."""
        sums, topics = self.sums, self.topics
        arrays: dict[str, Any] = {"broker": sums.broker, "log_dir": sums.log_dir, "factor": sums.factor}
        arrays |= {f"sum {name}": sums.columns[name] for name in SUMS}
        for name, table in self.inherited.items():
            cells = np.flatnonzero(table)
            arrays |= {f"shape {name}": np.array(table.shape), f"cells {name}": cells, f"at {name}": table.flat[cells]}
        arrays |= {"topics": np.array(topics.names, np.str_), "leaders": topics.leaders, "replicas": topics.replicas}
        arrays |= {"narrow": np.int64(self.narrow), "crowded": np.int64(self.crowded)}
        arrays["matched"] = np.array(sorted(self.matched), np.str_)
        arrays |= {f"count {name}": np.int64(count) for name, count in self.changes.counts.items()}
        arrays |= {f"flow {name}": table for name, table in self.changes.flows.items()}
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)
        return packed.getvalue()

    @classmethod
    def from_bytes(cls, packed: bytes) -> Rest:
        """What `to_bytes` gave."""
        arrays = np.load(io.BytesIO(packed))
        columns = {name: arrays[f"sum {name}"] for name in SUMS}
        sums = BrokerSums(arrays["broker"], arrays["log_dir"], arrays["factor"], columns)
        inherited = {}
        for name in (file.removeprefix("shape ") for file in arrays.files if file.startswith("shape ")):
            inherited[name] = np.zeros(arrays[f"shape {name}"])
            inherited[name].flat[arrays[f"cells {name}"]] = arrays[f"at {name}"]
        topics = Topics(arrays["topics"].tolist(), arrays["leaders"], arrays["replicas"])
        counts = int(arrays["narrow"]), int(arrays["crowded"])
        changed = {name[6:]: int(arrays[name]) for name in arrays.files if name.startswith("count ")}
        changes = Changes(changed, {name[5:]: arrays[name] for name in arrays.files if name.startswith("flow ")})
        return cls(sums, inherited, topics, *counts, frozenset(arrays["matched"].tolist()), changes)
