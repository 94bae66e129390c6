"""Improve a placement by solving small parts of it exactly, for as long as there is time.

Goal:
    First less of all loads outside their bands, in shares; then fewer bytes copied, counted from where replicas were
    before the plan. A placement is only ever replaced by a better one in this order.

Algorithm:
    A round takes a few brokers and some of the partitions on them. If loads are outside their bands, the brokers are
    the worst one, those furthest on the other side of it, and some at random; otherwise all are random. Where no
    replica can change its rack, they are of one rack. Half of the partitions are ones that the plan moves, the larger
    ones more often, since only these can save bytes. Everything else stays; the integer program of the certificate
    finds the best places of these among these brokers, or back where they were. Leaders are chosen anew in the same
    program, if their loads count. It ends when time is up, or after ``PATIENCE`` rounds in a row without an
    improvement. Chance has a seed, and every round a counted number of nodes, so that only the clock decides where it
    ends.

Example:
    Brokers 0 and 1 should have 5 bytes each. Before the plan, partitions of 4, 3, 2 and 1 bytes were on broker 0; the
    plan moves those of 4 and 2, so that broker 1 has 6. A round finds 4 and 1, or 3 and 2.
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

# Tried on `gen.py skew`, 2,000 partitions and 12 brokers, five loads, one run of 8 seconds each on a busy machine, from
# 1.31 times the bound: 5 brokers and 500 variables came to 1.28 in 9 rounds, 3 and 80 to 1.22 in 453, 4 and 120 to 1.21
# in 269; drawing large partitions more often, 1.17. How many rounds there were differs fourfold between runs.
BROKERS = 4  # of a round
VARIABLES = 120
NODES = 40
GAP = 1e-4
MOVED = 0.5  # of the partitions of a round: those that the plan moves, which can save bytes
PATIENCE = 60
ROUNDING = 1e-9  # of a share
OUTSIDE = 1e4  # what a share outside of the bands costs, in terms of the bytes that a round is about


@dataclass(frozen=True, eq=False)
class Polished:
    """A placement, slot by slot as in the problem, the leader first."""

    broker: NDArray[np.int32]
    outside: float  # the sum of loads outside their bands, in shares
    bytes_copied: int
    rounds: int
    improvements: int


def polish(
    problem: Problem,
    broker: NDArray[np.int32],
    *,
    seconds: float,
    monotonic: Callable[[], float],
    seed: int = 0,
    space: Floats | None = None,
) -> Polished:
    """Improve a placement of the problem's replicas; every slot must have a broker, and racks be kept.

    ``space`` has by broker the bytes that may arrive, old and new copies counted; as many as there are if not given.
    """
    end = monotonic() + seconds
    state = _State(problem, broker.copy(), space)
    random = np.random.default_rng(seed)
    rounds = improvements = idle = 0
    while idle < PATIENCE and (left := end - monotonic()) > 0:
        rounds += 1
        idle += 1
        if state.improve(random, left):
            improvements += 1
            idle = 0
    return Polished(state.broker, state.outside(state.loads), state.bytes_copied, rounds, improvements)


class _State:
    """A placement, and what each broker has of each load by it."""

    def __init__(self, problem: Problem, broker: NDArray[np.int32], space: Floats | None = None) -> None:
        self._problem = problem
        self.broker = broker
        self._space = np.full(problem.brokers, np.inf) if space is None else space
        self._bands = [problem.band(loads) for loads in problem.loads]
        self._led = any(loads.led for loads in problem.loads)
        self.loads = self._loads_of(broker)
        self._moved = self._is_moved(np.arange(problem.partitions))
        partitions = np.arange(problem.partitions)
        self.bytes_copied = int(self._bytes_of(partitions, self._has(broker, partitions)))

    def _loads_of(self, broker: NDArray[np.int32]) -> list[Floats]:
        placed = replace(self._problem, broker=broker)
        return [placed.held(loads) for loads in self._problem.loads]

    def _slots(self, partitions: Ints) -> tuple[Ints, Ints]:
        """The slots of these partitions, and the row of each in this order."""
        factor = self._problem.replication_factor[partitions]
        row = np.repeat(np.arange(len(partitions)), factor)
        first = np.cumsum(factor) - factor
        return self._problem.offsets[partitions][row] + np.arange(len(row)) - first[row], row

    def _has(self, broker: NDArray[np.int32], partitions: Ints) -> Ints:
        """Sorted keys of partition and broker."""
        slots, row = self._slots(partitions)
        placed = broker[slots] >= 0
        keys = partitions[row[placed]] * self._problem.brokers + broker[slots[placed]]
        return np.sort(keys)

    def _bytes_of(self, partitions: Ints, after: Ints) -> int:
        arriving = np.setdiff1d(after, self._has(self._problem.broker, partitions), assume_unique=True)
        return int(self._problem.size[arriving // self._problem.brokers].sum())

    def _arrived(self, partitions: Ints) -> Floats:
        """By broker: the bytes of these partitions that arrive."""
        before, after = self._has(self._problem.broker, partitions), self._has(self.broker, partitions)
        keys = np.setdiff1d(after, before, assume_unique=True)
        count = self._problem.brokers
        return np.bincount(keys % count, self._problem.size[keys // count], minlength=count).astype(np.float64)

    def space_for(self, partitions: Ints) -> Floats:
        """By broker: the bytes that may arrive of these partitions, beside all others; never less than now."""
        own = self._arrived(partitions)
        everything = self._arrived(np.arange(self._problem.partitions))
        return np.maximum(self._space - (everything - own), own)

    def _is_moved(self, partitions: Ints) -> Flags:
        before, after = self._has(self._problem.broker, partitions), self._has(self.broker, partitions)
        moved = np.zeros(self._problem.partitions, np.bool_)
        moved[np.setdiff1d(after, before, assume_unique=True) // self._problem.brokers] = True
        return moved[partitions]

    def outside(self, held: list[Floats]) -> float:
        """The sum of loads outside their bands, in shares."""
        return float(sum(np.abs(off).sum() for off in self._off(held)))

    def _off(self, held: list[Floats]) -> list[Floats]:
        """By load and broker: how far it is above its band, or, negative, below it, in shares."""
        found = []
        for loads, load, (low, high) in zip(self._problem.loads, held, self._bands, strict=True):
            counted = (loads.share > 0) & ~self._problem.leaves
            off = np.maximum(0.0, load - high) - np.maximum(0.0, low - load)
            off = np.divide(off, loads.share, out=np.zeros_like(off), where=counted)
            found.append(np.where(np.abs(off) > ROUNDING, off, 0.0))
        return found

    def _brokers(self, random: np.random.Generator) -> Ints:
        problem, off = self._problem, self._off(self.loads)
        pool = np.flatnonzero(~problem.leaves & (problem.takes | problem.gives))
        first = np.empty(0, np.int64)
        by_load = max(off, key=lambda one: float(np.abs(one).max(initial=0.0)), default=np.zeros(problem.brokers))
        if by_load.any():
            number = next(at for at, one in enumerate(off) if one is by_load)
            share = problem.loads[number].share
            fill = np.divide(self.loads[number], share, out=np.zeros_like(share), where=share > 0)
            worst = int(np.abs(by_load).argmax())
            if problem.racks_are_closed:
                pool = pool[problem.rack[pool] == problem.rack[worst]]
            others = pool[(share[pool] > 0) & (pool != worst)]
            order = np.argsort(fill[others] * np.sign(by_load[worst]), kind="stable")
            first = np.append(worst, others[order[: BROKERS // 2]])
        elif problem.racks_are_closed and len(pool):
            pool = pool[problem.rack[pool] == problem.rack[random.choice(pool)]]
        rest = np.setdiff1d(pool, first)
        more = random.permutation(rest)[: max(0, BROKERS - len(first))]
        return np.sort(np.append(first, more))

    def _partitions(self, brokers: Ints, random: np.random.Generator) -> Ints:
        """Those of these brokers: first ones that the plan moves, then any."""
        problem = self._problem
        chosen = np.zeros(problem.brokers, np.bool_)
        chosen[brokers] = True
        here = np.unique(problem.slot_partition[chosen[self.broker]])
        here = random.permutation(here[problem.movable[here]])
        count = max(2, VARIABLES // (len(brokers) + 1) // (2 if self._led else 1))
        moved = here[self._moved[here]]
        # The larger ones more often: each is drawn with a chance by its bytes.
        rank = random.exponential(size=len(moved)) / np.maximum(problem.size[moved], 1)
        moved = moved[np.argsort(rank, kind="stable")[: int(count * MOVED)]]
        rest = here[~np.isin(here, moved)][: count - len(moved)]
        return np.sort(np.append(moved, rest))

    def improve(self, random: np.random.Generator, seconds: float) -> bool:
        """One round; whether it found something better."""
        brokers = self._brokers(random)
        partitions = self._partitions(brokers, random) if len(brokers) > 1 else np.empty(0, np.int64)
        if not len(partitions):
            return False
        part = _Part(self, partitions, brokers)
        found = part.solve(seconds)
        if found is None:
            return False
        broker = self.broker.copy()
        broker[part.slots] = found
        loads = self._loads_of(broker)
        was, now = self.outside(self.loads), self.outside(loads)
        saved = self._bytes_of(partitions, self._has(self.broker, partitions)) - self._bytes_of(
            partitions, self._has(broker, partitions)
        )
        if not (now < was - ROUNDING or (now <= was and saved > 0)):
            return False
        self.broker, self.loads = broker, loads
        self.bytes_copied -= saved
        self._moved[partitions] = self._is_moved(partitions)
        return True

    def part_of(self, partitions: Ints) -> tuple[Problem, Ints, Ints]:
        """The problem of these partitions alone, as before the plan, with their slots and the row of each.

        Bands are what the others leave of them.
        """
        problem = self._problem
        slots, row = self._slots(partitions)
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


class _Part:
    """The program of one round."""

    def __init__(self, state: _State, partitions: Ints, brokers: Ints) -> None:
        self._problem, self.slots, self._row = state.part_of(partitions)
        self._now = state.broker[self.slots]
        self._outside = state.outside(state.loads) > 0
        problem = self._problem
        self._has = np.zeros((len(partitions), problem.brokers), np.bool_)
        self._has[self._row, self._now] = True
        hosts = self._has.copy()
        placed = problem.broker >= 0
        hosts[self._row[placed], problem.broker[placed]] = True
        hosts[:, brokers] = True
        self._led = any(loads.led for loads in problem.loads)
        self._program = Program(problem, led=self._led, hosts=hosts)
        self._keep_space(state.space_for(partitions))

    def _keep_space(self, space: Floats) -> None:
        program = self._program
        size = np.where(program.arrives, self._problem.size[program.partition], 0).astype(np.float64)
        for b in np.flatnonzero(np.isfinite(space)).tolist():
            index = np.flatnonzero((program.broker == b) & (size > 0))
            if len(index) and size[index].sum() > space[b]:
                unit = float(size[index].max())
                program.add_row(-np.inf, space[b] / unit, index, size[index] / unit)

    def solve(self, seconds: float) -> NDArray[np.int32] | None:
        """The brokers of the slots in the best solution found."""
        problem, program = self._problem, self._program
        penalised = []
        for loads in problem.loads:
            if self._outside:
                penalised.append(program.measure_band(loads, loads.low, loads.high))
            else:
                program.keep_in_band(loads, loads.low, loads.high)
        cost = np.where(program.arrives, problem.size[program.partition], 0).astype(np.float64)
        cost /= max(1.0, float(problem.size.max(initial=0)))
        for columns in penalised:
            cost[columns] = OUTSIDE
        leader = self._now[problem.offsets[:-1]].astype(np.int64)
        start = program.columns_of(self._has, leader)
        found = program.solve(cost, nodes=NODES, gap=GAP, start=start, seconds=seconds)
        if found.chosen is None:
            return None
        after = np.zeros_like(self._has)
        after[program.replicas(found.chosen)] = True
        if self._led:
            rows, leads = program.leads(found.chosen)
            leader[rows] = leads
        return self._in_order(after, leader)

    def _in_order(self, after: Flags, leader: Ints) -> NDArray[np.int32]:
        """Replicas that stay keep their places, arriving ones fill those left, and the leader changes to the first."""
        broker = self._now.copy()
        for p in np.flatnonzero((after != self._has).any(axis=1) | (leader != broker[self._problem.offsets[:-1]])):
            begin, end = self._problem.offsets[p], self._problem.offsets[p + 1]
            own = broker[begin:end]
            gone = ~after[p, own]
            own[gone] = np.flatnonzero(after[p] & ~self._has[p])
            at = np.flatnonzero(own == leader[p])
            if len(at):
                own[0], own[at[0]] = own[at[0]], own[0]
        return broker
