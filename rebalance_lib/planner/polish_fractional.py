"""From the fractions of the linear program to whole replicas.

Goal:
    A placement within the bands that copies hardly more than the linear program of the certificate does, which copies
    the least that any plan can.

Algorithm:
    A dive (`polish_dive`) rounds the linear program of each group of brokers, from coarse replicas to fine ones, which
    mostly ends within the bands. Where it does not, an integer program places what was split last anew, and with it a
    *core*: partitions that could as well be elsewhere, at the prices of the linear program. If no solution within the
    bands is found, the core is drawn anew, larger; the last one may leave them. Once all is within the bands, cores are
    drawn anew as long as that saves bytes, then larger ones.

Example:
    Broker 0 is to give 5 bytes to broker 1, of partitions of 4, 3, 2 and 1 bytes. Each byte costs the same, so the
    linear program moves 4 and a third of the 3. Rounded at once that is 4: broker 1 lacks a byte. All four are equally
    good at the prices, so the integer program of these finds 4 and 1, or 3 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.fractional import FractionalMoves, Fractions, Moves, groups
from rebalance_lib.planner.polish_dive import dive
from rebalance_lib.planner.polish_part import Clock, Part, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints, Problem

CELLS = 4_000_000  # partitions times brokers: beyond, the linear program takes minutes
FRACTIONAL_TIME = 0.85  # of the seconds: what the linear program and the dive may take
CORES = (4, 1.5), (10, 1.5), (8, 0.5), (3, 0.3)
"""What a core has at each broker, beside what was split: so many replicas, and so many times the load that was split.

