"""What a plan aims at: a list of goals, each with a tolerance, the first one counting the most.

Hard goals hold whatever else is asked for: `racks`, `broker_sets`, `capacity` and `min_topic_leaders`. The others are
pursued in the order of the list, each counting twice as much as the next where two cannot be had at once. A goal says
of itself how far the cluster is from it before and after a plan, how near any plan could come, and if it is not met,
why not.

One module each; `balance` has the goals of all resources, which differ in nothing but the resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rebalance_lib.planner.goals.balance import BALANCE
from rebalance_lib.planner.goals.broker_sets import BROKER_SETS
from rebalance_lib.planner.goals.capacity import CAPACITY
from rebalance_lib.planner.goals.failover import FAILOVER
from rebalance_lib.planner.goals.goal import Goal, Verdict, View
from rebalance_lib.planner.goals.log_dirs import LOG_DIRS
from rebalance_lib.planner.goals.min_topic_leaders import MIN_TOPIC_LEADERS
from rebalance_lib.planner.goals.racks import RACKS
from rebalance_lib.planner.goals.topic_leaders import TOPIC_LEADERS
from rebalance_lib.planner.goals.topic_replicas import TOPIC_REPLICAS
from rebalance_lib.planner.request import Request

__all__ = ["GOALS", "Goal", "Verdict", "View", "verdicts", "verdicts_by_set"]

_LISTED = (RACKS, BROKER_SETS, CAPACITY, MIN_TOPIC_LEADERS, *BALANCE, TOPIC_LEADERS, FAILOVER, TOPIC_REPLICAS, LOG_DIRS)
GOALS: dict[str, Goal] = {one.name: one for one in _LISTED}


def verdicts(before: View, after: View, best: Mapping[str, float]) -> list[Verdict]:
    """What each goal that was asked for says of a plan, hard ones first, then in the order of the list.

    Args: `best` has by goal what any plan could come to, where that is known.
    """
    found = (goal.verdict(before, after, best.get(goal.name)) for goal in _goals_of(after.request))
    return [verdict for verdict in found if verdict is not None]


def verdicts_by_set(
    before: View, after: View, parts: Iterable[tuple[View, View]], best: Sequence[Mapping[str, float]]
) -> list[Verdict]:
    """The same where there are sets of brokers: each goal speaks of the set that is farthest from it.

    Args: `parts` and `best` are by set.
    """
    views = list(parts)
    bests = best or [{}] * len(views)
    found = []
    for goal in _goals_of(after.request):
        if goal.of_cluster:
            of_goal = [goal.verdict(before, after)]
        else:
            of_goal = [goal.verdict(*pair, of_set.get(goal.name)) for pair, of_set in zip(views, bests, strict=True)]
        known = [verdict for verdict in of_goal if verdict is not None]
        if known:
            worst = max(known, key=lambda verdict: verdict.after / verdict.limit)
            found.append(replace(worst, before=max(verdict.before for verdict in known)))
    return found


def _goals_of(request: Request) -> list[Goal]:
    hard = [goal for goal in GOALS.values() if goal.hard]
    return [*hard, *(GOALS[name] for name in request.goal_tolerances if name in GOALS)]
