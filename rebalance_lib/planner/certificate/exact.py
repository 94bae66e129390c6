"""The bounds of small clusters by integer programs, which know that replicas are whole: exact where HiGHS proves it.

Variables are whether partition p has a replica on broker b. Rows are the rules of an allowed placement (see `Problem`),
and either the bands of all loads, with the bytes that arrive as objective, or one load below a level of the shares,
with the level as objective. Only movable partitions have variables, and only for brokers where they are or may be.

The search is limited by what it counts, never by the clock, so that the answer depends on nothing but the cluster. If
that does not suffice, what HiGHS has proven by then is still a lower bound, and the answer says that it is not exact.

Example: two brokers with a share of 5 bytes each, replicas of 4, 3, 2 and 1 bytes all on broker 0, tolerance 0. Two
sets of replicas have 5 bytes: 4 and 1, or 3 and 2; so 5 bytes are copied, and the level is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.program import Program

if TYPE_CHECKING:
    from rebalance_lib.planner.certificate.problem import Loads, Problem

COLUMNS = 600  # movable partitions times brokers: 60 and 10, the largest that gaps to the optimum were measured on
CHECKS = (
    20  # for a figure. Of 40 random clusters bytes are exact on 37 and 58 % of levels are, in 0.1 s; with 200, 60 %
)
NODES = 300
LEVEL_GAP = 1e-4  # of a level: to prove the last digits of it takes longer than all else
TOLERANCE = 1e-7  # of HiGHS, by column: a bound may be too high by so much, and costs below it count as nothing
WIDER = 1e-7  # of a share: HiGHS leaves out loads below 1e-9 of one


@dataclass(frozen=True, slots=True)
class Optimum:
    """The least there can be, or a lower bound of it; None if there is no allowed placement within the bands."""

    value: float | None
    exact: bool


def is_small(problem: Problem) -> bool:
    """Whether integer programs are quick for it."""
    return int(np.count_nonzero(problem.movable)) * problem.brokers <= COLUMNS


def least_bytes(problem: Problem, checks: int | None = CHECKS) -> Optimum:
    """The fewest bytes that bring all loads into their bands."""
    program = Program(problem)
    for loads in problem.loads:
        low, high = problem.band(loads)
        program.keep_in_band(loads, low - WIDER * loads.share, high + WIDER * loads.share)
    unit = max(1.0, float(problem.size[problem.movable].max(initial=0)))
    cost = np.where(program.arrives, problem.size[program.partition] / unit, 0.0)
    unclear = TOLERANCE * program.columns
    found = program.solve(cost, nodes=NODES, checks=checks)
    if found.infeasible:
        return Optimum(None, True)
    if found.chosen is None or not found.proven or np.any((cost > 0) & (cost < unclear)):
        return Optimum(float(np.ceil(max(0.0, found.bound - unclear) * unit)), False)
    arriving = found.chosen & program.arrives
    return Optimum(float(problem.size[program.partition[arriving]].sum()), True)


def best_possible(problem: Problem, loads: Loads, bound: float = 0.0, checks: int | None = CHECKS) -> Optimum:
    """The lowest level that one load can be brought to, whatever becomes of the others; `bound` is known already."""
    counted = (loads.share > 0) & ~problem.leaves
    if not counted.any():
        return Optimum(0.0, True)
    program = Program(problem)
    level = program.add_level(loads, at_least=bound)
    cost = np.zeros(program.columns)
    cost[level] = 1.0
    found = program.solve(cost, nodes=NODES, gap=LEVEL_GAP, checks=checks)
    if found.infeasible:
        return Optimum(None, True)
    return Optimum(max(bound, found.bound - TOLERANCE * program.columns), found.proven)
