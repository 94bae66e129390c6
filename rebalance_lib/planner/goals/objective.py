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


def objective_of(goal: Goal, view: View) -> float | None:
    """The measure of a goal, or its limit if that is larger; None where it says nothing."""
    measure = goal.measure(view)
    return None if measure is None else max(measure, goal.limit(view))


def objective(view: View) -> float:
    """The mean over the goals of the request; 1 if none of them says anything."""
    weighed = {name: view.request.weight_of(name) for name in view.request.goal_tolerances if name in GOALS}
    found = {name: objective_of(GOALS[name], view) for name in weighed}
    known = {name: value for name, value in found.items() if value is not None}
    total = sum(weighed[name] for name in known)
    return sum(weighed[name] * value for name, value in known.items()) / total if total else 1.0


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
        off += view.request.weight_of(name) * float((excess / np.maximum(share, 1e-300))[share > 0].sum())
    return off
