"""Leaders of each topic spread: the most that one broker leads of a topic, over an even part in whole leaders.

The 99th percentile over topics with at least as many partitions as there are brokers.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.resources import Resource


def spread(view: View, counted: str, among: np.ndarray) -> float | None:
    """The most of one topic on one broker over an even part, at the 99th percentile over wide topics.

    Args: `counted` is what is spread, ``leaders`` or ``replicas``.
    """
    brokers, everyone = max(1, int(among.sum())), view.model.brokers
    topic, broker = view.model.topic, view.leader
    if counted == "replicas":
        topic, broker = np.repeat(topic, np.diff(view.layout.offsets)), view.layout.broker
    counts = np.bincount(topic, minlength=len(view.model.topics))
    places, others = np.empty(0, np.int64), np.zeros((0, everyone), np.int32)
    if view.model.rest is not None and view.model.rest.topics.names:
        places, others = view.model.rest.topics.places_in(view.model), getattr(view.model.rest.topics, counted)
        counts = np.pad(counts, (0, max(0, int(places.max()) + 1 - len(counts))))
        counts[places] += others.sum(axis=1)
    wide = np.flatnonzero(counts >= brokers)
    if not len(wide):
        return None
    row = np.full(len(counts), -1)
    row[wide] = np.arange(len(wide))
    of_topic = row[topic]
    chosen = (of_topic >= 0) & (broker >= 0)
    cells = np.bincount(of_topic[chosen] * everyone + broker[chosen], minlength=len(wide) * everyone)
    table = cells.reshape(len(wide), -1)
    table[row[places][row[places] >= 0]] += others[row[places] >= 0]
    return float(np.quantile(table.max(axis=1) / np.ceil(counts[wide] / brokers), 0.99))


class _TopicLeaders(Goal):
    def measure(self, view: View) -> float | None:
        return spread(view, "leaders", view.sharers(Resource.LEADERS))


TOPIC_LEADERS = _TopicLeaders("topic_leaders", "the leaders of each topic spread over brokers")