The first that fits the bands is taken. The last one may leave them: it is small, so that a solution is found in time.
"""
LARGER = (1, 4)  # times as many replicas at each broker, once the last number saves nothing more
LATE = 0.3  # seconds: how long such a program may take until it asks for the time again
HOSTS = 5  # brokers that each of these may go to
EQUAL = 1e-3  # of its bytes: between brokers that are as good for a replica, chance decides
MOST = 8  # times these replicas: where the load is not reached by then
NOWHERE = 1e6  # average brokers: what it costs to go where a replica cannot go
TINY = 1e-12  # of an average broker: what an empty replica counts as where bytes divide
NODES = 500
GAP = 2e-4  # of all bytes
NEAR = 5e-4  # of the bound: what is not worth another round


def rounded(state: State, clock: Clock, random: np.random.Generator) -> tuple[State, float]:
    """What the linear program leads to, and its bound on bytes; the state itself and 0 if there is no such program."""
    problem = state.problem
    if not problem.loads or problem.partitions * problem.brokers > CELLS or clock.seconds_left() <= 0:
        return state, 0.0
    parts = groups(problem)
    programs = [FractionalMoves(problem, brokers, state.space) for brokers in parts]
    solved: list[Fractions] = []
    until, start = clock.part(FRACTIONAL_TIME), _moves(state)
    for number, program in enumerate(programs):
        program.close(_crowds_racks(problem, program, parts[number]))
        own = until.part(1 / (len(programs) - number))
        found = dive(program, own.seconds_left, start)
        if found is None:
            return state, 0.0
        solved.append(found)
    whole = State(problem, _taken_over(state, solved), state.space)
    bound = 0.0 if any(found.outside for found in solved) else sum(found.bound for found in solved)
    cores = [_Core(*one) for one in zip(programs, solved, parts, strict=True)]
    clock = replace(clock, end=clock.end - LATE)
    for number, core in enumerate(cores):
        if whole.outside:
            _place_core(whole, core, clock.part(1 / (len(cores) - number)), random)
    _save(whole, cores, clock, random, bound)
    return whole, bound


def _save(state: State, cores: list[_Core], clock: Clock, random: np.random.Generator, bound: float) -> None:
    """Draw cores anew as long as that saves bytes, then larger ones, once all are within their bands."""
    for larger in LARGER:
        saves = True
        while saves and state.outside == 0 and state.bytes_copied > bound * (1 + NEAR):
            saves = False
            for number, core in enumerate(cores):
                own = clock.part(1 / (len(cores) - number))
                count, filled = CORES[0]
                partitions, hosts = core.part(state, (count * larger, filled), random)
                if own.seconds_left() > 0 and len(partitions):
                    saves |= state.improve(Part(partitions, hosts, own, NODES, GAP, core.brokers))


def _moves(state: State) -> Moves:
    """The moves of a state: each replica that goes, with one that comes in its place, in its rack where it can be."""
    problem = state.problem
    count, rack = problem.brokers, np.append(problem.rack, -1) if problem.racks_are_closed else None
    before, after = (
        problem.slot_partition * (count + 1) + np.where(b < 0, count, b) for b in (problem.broker, state.broker)
    )
    goes, comes = (np.flatnonzero(~np.isin(*sides)) for sides in ((before, after), (after, before)))
    broker = problem.broker[goes], state.broker[comes]
    slots = [
        slots[np.lexsort((0 * one if rack is None else rack[one], problem.slot_partition[slots]))]
        for slots, one in zip((goes, comes), broker, strict=True)
    ]
    return slots[0], state.broker[slots[1]].astype(np.int64)


def _crowds_racks(problem: Problem, program: FractionalMoves, brokers: Ints) -> Flags:
    """By slot of a program and broker: whether going there alone breaks the rule of racks."""
    if problem.racks < 2 or problem.racks_are_closed:
        return np.zeros((len(program.slots), len(brokers)), np.bool_)
    placed = problem.broker >= 0
    rack = np.where(placed, problem.rack[problem.broker], -1)
    count = np.zeros((problem.partitions, problem.racks + 1), np.int64)
    np.add.at(count, (problem.slot_partition, rack), 1)
    own, target = rack[program.slots], problem.rack[brokers]
    there = count[program.partition][:, target]
    same = own[:, None] == target
    racks = np.count_nonzero(count[:, :-1], axis=1)[program.partition]
    alone = (own >= 0) & (count[program.partition, own] == 1)
    after = racks[:, None] - alone[:, None] + (there == 0)
    crowded = there >= problem.most_in_rack[program.partition, None]
    return np.asarray(~same & (crowded | (after < problem.fewest_racks[program.partition, None])))


def _taken_over(state: State, solved: list[Fractions]) -> NDArray[np.int32]:
    """Every replica where most of it goes; partitions that break a rule by that are as in the state."""
    problem = state.problem
    broker = problem.broker.copy()
    stays = np.ones(len(broker))
    for found in solved:
        np.subtract.at(stays, found.slot, found.part)
    stays[problem.must_leave] = -1.0
    for found in solved:
        for at in np.argsort(found.part, kind="stable").tolist():
            slot = found.slot[at]
            if found.part[at] >= stays[slot]:
                broker[slot], stays[slot] = found.broker[at], found.part[at]
    changed = np.unique(problem.slot_partition[broker != problem.broker])
    wrong = changed[[not _is_allowed(problem, int(p), broker) for p in changed]]
    slots, _ = state.slots(wrong)
    broker[slots] = state.broker[slots]
    slots = np.flatnonzero(broker < 0)
    broker[slots] = state.broker[slots]
    return broker


def _is_allowed(problem: Problem, partition: int, broker: NDArray[np.int32]) -> bool:
    own = broker[problem.offsets[partition] : problem.offsets[partition + 1]]
    if np.any(own < 0) or len(set(own.tolist())) < len(own):
        return False
    if problem.racks < 2 or problem.racks_are_closed:
        return True
    in_rack = np.bincount(problem.rack[own[problem.rack[own] >= 0]], minlength=problem.racks)
    spread = np.count_nonzero(in_rack) >= problem.fewest_racks[partition]
    return bool(spread and in_rack.max() <= problem.most_in_rack[partition])


@dataclass(frozen=True, eq=False)
class _Core:
    """What an integer program chooses from, in one group of brokers."""

    program: FractionalMoves
    found: Fractions
    brokers: Ints

    def part(self, state: State, size: tuple[int, float], random: np.random.Generator) -> tuple[Ints, Flags]:
        """Partitions, and brokers that each may be on: those split and the most indifferent ones."""
        program = self.program
        cost = program.costs(self.found.prices)
        choice = np.column_stack([cost, np.where(program.must_leave, np.inf, 0.0)])
        two = np.partition(choice, 1, axis=1)[:, :2] if choice.shape[1] > 1 else np.zeros((len(choice), 2))
        regret = np.diff(np.minimum(two, NOWHERE), axis=1)[:, 0]
        by_byte = regret / np.maximum(program.sizes, TINY)
        split = np.isin(program.slots, self.found.split)
        source, target = state.problem.broker[program.slots], state.broker[program.slots]
        rows = np.flatnonzero(split)
        count, filled = size
        for key, most in ((by_byte, count), (regret, max(1, count // 4))):
            for label in (source, target):
                order = np.lexsort((random.random(len(key)), np.round(key, 9), label))
                first = np.searchsorted(label[order], label[order])
                rank = np.arange(len(order)) - first
                needed = self._unfilled(label, order, first, np.where(split, filled, 0.0)) & (rank < MOST * most)
                rows = np.append(rows, order[(rank < most) | needed])
        rows = np.unique(rows)
        rows = rows[np.isfinite(two[rows, 0]) & (np.isfinite(cost[rows]).any(axis=1))]
        partitions, row = np.unique(program.partition[rows], return_inverse=True)
        hosts = np.zeros((len(partitions), state.problem.brokers), np.bool_)
        by_byte_there = cost[rows] / np.maximum(program.sizes[rows], TINY)[:, None]
        nearest = np.argsort(by_byte_there + random.random(by_byte_there.shape) * EQUAL, axis=1)[:, :HOSTS]
        for column in nearest.T:
            possible = np.isfinite(cost[rows, column])
            hosts[row[possible], self.brokers[column[possible]]] = True
        return partitions, hosts

    def _unfilled(self, label: NDArray[np.int32], order: Ints, first: Ints, split: Floats) -> Flags:
        """By slot in this order: whether those before it, of the same broker, have less load than was split there."""
        load = self.program.loads
        brokers = int(label.max(initial=0)) + 1
        found = np.zeros(len(order), np.bool_)
        for values in load.T:
            at_stake = np.bincount(label, values * split, brokers)[label[order]]
            before = np.append(0.0, np.cumsum(values[order]))[:-1]
            found |= before - before[first] < at_stake
        return found


def _place_core(state: State, core: _Core, clock: Clock, random: np.random.Generator) -> None:
    """Place the core of a group anew."""
    for number, size in enumerate(CORES):
        own = clock.part(1 / (len(CORES) - number))
        if own.seconds_left() <= 0:
            return
        partitions, hosts = core.part(state, size, random)
        if not len(partitions):
            return
        last = core.found.outside or number == len(CORES) - 1
        if state.improve(Part(partitions, hosts, own, NODES, GAP, None if last else core.brokers)):
            return
