"""A least number of leaders on each broker, for chosen topics: 1 plus the part of brokers and topics that lack some.

Each broker that may lead counts once for each of these topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.scope import Scope

    Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lacks:
    """Who leads less than the least of which topic, topic by topic; all but the last are as long as one another."""

    topic: Ints
    broker: Ints
    led: Ints  # how many partitions of it the broker leads
    pairs: int  # of brokers that may lead and chosen topics, those that lack nothing too


def find_lacks(model: ClusterModel, scope: Scope, leader: NDArray[np.int32]) -> Lacks | None:
    """What chosen topics lack with these leaders; None if none of them is here, or nobody may lead."""
    if scope.min_leaders is None:
        return None
    here = np.bincount(model.topic, minlength=len(model.topics)) > 0
    chosen = np.flatnonzero(here & (scope.min_leaders > 0))
    brokers = np.flatnonzero(scope.may_lead)
    if not len(chosen) or not len(brokers):
        return None
    row = np.full(len(model.topics), -1)
    row[chosen] = np.arange(len(chosen))
    counted = np.flatnonzero((row[model.topic] >= 0) & (leader >= 0))
    cells = row[model.topic[counted]] * model.brokers + leader[counted]
    led = np.bincount(cells, minlength=len(chosen) * model.brokers).reshape(len(chosen), -1)[:, brokers]
    at_topic, at_broker = np.nonzero(led < scope.min_leaders[chosen][:, None])
    return Lacks(chosen[at_topic], brokers[at_broker], led[at_topic, at_broker], led.size)


class _MinTopicLeaders(Goal):
    def measure(self, view: View) -> float | None:
        lacks = find_lacks(view.model, view.scope, view.leader)
        return None if lacks is None else 1 + len(lacks.topic) / lacks.pairs

    def why(self, view: View) -> str:
        model, lacks, least = view.model, find_lacks(view.model, view.scope, view.leader), view.scope.min_leaders
        if lacks is None or least is None:
            return super().why(view)
        topic, brokers = int(lacks.topic[0]), int(view.scope.may_lead.sum())
        partitions, wanted = int(np.count_nonzero(model.topic == topic)), int(least[topic])
        broker = int(lacks.broker[0])
        found = f"broker {model.broker_ids[broker]} leads {lacks.led[0]} of {model.topics[topic]} instead of {wanted}"
        if len(lacks.topic) > 1:
            found += f", and there are {len(lacks.topic) - 1} more such cases"
        if partitions < brokers * wanted:
            return (
                f"{found}: the topic has {partitions} partitions, and {brokers} brokers need {brokers * wanted}; add "
                "partitions, or ask for less"
            )
        of_topic = np.repeat(model.topic == topic, np.diff(view.layout.offsets))
        held = int(np.count_nonzero(of_topic & (view.layout.broker == broker)))
        return (
            f"{found}: it holds {held} of {partitions} partitions, and no other replica may move there, or racks, disk "
            "space, its network_out or a budget are in the way; allow more, or ask for less"
        )


MIN_TOPIC_LEADERS = _MinTopicLeaders(
    "min_topic_leaders", "a least number of leaders of chosen topics on each broker", hard=True
)
