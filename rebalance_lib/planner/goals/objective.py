"""What a plan is judged by: the one figure that is to be small.

The objective of a goal is its measure; all that is within the goal's limit counts as met, and as good. The objective of
a list is the mean of those of its goals, each counting twice as much as the next. Of two layouts as good, the one that
has less outside of the bands counts as better, and after that the one that copies fewer bytes.

Example: goals disk and leaders, with limits of 1.01 and 1.02. Measures of 1.04 and 1.00 give (2 * 1.04 + 1.02) / 3 =
1.0333; of 1.01 and 1.02, and all that are below, 1.0133.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.goals import GOALS
from rebalance_lib.planner.goals.balance import Balance
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.shares import band

if TYPE_CHECKING:
    from rebalance_lib.planner.goals.goal import Goal, View

GAIN = 9e-4
"""Of the objective: layouts that differ by less are as good. What is asked for is 0.1 % from the optimum."""


def objective_of(goal: Goal, view: View) -> float | None:
    """The measure of a goal, or its limit if that is larger; None where it says nothing."""
    measure = view.measure(goal)
    return None if measure is None else max(measure, goal.limit(view))


def weights_of(view: View) -> dict[str, float]:
    """How much each goal of the request counts that has something to say, all together 1."""
    weight = view.request.weight_of
    known = {name: weight(name) for name in view.request.goal_tolerances if view.measure(GOALS[name]) is not None}
    total = sum(known.values())
    return {name: value / total for name, value in known.items()}


def objective(view: View) -> float:
    """The mean over the goals of the request; 1 if none of them says anything."""
    weights = weights_of(view)
    return sum(part * (objective_of(GOALS[name], view) or 0.0) for name, part in weights.items()) if weights else 1.0


def outside(view: View) -> float:
    """How far loads are out of the bands of their goals, above and below, in shares."""
    off = 0.0
    for name, tolerance in view.request.goal_tolerances.items():
        goal = GOALS[name]
        if not isinstance(goal, Balance) or goal.resource not in view.resources:
            continue
        load, share = view.load(goal.resource), view.share(goal.resource)
        low, high = share * (1 - tolerance), share * (1 + tolerance)
        if goal.resource in {Resource.REPLICAS, Resource.LEADERS}:
            low, high = band(share, tolerance)
        excess = np.maximum(0.0, load - high) + np.maximum(0.0, low - load)
        off += view.request.weight_of(name) * float((excess[share > 0] / share[share > 0]).sum())
    return off
