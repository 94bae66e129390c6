"""A placement that is being polished, and parts of it that an integer program places anew.

A part is some partitions and the brokers that each of them may be on. Everything else stays: what the others leave of
bands and disk space is what the part has. The program is that of an allowed placement, see `certificate.program`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.problem import Problem
from rebalance_lib.planner.certificate.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints

ROUNDING = 1e-9  # of a share
OUTSIDE = 1e4  # what a share outside of the bands costs, in terms of the largest partition of a part


@dataclass(frozen=True, eq=False)
class Clock:
    """When it shall end."""

    end: float
    monotonic: Callable[[], float]
    repair: float = 0.0  # seconds before the end: when it ends if a load is still outside of its band

    def seconds_left(self) -> float:
        """Negative if it is late."""
        return self.end - self.monotonic()

    def part(self, share: float) -> Clock:
        """One that ends after this part of what is left."""
        now = self.monotonic()
        return Clock(now + (self.end - self.repair - now) * share, self.monotonic)


@dataclass(frozen=True, eq=False)
class Part:
    """What is placed anew, and how long that may take."""

    partitions: Ints
    hosts: Flags  # by partition and broker: where its replicas may be, beside where they are and were
    clock: Clock
    nodes: int
    gap: float  # of all bytes that the placement copies
    inside: Ints | None = None  # brokers: only a solution that has these within their bands will do


class State:
    """A placement, and what each broker has of each load by it."""

    def __init__(self, problem: Problem, broker: NDArray[np.int32], space: Floats | None = None) -> None:
        """``space`` has by broker the bytes that may arrive; as many as there are if not given."""
        self.problem = problem
        self.broker = broker
        self.space = np.full(problem.brokers, np.inf) if space is None else space
        self._bands = [problem.band(loads) for loads in problem.loads]
        every = np.arange(problem.partitions)
        self._had = self._keys(problem.broker, every)
        self._set(broker)

    def _set(self, broker: NDArray[np.int32]) -> None:
        self.broker, self.loads = broker, self._loads_of(broker)
        self.moved = np.zeros(self.problem.partitions, np.bool_)
        arriving = self._arriving(broker, np.arange(self.problem.partitions))
        self.moved[arriving // self.problem.brokers] = True
        self.bytes_copied = int(self.problem.size[arriving // self.problem.brokers].sum())
        self.outside = self._outside(self.loads)

    def _loads_of(self, broker: NDArray[np.int32]) -> list[Floats]:
        placed = replace(self.problem, broker=broker)
        return [placed.held(loads) for loads in self.problem.loads]

    def slots(self, partitions: Ints) -> tuple[Ints, Ints]:
        """The slots of these partitions, and the row of each in this order."""
        factor = self.problem.replication_factor[partitions]
        row = np.repeat(np.arange(len(partitions)), factor)
        first = np.cumsum(factor) - factor
        return self.problem.offsets[partitions][row] + np.arange(len(row)) - first[row], row

    def _keys(self, broker: NDArray[np.int32], partitions: Ints) -> Ints:
        """Keys of partition and broker."""
        slots, row = self.slots(partitions)
        placed = broker[slots] >= 0
        return np.asarray(partitions[row[placed]] * self.problem.brokers + broker[slots[placed]], np.int64)

    def _arriving(self, broker: NDArray[np.int32], partitions: Ints) -> Ints:
        """Keys of replicas of these partitions that were elsewhere before the plan."""
        had = self._had if len(partitions) == self.problem.partitions else self._keys(self.problem.broker, partitions)
        return np.setdiff1d(self._keys(broker, partitions), had, assume_unique=True)

    def _arrived(self, partitions: Ints) -> Floats:
        """By broker: the bytes of these partitions that arrive."""
        keys, count = self._arriving(self.broker, partitions), self.problem.brokers
        return np.bincount(keys % count, self.problem.size[keys // count], minlength=count).astype(np.float64)

    def space_for(self, partitions: Ints) -> Floats:
        """By broker: the bytes that may arrive of these partitions, beside all others; never less than now."""
        if not np.isfinite(self.space).any():
            return self.space
        own = self._arrived(partitions)
        everything = self._arrived(np.arange(self.problem.partitions))
        return np.maximum(self.space - (everything - own), own)

    def _outside(self, held: list[Floats]) -> float:
        """The sum of loads outside their bands, in shares."""
        return float(sum(np.abs(off).sum() for off in self.off(held)))

    def off(self, held: list[Floats]) -> list[Floats]:
        """By load and broker: how far it is above its band, or, negative, below it, in shares."""
        found = []
        for loads, load, (low, high) in zip(self.problem.loads, held, self._bands, strict=True):
            counted = (loads.share > 0) & ~self.problem.leaves
            off = np.maximum(0.0, load - high) - np.maximum(0.0, low - load)
            off = np.divide(off, loads.share, out=np.zeros_like(off), where=counted)
            found.append(np.where(np.abs(off) > ROUNDING, off, 0.0))
        return found

    def is_better_than(self, other: State) -> bool:
        """Whether there is less outside, or as much and fewer bytes are copied."""
        if self.outside != other.outside:
            return self.outside < other.outside - ROUNDING
        return self.bytes_copied < other.bytes_copied

    def improve(self, part: Part) -> bool:
        """Place a part anew; whether that is better."""
        program = _PartProgram(self, part)
        found = program.solve()
        if found is None:
            return False
        broker = self.broker.copy()
        broker[program.slots] = found
        other = State(self.problem, broker, self.space)
        if not other.is_better_than(self):
            return False
        self._set(broker)
        return True

    def part_of(self, partitions: Ints) -> tuple[Problem, Ints, Ints]:
        """The problem of these partitions alone, as before the plan, with their slots and the row of each.

        Bands are what the others leave of them.
        """
        problem = self.problem
        slots, row = self.slots(partitions)
        offsets = np.append(0, np.cumsum(problem.replication_factor[partitions]))
        loads = []
        for whole, held, (low, high) in zip(problem.loads, self.loads, self._bands, strict=True):
            one = replace(whole, per_replica=whole.per_replica[partitions])
            own = replace(problem, offsets=offsets, broker=self.broker[slots], size=problem.size[partitions]).held(one)
            loads.append(replace(one, low=low - (held - own), high=high - (held - own)))
        part = replace(
            problem,
            offsets=offsets,
            broker=problem.broker[slots],
            size=problem.size[partitions],
            movable=problem.movable[partitions],
            loads=tuple(loads),
        )
        return part, slots, row


class _PartProgram:
    """The integer program of a part."""

    def __init__(self, state: State, part: Part) -> None:
        self._part = part
        self._problem, self.slots, self._row = state.part_of(part.partitions)
        self._now = state.broker[self.slots]
        self._inside = part.inside is not None or state.outside == 0
        problem = self._problem
        self._has = np.zeros((len(part.partitions), problem.brokers), np.bool_)
        self._has[self._row, self._now] = True
        hosts = self._has | part.hosts
        placed = problem.broker >= 0
        hosts[self._row[placed], problem.broker[placed]] = True
        self._program = Program(problem, hosts=hosts)
        self._unit = max(1.0, float(problem.size.max(initial=0)))
        own = int(problem.size[self._program.partition[self._copied(self._has)]].sum())
        self._others = (state.bytes_copied - own) / self._unit
        self._keep_space(state.space_for(part.partitions))

    def _copied(self, has: Flags) -> Flags:
        """By column: whether it is a replica of these that arrives."""
        program = self._program
        held = (program.partition >= 0) & has[program.partition, program.broker]
        return np.asarray(held & program.arrives)

    def _keep_space(self, space: Floats) -> None:
        program = self._program
        size = np.where(program.arrives, self._problem.size[program.partition], 0).astype(np.float64)
        for b in np.flatnonzero(np.isfinite(space)).tolist():
            index = np.flatnonzero((program.broker == b) & (size > 0))
            if len(index) and size[index].sum() > space[b]:
                unit = float(size[index].max())
                program.add_row(-np.inf, space[b] / unit, index, size[index] / unit)

    def solve(self) -> NDArray[np.int32] | None:
        """The brokers of the slots in the best solution found."""
        problem, program, part = self._problem, self._program, self._part
        penalised = []
        for loads in problem.loads:
            if self._inside:
                others = np.ones(problem.brokers, np.bool_)  # may stay outside as they are
                others[part.inside if part.inside is not None else slice(None)] = False
                held = replace(problem, broker=self._now).held(loads)
                low = np.where(others, np.minimum(loads.low, held), loads.low)
                high = np.where(others, np.maximum(loads.high, held), loads.high)
                program.keep_in_band(loads, low, high)
            else:
                penalised.append(program.measure_band(loads, loads.low, loads.high))
        rest = program.add_constant()  # so that the gap is one of all bytes
        cost = np.where(program.arrives, problem.size[program.partition], 0) / self._unit
        cost[rest] = self._others if self._inside else 0.0
        for columns in penalised:
            cost[columns] = OUTSIDE
        start = program.columns_of(self._has)
        found = program.solve(cost, nodes=part.nodes, gap=part.gap, start=start, seconds_left=part.clock.seconds_left)
        if found.chosen is None:
            return None
        after = np.zeros_like(self._has)
        after[program.replicas(found.chosen)] = True
        return self._in_order(after)

    def _in_order(self, after: Flags) -> NDArray[np.int32]:
        """Replicas that stay keep their places, arriving ones fill those left."""
        broker = self._now.copy()
        for p in np.flatnonzero((after != self._has).any(axis=1)):
            own = broker[self._problem.offsets[p] : self._problem.offsets[p + 1]]
            own[~after[p, own]] = np.flatnonzero(after[p] & ~self._has[p])
        return broker
