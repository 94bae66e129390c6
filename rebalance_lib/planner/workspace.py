"""The arrays that one planning run changes: a model's slots and brokers, as the kernel takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan.columns import Lists
from rebalance_lib.planner.compiled.compare import compare, follow, stay_in_place
from rebalance_lib.planner.compiled.moves import BROKER, PARTITION, SLOT, State
from rebalance_lib.planner.compiled.sums import fill, held_by_topic, sums, sums_of_partitions
from rebalance_lib.planner.model import NO_LIMIT, ClusterModel
from rebalance_lib.planner.resources import Resource, known_resources, per_replica

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

    def in_order(self, broker: NDArray[np.int32]) -> Layout:
        """The same replicas, each list in the order that `broker` has its brokers in."""
        held = (follow(self.offsets, self.broker, broker, values) for values in (self.bytes, self.log_dir))
        return Layout(self.offsets, broker, *held)

    def is_like(self, other: Layout) -> bool:
        """Whether every replica is in the same place, in the same order."""
        return np.array_equal(self.broker, other.broker) and np.array_equal(self.log_dir, other.log_dir)


@dataclass(frozen=True, eq=False)
class Workspace:
    """A layout being changed, under a scope."""

    model: ClusterModel
    scope: Scope
    request: Request
    state: State
    resources: tuple[Resource, ...]  # that follow from where replicas are, in the order of the state's

    @classmethod
    def of(
        cls, model: ClusterModel, scope: Scope, request: Request, layout: Layout, leader: NDArray[np.int32]
    ) -> Workspace:
        """Copies of all that the kernel will change; `leader` is who leads at the start."""
        row, limit, topic_counts = _watched(model, scope, layout)
        partitions, slots = np.empty(model.partitions + 1, PARTITION), np.empty(len(layout.broker), SLOT)
        brokers = np.zeros(model.brokers + 1, BROKER)
        brokers["first_dir"] = model.log_dirs.offsets
        for name in ("takes", "gives", "leaves"):
            brokers[name][:-1] = getattr(scope, name)
        brokers["rack"][:-1] = model.rack
        of_partitions = (layout.offsets, model.size, row, limit, leader, scope.movable)
        fill(partitions, slots, brokers, *of_partitions, layout.broker, layout.bytes, layout.log_dir)
        rest = None if model.rest is None else model.rest.sums
        if rest is not None:
            held = {"bytes": Resource.DISK, "replicas": Resource.REPLICAS, "leads": Resource.LEADERS}
            for name, one in held.items():
                brokers[name][:-1] += to_int(np.rint(rest.load(model, one)))
        limits = (request.byte_budget, request.move_budget)
        free = free_bytes(model, request.max_fill)
        if layout.log_dir is not model.log_dir:  # log dirs of unknown size and cordoned ones stay as they are
            free += np.where(np.abs(free) < NO_LIMIT, held_by_dir(model) - held_by_dir(model, layout), 0)
        resources = tuple(one for one in known_resources(model) if one.of_replicas)
        weight = np.array([per_replica(model, one) for one in resources])
        load = np.zeros((len(resources), model.brokers))
        load[0], load[1] = brokers["bytes"][:-1], brokers["replicas"][:-1]
        for number in range(2, len(resources)):
            load[number] = load_by_broker(layout, weight[number], model.brokers)
            if rest is not None:
                load[number] += rest.load(model, resources[number])
        state = State(
            partitions,
            slots,
            brokers,
            free,
            topic_counts,
            np.array([NO_LIMIT if number is None else number for number in limits], np.int64),
            max(1, len(model.rack_names)),
            weight,
            load,
            np.array([ceiling(model, one) for one in resources]),
        )
        return cls(model, scope, request, state, resources)

    def resumed(self, layout: Layout, leader: NDArray[np.int32]) -> Workspace:
        """The same, as if the cluster were laid out like this; what depends on sizes alone is not worked out again.

        A leader whose replica has left leads no more.
        """
        work = Workspace.of(self.model, self.scope, self.request, layout, still_leading(layout, leader))
        work.__dict__["order"] = self.order
        return work

    @property
    def brokers(self) -> NDArray[np.void]:
        """The records of the brokers alone."""
        records: NDArray[np.void] = self.state.brokers[:-1]
        return records

    def load(self, resource: Resource) -> NDArray[np.float64]:
        """By broker."""
        found: NDArray[np.float64] = self.state.load[self.resources.index(resource)]
        return found

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """By partition: its replicas."""
        lengths: NDArray[np.int64] = np.diff(self.state.partitions["begin"])
        return lengths

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Partitions from the largest to the smallest."""
        return np.argsort(-self.model.size, kind="stable")

    def exceeds(self, layout: Layout) -> bool:
        """Whether a layout brings a broker above its capacity of a network, or further above it."""
        for number, ceiling in enumerate(self.state.ceiling):
            most = np.maximum(ceiling, self.state.load[number])
            if np.isfinite(most).any():
                load = load_by_broker(layout, self.state.weight[number], self.model.brokers)
                if self.model.rest is not None:
                    load += self.model.rest.sums.load(self.model, self.resources[number])
                if np.any(load > most * (1 + 1e-9)):
                    return True
        return False

    def settled_layout(self) -> Layout | None:
        """Where the replicas are now; those that came back to their broker are where they are in the cluster.

        None if a log dir is then too full: what had left it has come back, and others have taken its place.
        """
        model, layout = self.model, self.layout
        after = (layout.broker, layout.bytes, layout.log_dir)
        stay_in_place(model.offsets, model.broker, model.bytes, model.log_dir, after)
        before = free_bytes(model, self.request.max_fill)
        free = before + held_by_dir(model) - held_by_dir(model, layout)
        return None if np.any((free < 0) & (free < before)) else layout

    def immovable(self, number: int) -> NDArray[np.float64]:
        """By broker: what it holds of a resource in replicas that may not move."""
        rest, brokers = self.model.rest, self.model.brokers
        of_rest = np.zeros(brokers) if rest is None else rest.sums.fixed(self.resources[number], brokers)
        if self.scope.movable.all():
            return of_rest
        fixed = ~np.repeat(self.scope.movable, self.lengths)
        slots = self.state.slots
        of_slot = slots["bytes"] if number == 0 else np.repeat(self.state.weight[number], self.lengths)
        return of_rest + np.bincount(slots["broker"][fixed], of_slot[fixed], minlength=brokers)

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """The partitions of slots that need a broker, one for each: they have none, or one that must be emptied."""
        broker = self.state.slots["broker"]
        leaving = (broker < 0) | self.scope.leaves[broker] if self.scope.leaves.any() else broker < 0
        if not leaving.any():
            return np.empty(0, np.int64)
        partition = np.searchsorted(self.state.partitions["begin"], np.flatnonzero(leaving), side="right") - 1
        return partition[self.scope.movable[partition]]

    @property
    def layout(self) -> Layout:
        """Where the replicas are now, whatever the workspace comes to later."""
        slots = self.state.slots
        return Layout(self.state.partitions["begin"].copy(), *(slots[n].copy() for n in ("broker", "bytes", "log_dir")))

    @property
    def leader(self) -> NDArray[np.int32]:
        """Who led each partition at the start; -1 for nobody."""
        leader: NDArray[np.int32] = self.state.partitions["leader"][:-1].copy()
        return leader


