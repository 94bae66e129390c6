"""What a certificate is about: where replicas are, what may move, and the loads that should become even.

An *allowed placement* gives every movable partition as many replicas as it has, on distinct brokers; nothing arrives on
a broker that does not take, nothing departs from one that neither gives nor leaves, and no movable replica stays on one
that leaves. Partitions that may not move stay as they are. Racks are kept as the verifier of plans asks: a partition is
in no fewer racks than now, and no rack holds more of its replicas than the fullest does now, except where leaving
brokers make that impossible.

A broker whose share of a load is 0 has no band for it. Bands are widened where nothing can be done: a broker is not
asked to hold less than what may not leave it, nor, if it takes nothing, any least load: what it gives for the sake of
one load may leave it with little of another, as passes allow it too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Loads:
    """One resource: what each replica adds to its broker, and the band of each broker."""

    name: str
    per_replica: Floats  # by partition
    share: Floats  # by broker, in the same unit; shares add up to the load that there is
    low: Floats
    high: Floats

    @classmethod
    def within(cls, name: str, per_replica: Floats, share: Floats, tolerance: float) -> Loads:
        """The band is this part of the share to both sides."""
        return cls(name, per_replica, share, share * (1 - tolerance), share * (1 + tolerance))

    def including(self, load: Floats) -> Loads:
        """The same with bands wide enough for a load by broker: the bound is then for plans no less even than that."""
        return replace(self, low=np.minimum(self.low, load), high=np.maximum(self.high, load))


@dataclass(frozen=True, eq=False)
class Problem:
    """A cluster as arrays: the replicas of partition p are slots ``offsets[p]`` to ``offsets[p + 1]``, leader first."""

    offsets: Ints
    broker: NDArray[np.int32]  # by slot; -1 for a replica that needs a broker
    size: Ints  # by partition: bytes of one replica
    movable: Flags
    rack: NDArray[np.int32]  # by broker, as the next three; all alike where racks do not count, -1 if unknown or dead
    gives: Flags
    takes: Flags
    leaves: Flags
    loads: tuple[Loads, ...]

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self.size)

    @property
    def brokers(self) -> int:
        """How many brokers there are."""
        return len(self.rack)

    @cached_property
    def replication_factor(self) -> Ints:
        """By partition."""
        return np.diff(self.offsets)

    @cached_property
    def slot_partition(self) -> Ints:
        """By slot."""
        return np.repeat(np.arange(self.partitions), self.replication_factor)

    @cached_property
    def must_leave(self) -> Flags:
        """By slot: replicas that every allowed placement copies, since they have no broker or one that leaves."""
        away = self.broker < 0
        if self.brokers:
            away = away | self.leaves[self.broker]
        return away & self.movable[self.slot_partition]

    @cached_property
    def may_leave(self) -> Flags:
        """By slot: replicas that an allowed placement may have elsewhere."""
        if not self.brokers:
            return self.must_leave
        return self.must_leave | (self.gives[self.broker] & (self.broker >= 0) & self.movable[self.slot_partition])

    @cached_property
    def holds_back(self) -> Flags:
        """By slot: replicas that stay where they are in every allowed placement."""
        return ~self.may_leave & (self.broker >= 0)

    def held(self, loads: Loads, slots: Flags | None = None) -> Floats:
        """By broker: the load of these slots, all if not given."""
        chosen = self.broker >= 0 if slots is None else (self.broker >= 0) & slots
        values = np.bincount(self.broker[chosen], loads.per_replica[self.slot_partition[chosen]], self.brokers)
        return values.astype(np.float64, copy=False)

    def band(self, loads: Loads) -> tuple[Floats, Floats]:
        """By broker: the lowest and highest load of replicas it may end with, widened where nothing can be done."""
        counted = (loads.share > 0) & ~self.leaves
        high = np.maximum(loads.high, self.held(loads, self.holds_back))
        return np.where(counted & self.takes, loads.low, -np.inf), np.where(counted, high, np.inf)

    @cached_property
    def racks(self) -> int:
        """How many racks there are, at least one."""
        return int(self.rack.max(initial=0)) + 1

    @cached_property
    def in_rack(self) -> Ints:
        """By rack: its brokers that stay."""
        return np.bincount(self.rack[~self.leaves & (self.rack >= 0)], minlength=self.racks)

    @cached_property
    def _cells(self) -> tuple[Ints, Ints, Ints]:
        """Partition, rack and number of replicas, where there are any: a table of both would not fit into memory."""
        rack = np.where(self.broker >= 0, self.rack[self.broker], -1) if self.brokers else self.broker
        known = rack >= 0
        cell, count = np.unique(self.slot_partition[known] * self.racks + rack[known], return_counts=True)
        return cell // self.racks, cell % self.racks, count

    @cached_property
    def slots_by_level(self) -> Ints:
        """By number: how many replicas of a partition fit if no rack holds more than that many."""
        levels = np.arange(int(self.replication_factor.max(initial=0)) + 1)
        return np.asarray(np.minimum(self.in_rack, levels[:, None]).sum(axis=1), np.int64)

    @cached_property
    def most_in_rack(self) -> Ints:
        """By partition: how many of its replicas a rack may hold."""
        partition, _, count = self._cells
        factor = self.replication_factor
        fullest = np.zeros(self.partitions, np.int64)
        np.maximum.at(fullest, partition, count)
        if self.leaves.any():
            fullest = np.maximum(fullest, np.searchsorted(self.slots_by_level, factor))
        racked = np.bincount(partition, count, self.partitions) == factor
        return np.asarray(np.where(racked, fullest, factor), np.int64)

    @cached_property
    def fewest_racks(self) -> Ints:
        """By partition: the racks it must at least be in."""
        now = np.bincount(self._cells[0], minlength=self.partitions)
        return np.minimum(np.minimum(now, self.replication_factor), np.count_nonzero(self.in_rack))

    @cached_property
    def racks_are_closed(self) -> bool:
        """Whether no movable replica can change its rack: each holds as many of a partition as it can, and must."""
        if self.racks < 2 or np.any(self.rack[~self.leaves] < 0):
            return False
        partition, rack, count = self._cells
        most = np.minimum(self.most_in_rack, len(self.slots_by_level) - 1)
        full = (self.slots_by_level[most] == self.replication_factor) | ~self.movable
        placed = np.bincount(partition, count, self.partitions) == self.replication_factor
        fits = (count <= self.in_rack[rack]) | ~self.movable[partition]
        return bool(full.all() and placed[self.movable].all() and fits.all())
