"""The optimum that bounds are compared with, for small clusters: an integer program, solved by HiGHS.

Variables are whether partition p has a replica on broker b. At
most ``NODES`` nodes are looked at, so that the answer depends on nothing but the cluster. If the nodes do not suffice,
what HiGHS has proven by then is still a lower bound, and the answer says that it is not exact.

Rows are the rules of an allowed placement (see `Problem`), and either the bands of all loads, with the bytes that
arrive as objective, or one load below a level of the shares, with the level as objective. Only movable partitions have
variables, and only for brokers where they are or may be.

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

NODES = 300
LEVEL_GAP = 1e-4  # of a level: to prove the last digits of it takes longer than all else
SAFETY = 1e-6  # of a bound that is not exact


@dataclass(frozen=True, slots=True)
class Optimum:
    """The least there can be, or a lower bound of it; None if there is no allowed placement within the bands."""

    value: float | None
    exact: bool


def least_bytes(problem: Problem) -> Optimum:
    """The fewest bytes that bring all loads into their bands."""
    program = Program(problem)
    for loads in problem.loads:
        program.keep_in_band(loads, *problem.band(loads))
    unit = max(1.0, float(problem.size[problem.movable].max(initial=0)))
    cost = np.where(program.arrives, problem.size[program.partition] / unit, 0.0)
    found = program.solve(cost, nodes=NODES)
    if found.infeasible:
        return Optimum(None, True)
    if found.chosen is None or not found.proven:
        return Optimum(float(np.ceil(found.bound * unit * (1 - SAFETY))), False)
    arriving = found.chosen & program.arrives
    return Optimum(float(problem.size[program.partition[arriving]].sum()), True)


def best_possible(problem: Problem, loads: Loads) -> Optimum:
    """The lowest level that one load can be brought to, whatever becomes of the others."""
    counted = (loads.share > 0) & ~problem.leaves
    if not counted.any():
        return Optimum(0.0, True)
    program = Program(problem)
    level = program.add_level(loads)
    cost = np.zeros(program.columns)
    cost[level] = 1.0
    found = program.solve(cost, nodes=NODES, gap=LEVEL_GAP)
    if found.infeasible:
        return Optimum(None, True)
    return Optimum(found.bound * (1 - SAFETY), found.proven)
