"""The arrays that one planning run changes: a model's slots and brokers, as the kernel takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_lib.planner.compiled.compare import leader_to_front
from rebalance_lib.planner.compiled.moves import BROKER, PARTITION, SLOT
from rebalance_lib.planner.compiled.sums import fill, held_by_topic, sums
from rebalance_lib.planner.model import NO_LIMIT, ClusterModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

_CELLS = 8_000_000  # of topics times brokers whose spread is watched, the largest topics first
_LEAST_REPLICAS = 4  # a topic with fewer replicas has no spread worth watching


@dataclass(frozen=True, eq=False)
class Layout:
    """Where replicas are or shall be: slots as in the model, -1 where a broker is still to be found."""

    offsets: NDArray[np.int64]
    broker: NDArray[np.int32]
    bytes: NDArray[np.int64]
    log_dir: NDArray[np.int32]

    @classmethod
    def of(cls, model: ClusterModel) -> Layout:
        """The replicas as they are."""
        return cls(model.offsets, model.broker, model.bytes, model.log_dir)

    def is_like(self, other: Layout) -> bool:
        """Whether every replica is in the same place, in the same order."""
        return np.array_equal(self.broker, other.broker) and np.array_equal(self.log_dir, other.log_dir)


@dataclass(frozen=True, eq=False)
class Workspace:
    """A layout being changed, under a scope."""

    model: ClusterModel
    scope: Scope
    request: Request
    partitions: NDArray[np.void]  # records, see kernel
    slots: NDArray[np.void]
    brokers: NDArray[np.void]  # with one more behind the last
    free: NDArray[np.int64]  # by log dir: bytes until its limit
    held: NDArray[np.int32]  # by watched topic and broker: replicas
    left: NDArray[np.int64]  # bytes and replicas that may still move

    @classmethod
    def of(
        cls, model: ClusterModel, scope: Scope, request: Request, layout: Layout, leader: NDArray[np.int32]
    ) -> Workspace:
        """Copies of all that the kernel will change; `leader` is who leads at the start."""
        row, limit, held = _watched(model, scope, layout)
        partitions, slots = np.empty(model.partitions + 1, PARTITION), np.empty(len(layout.broker), SLOT)
        brokers = np.zeros(model.brokers + 1, BROKER)
        brokers["first_dir"] = model.log_dirs.offsets
        for name in ("takes", "gives", "leaves"):
            brokers[name][:-1] = getattr(scope, name)
        brokers["rack"][:-1] = model.rack
        of_partitions = (layout.offsets, model.size, row, limit, leader, scope.movable)
        fill(partitions, slots, brokers, *of_partitions, layout.broker, layout.bytes, layout.log_dir)
        limits = (request.byte_budget, request.move_budget)
        left = np.array([NO_LIMIT if number is None else number for number in limits], np.int64)
        free = free_bytes(model, request.max_fill)
        if layout.log_dir is not model.log_dir:
            free += held_by_dir(model) - held_by_dir(model, layout)
        return cls(model, scope, request, partitions, slots, brokers, free, held, left)

    def resumed(self, layout: Layout, leader: NDArray[np.int32]) -> Workspace:
        """The same, as if the cluster were laid out like this; what depends on sizes alone is not worked out again."""
        work = Workspace.of(self.model, self.scope, self.request, layout, leader)
        work.__dict__["order"] = self.order
        return work

    @property
    def racks(self) -> int:
        """How many racks count; one if they do not."""
        return max(1, len(self.model.rack_names))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What every part of the kernel begins its arguments with."""
        return self.partitions, self.slots, self.brokers, self.free, self.held, self.left, self.racks

    @property
    def loads(self) -> NDArray[np.void]:
        """The records of the brokers alone."""
        return self.brokers[:-1]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """By partition: its replicas."""
        return np.diff(self.partitions["begin"])

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Partitions from the largest to the smallest."""
        return np.argsort(-self.model.size, kind="stable")

    @property
    def immovable(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The brokers and bytes of the replicas that may not move."""
        if self.scope.movable.all():
            return np.empty(0, np.int32), np.empty(0, np.int64)
        fixed = ~np.repeat(self.scope.movable, self.lengths)
        return self.slots["broker"][fixed], self.slots["bytes"][fixed]

    @property
    def homeless(self) -> NDArray[np.int64]:
        """The partitions of slots that need a broker, one for each: they have none, or one that must be emptied."""
        broker = self.slots["broker"]
        leaving = (broker < 0) | self.scope.leaves[broker] if self.scope.leaves.any() else broker < 0
        if not leaving.any():
            return np.empty(0, np.int64)
        partition = np.searchsorted(self.partitions["begin"], np.flatnonzero(leaving), side="right") - 1
        return partition[self.scope.movable[partition]]

    @property
    def layout(self) -> Layout:
        """Where the replicas are now, whatever the workspace comes to later."""
        return Layout(self.partitions["begin"].copy(), *(self.slots[n].copy() for n in ("broker", "bytes", "log_dir")))

    @property
    def leader(self) -> NDArray[np.int32]:
        """Who led each partition at the start; -1 for nobody."""
        return self.partitions["leader"][:-1].copy()


