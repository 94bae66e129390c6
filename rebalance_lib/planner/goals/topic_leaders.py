"""Leaders of each topic spread: the most that one broker leads of a topic, over an even part in whole leaders.

The 99th percentile over topics with at least as many partitions as there are brokers.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.resources import Resource


def spread(view: View, partition: np.ndarray, broker: np.ndarray, among: np.ndarray) -> float | None:
    """The most of one topic on one broker over an even part, at the 99th percentile over wide topics."""
    brokers = max(1, int(among.sum()))
    counts = np.bincount(view.model.topic[partition], minlength=len(view.model.topics))
    wide = np.flatnonzero(counts >= brokers)
    if not len(wide):
        return None
    row = np.full(len(counts), -1)
    row[wide] = np.arange(len(wide))
    of_topic = row[view.model.topic[partition]]
    chosen = (of_topic >= 0) & (broker >= 0)
    cells = np.bincount(
        of_topic[chosen] * view.model.brokers + broker[chosen], minlength=len(wide) * view.model.brokers
    )
    most = cells.reshape(len(wide), -1).max(axis=1)
    return float(np.quantile(most / np.ceil(counts[wide] / brokers), 0.99))


class _TopicLeaders(Goal):
    def measure(self, view: View) -> float | None:
        return spread(view, np.arange(len(view.leader)), view.leader, view.sharers(Resource.LEADERS))


TOPIC_LEADERS = _TopicLeaders("topic_leaders", "the leaders of each topic spread over brokers")
