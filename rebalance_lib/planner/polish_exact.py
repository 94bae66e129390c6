"""Improve a placement by linear and integer programs, for as long as there is time.

Goal:
    First less of all loads outside their bands, in shares; then fewer bytes copied, counted from where replicas were
    before the plan. A placement is only ever replaced by a better one in this order.

Algorithm:
    The linear program of the certificate says which replicas should move where, in fractions, and how few bytes any
    plan copies; `polish_fractional` makes a placement of whole replicas of it, which is mostly all there is to do.

    Rounds improve what is left. A round takes a few brokers and some of the partitions on them. If loads are outside
    their bands, the brokers are the worst one, those furthest on the other side of it, and some at random; otherwise
    all are random. Where no replica can change its rack, they are of one rack. Half of the partitions are ones that
    the plan moves, the larger ones more often, since only these can save bytes. Everything else stays; the integer
    program finds the best places of these among these brokers, or back where they were.

    It ends when time is up, near the bound, or after ``PATIENCE`` rounds in a row without an improvement.
    Chance has a seed, and every program a counted number of nodes, so that only the clock decides where it ends.

Example:
    Brokers 0 and 1 should have 5 bytes each. Before the plan, partitions of 4, 3, 2 and 1 bytes were on broker 0; the
    plan moves those of 4 and 2, so that broker 1 has 6. A round finds 4 and 1, or 3 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.polish_fractional import NEAR, rounded
from rebalance_lib.planner.polish_part import Clock, Part, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Floats, Ints, Problem

# Tried on `gen.py skew`, 2,000 partitions and 12 brokers, five loads, one run of 8 seconds each on a busy machine, from
# 1.31 times the bound: 5 brokers and 500 variables came to 1.28 in 9 rounds, 3 and 80 to 1.22 in 453, 4 and 120 to 1.21
# in 269; drawing large partitions more often, 1.17. How many rounds there were differs fourfold between runs.
BROKERS = 4  # of a round
VARIABLES = 120
NODES = 40
GAP = 1e-6  # of all bytes
MOVED = 0.5  # of the partitions of a round: those that the plan moves, which can save bytes
PATIENCE = 60


@dataclass(frozen=True, eq=False)
class Polished:
    """A placement, slot by slot as in the problem, the leader first."""

    broker: NDArray[np.int32]
    outside: float  # the sum of loads outside their bands, in shares
    bytes_copied: int
    rounds: int
    improvements: int


def polish(
    problem: Problem, broker: NDArray[np.int32], clock: Clock, *, seed: int = 0, space: Floats | None = None
) -> Polished:
    """Improve a placement of the problem's replicas; every slot must have a broker, and racks be kept.

    ``space`` has by broker the bytes that may arrive, old and new copies counted; as many as there are if not given.
    """
    state, random = State(problem, broker.copy(), space), np.random.default_rng(seed)
    found, bound = rounded(state, clock, random)
    rounds, improvements, idle = 0, 0, 0
    if found.is_better_than(state):
        state, improvements = found, 1
    while idle < PATIENCE and clock.seconds_left() > (clock.repair if state.outside else 0.0):
        if state.outside == 0 and state.bytes_copied <= bound * (1 + NEAR):
            break
        rounds += 1
        idle += 1
        brokers = _brokers(state, random)
        part = _part(state, brokers, random, clock) if len(brokers) > 1 else None
        if part is not None and state.improve(part):
            improvements += 1
            idle = 0
    return Polished(state.broker, state.outside, state.bytes_copied, rounds, improvements)


def _brokers(state: State, random: np.random.Generator) -> Ints:
    """The worst one, and those that could help it; any, if none is outside of its bands."""
    problem, off = state.problem, state.off(state.loads)
    pool = np.flatnonzero(~problem.leaves & (problem.takes | problem.gives))
    first = np.empty(0, np.int64)
    by_load = max(off, key=lambda one: float(np.abs(one).max(initial=0.0)), default=np.zeros(problem.brokers))
    if by_load.any():
        number = next(at for at, one in enumerate(off) if one is by_load)
        share = problem.loads[number].share
        fill = np.divide(state.loads[number], share, out=np.zeros_like(share), where=share > 0)
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


def _part(state: State, brokers: Ints, random: np.random.Generator, clock: Clock) -> Part | None:
    """Partitions of these brokers: first ones that the plan moves, then any; None if there are none."""
    problem = state.problem
    chosen = np.zeros(problem.brokers, np.bool_)
    chosen[brokers] = True
    here = np.unique(problem.slot_partition[chosen[state.broker]])
    here = random.permutation(here[problem.movable[here]])
    count = max(2, VARIABLES // (len(brokers) + 1))
    moved = here[state.moved[here]]
    # The larger ones more often: each is drawn with a chance by its bytes.
    rank = random.exponential(size=len(moved)) / np.maximum(problem.size[moved], 1)
    moved = moved[np.argsort(rank, kind="stable")[: int(count * MOVED)]]
    rest = here[~np.isin(here, moved)][: count - len(moved)]
    partitions = np.sort(np.append(moved, rest))
    return Part(partitions, np.tile(chosen, (len(partitions), 1)), clock, NODES, GAP) if len(partitions) else None
