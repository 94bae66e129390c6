"""Replicas of each topic spread: the most that one broker holds of a topic, over an even part.

Replicas that move go to brokers that are not full of their topic; none moves for this alone.
"""

from __future__ import annotations

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.goals.topic_leaders import spread


class _TopicReplicas(Goal):
    def measure(self, view: View) -> float | None:
        return spread(view, "replicas", view.stays)


TOPIC_REPLICAS = _TopicReplicas("topic_replicas", "the replicas of each topic spread over brokers")
