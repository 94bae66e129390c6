"""What a plan aims at: a list of goals, each with a tolerance, the first one counting the most.

Hard goals hold whatever else is asked for: `racks` and `capacity`. The others are pursued in the order of the list,
each counting twice as much as the next where two cannot be had at once. A goal says of itself how far the cluster is
from it before and after a plan, how near any plan could come, and if it is not met, why not.

One module each; `balance` has the goals of all resources, which differ in nothing but the resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lib.planner.goals.balance import BALANCE
from rebalance_lib.planner.goals.capacity import CAPACITY
from rebalance_lib.planner.goals.failover import FAILOVER
from rebalance_lib.planner.goals.goal import Goal, Verdict, View
from rebalance_lib.planner.goals.racks import RACKS
from rebalance_lib.planner.goals.topic_leaders import TOPIC_LEADERS
from rebalance_lib.planner.goals.topic_replicas import TOPIC_REPLICAS

__all__ = ["GOALS", "Goal", "Verdict", "View", "verdicts"]

GOALS: dict[str, Goal] = {one.name: one for one in (RACKS, CAPACITY, *BALANCE, TOPIC_LEADERS, FAILOVER, TOPIC_REPLICAS)}


def verdicts(before: View, after: View, best: Mapping[str, float]) -> list[Verdict]:
    """What each goal that was asked for says of a plan, hard ones first, then in the order of the list.

    Args: `best` has by goal what any plan could come to, where that is known.
    """
    request = after.request
    hard = [goal for goal in GOALS.values() if goal.hard]
    asked = [GOALS[name] for name in request.goal_tolerances if name in GOALS]
    found = (goal.verdict(before, after, best.get(goal.name)) for goal in [*hard, *asked])
    return [verdict for verdict in found if verdict is not None]