@dataclass(frozen=True, eq=False)
class Placement:
    """An answer: where each replica of a model shall be, the leader first."""

    model: ClusterModel  # with the partitions that are to be added, if any
    layout: Layout
    leader: NDArray[np.int32]
    kept: int = 0  # partitions that were to change, but are left where they are for the sake of their racks

    @classmethod
    def of(cls, work: Workspace, leader: NDArray[np.int32]) -> Placement:
        """What a workspace has come to, with these leaders; where nobody may lead, the first replica stays first."""
        layout = work.layout
        leader_to_front(layout.offsets, layout.broker, layout.bytes, layout.log_dir, leader)
        return cls(work.model, layout, layout.broker[layout.offsets[:-1]])


def carried_out(model: ClusterModel, layout: Layout) -> ClusterModel:
    """The cluster once its replicas are where a layout has them."""
    dirs = model.log_dirs
    freed = held_by_dir(model) - held_by_dir(model, layout)
    usable = np.where(dirs.usable < NO_LIMIT, dirs.usable + freed, NO_LIMIT)
    return replace(
        model,
        broker=layout.broker,
        bytes=layout.bytes,
        log_dir=layout.log_dir,
        log_dirs=replace(dirs, usable=usable),
    )


def sum_by(index: NDArray[np.integer], values: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """Whole numbers summed by index, exactly; what has none, -1, is left out."""
    summed: NDArray[np.int64] = sums(
        np.ascontiguousarray(index, np.int32), np.ascontiguousarray(values, np.int64), size
    )
    return summed


def free_bytes(model: ClusterModel, max_fill: float) -> NDArray[np.int64]:
    """By log dir: how many bytes may be added until it is as full as allowed; negative where it is fuller already."""
    dirs = model.log_dirs
    unlimited = dirs.total >= NO_LIMIT
    kept_free = np.where(unlimited, 0, np.ceil(dirs.total * (1 - max_fill))).astype(np.int64)
    return np.where(unlimited, NO_LIMIT, dirs.usable - kept_free)


def held_by_dir(model: ClusterModel, layout: Layout | None = None) -> NDArray[np.int64]:
    """By log dir: the bytes of the replicas known to be there, as the cluster is or in a layout of it."""
    of = layout or Layout.of(model)
    return sum_by(of.log_dir, of.bytes, len(model.log_dirs.paths))


def _watched(
    model: ClusterModel, scope: Scope, layout: Layout
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """For the topics with the most replicas: their rows and limits by partition, and replicas by row and broker."""
    lengths = np.diff(layout.offsets)
    replicas = np.bincount(model.topic, lengths, minlength=len(model.topics)).astype(np.int64)
    watched = np.argsort(-replicas, kind="stable")[: max(1, _CELLS // max(1, model.brokers))]
    watched = watched[replicas[watched] >= _LEAST_REPLICAS]
    row = np.full(len(model.topics), -1, np.int32)
    row[watched] = np.arange(len(watched), dtype=np.int32)
    of_partition = row[model.topic]
    held = held_by_topic(of_partition, layout.offsets, layout.broker, max(1, len(watched)), model.brokers)
    weights = model.weight * (model.alive & ~scope.leaves)
    largest = weights.max() / weights.sum() if weights.any() else 1.0
    limit = (np.ceil(replicas * largest) + 1).astype(np.int32)
    return of_partition, limit[model.topic], held