@dataclass(frozen=True, eq=False)
class Placement:
    """An answer: where each replica of a model shall be, the leader first."""

    model: ClusterModel  # with the partitions that are to be added, if any
    layout: Layout
    leader: NDArray[np.int32]
    kept: int = 0  # partitions that were to change, but are left where they are for the sake of their racks


def at_present(model: ClusterModel, placement: Placement) -> Placement:
    """A placement for the sizes after the horizon, with those of now: what is copied is what is there."""
    if model.expected_size is None:
        return placement
    added = placement.model.partitions - model.partitions
    size = np.append(model.size, np.zeros(added, np.int64))
    held = size[np.repeat(np.arange(len(size)), np.diff(placement.layout.offsets))]
    after = replace(placement.model, size=size, bytes=model.bytes, log_dirs=model.log_dirs)
    return replace(placement, model=after, layout=replace(placement.layout, bytes=held))


def carried_out(model: ClusterModel, layout: Layout) -> ClusterModel:
    """The cluster once its replicas are where a layout has them; those that were copied are in sync."""
    dirs, in_sync = model.log_dirs, model.in_sync
    if not in_sync.all():
        held = Lists(layout.offsets, layout.broker).position_in(Lists(model.offsets, model.broker))
        in_sync = np.where(held >= 0, in_sync[held], True)
    freed = held_by_dir(model) - held_by_dir(model, layout)
    usable = np.where(dirs.usable < NO_LIMIT, dirs.usable + freed, NO_LIMIT)
    return replace(
        model,
        broker=layout.broker,
        bytes=layout.bytes,
        log_dir=layout.log_dir,
        log_dirs=replace(dirs, usable=usable),
        in_sync=in_sync,
    )


def spent(model: ClusterModel, placement: Placement) -> tuple[int, int]:
    """Bytes and replicas that a placement copies."""
    return copied(placement.model, Layout.of(model), placement.layout)


def copied(model: ClusterModel, before: Layout, after: Layout) -> tuple[int, int]:
    """Bytes and replicas that are copied from one layout to another; the model has the partitions of the second."""
    arrives, _, _ = compare(before.offsets, before.broker, before.log_dir, after.offsets, after.broker, after.log_dir)
    partition = np.repeat(np.arange(model.partitions), np.diff(after.offsets))[arrives]
    return int(model.size[partition].sum()), len(partition)


def hosts(model: ClusterModel, layout: Layout) -> NDArray[np.bool_]:
    """By partition and broker: whether it has a replica there."""
    has = np.zeros((model.partitions, model.brokers), np.bool_)
    has[model.slot_partition, layout.broker] = True
    return has


def slots_of(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The slots of these partitions, one after another."""
    lengths = np.diff(offsets)[rows]
    return np.repeat(offsets[rows] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())


def ceiling(model: ClusterModel, resource: Resource) -> NDArray[np.float64]:
    """By broker: what no move, and no other order of lists, brings it above; what is above already only comes down.

    Disks are limited by log dir, and CPU is an estimate without a unit.
    """
    capacity = model.capacity.get(resource)
    if resource not in {Resource.NETWORK_IN, Resource.NETWORK_OUT} or capacity is None:
        return np.full(model.brokers, np.inf)
    return np.where(np.isfinite(capacity), capacity, np.inf)


def to_int(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole bytes."""
    return np.minimum(values, float(1 << 62)).astype(np.int64)


def sum_by(index: NDArray[np.integer], values: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """Whole numbers summed by index, exactly; what has none, -1, is left out."""
    summed: NDArray[np.int64] = sums(
        np.ascontiguousarray(index, np.int32), np.ascontiguousarray(values, np.int64), size
    )
    return summed


def load_by_broker(layout: Layout, weight: NDArray[np.float64], brokers: int) -> NDArray[np.float64]:
    """What each broker holds of a load that each replica of a partition weighs."""
    summed: NDArray[np.float64] = sums_of_partitions(layout.offsets, layout.broker, weight, brokers)
    return summed


def free_bytes(model: ClusterModel, max_fill: float) -> NDArray[np.int64]:
    """By log dir: how many bytes may be added until it is as full as allowed; negative where it is fuller already.

    One that is cordoned has no space, whatever leaves it.
    """
    dirs = model.log_dirs
    unlimited = dirs.total >= NO_LIMIT
    kept_free = np.where(unlimited, 0, np.ceil(dirs.total * (1 - max_fill))).astype(np.int64)
    free = np.where(unlimited, NO_LIMIT, dirs.usable - kept_free)
    return np.where(dirs.cordoned, -NO_LIMIT, free)


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
    if model.rest is not None:
        places, of_rest = model.rest.topics.within(model)
        replicas[places] += of_rest.replicas.sum(axis=1)
    watched = np.argsort(-replicas, kind="stable")[: max(1, _CELLS // max(1, model.brokers))]
    watched = watched[replicas[watched] >= _LEAST_REPLICAS]
    row = np.full(len(model.topics), -1, np.int32)
    row[watched] = np.arange(len(watched), dtype=np.int32)
    of_partition = row[model.topic]
    held = held_by_topic(of_partition, layout.offsets, layout.broker, max(1, len(watched)), model.brokers)
    if model.rest is not None:
        held[row[places][row[places] >= 0]] += of_rest.replicas[row[places] >= 0]
    stays = int(np.count_nonzero(model.alive & ~scope.leaves))
    largest = 1.0 / max(1, stays)
    limit = (np.ceil(replicas * largest) + 1).astype(np.int32)
    return of_partition, limit[model.topic], held


def still_leading(layout: Layout, leader: NDArray[np.int32]) -> NDArray[np.int32]:
    """By partition: its leader, -1 where its replica has left."""
    lengths = np.diff(layout.offsets)
    leads = np.zeros(len(lengths), np.bool_)
    leads[np.repeat(np.arange(len(lengths)), lengths)[layout.broker == np.repeat(leader, lengths)]] = True
    return np.where(leads, leader, np.int32(-1))
