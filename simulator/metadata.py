"""What each broker knows of the cluster: metadata that lags behind the controller.

A broker replays the controller's log. One that is behind by two seconds answers a request as the cluster was two
seconds ago: a client that asks one broker after the other may see a partition go back in time. A broker's own view
never goes back: if its lag grows, its view stands still until the lag is reached.

Example: broker 1 keeps up, broker 2 is 3 s behind.

>>> metadata = Metadata()
>>> metadata.lag[2] = 3.0
>>> t0 = TopicPartition("t", 0)
>>> metadata.record(t0, "as it was", 0.0)
>>> metadata.record(t0, "as it is", 10.0)
>>> [metadata.partitions(["t"], metadata.view(broker, 11.0)) for broker in (1, 2)]
[{TopicPartition(topic='t', partition=0): 'as it is'}, {TopicPartition(topic='t', partition=0): 'as it was'}]
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple

from rebalance_lib.topology import Broker, TopicPartition

HISTORY_SECONDS = 10.0  # nobody is further behind


class BrokerList(NamedTuple):
    """The brokers that are registered, and those of them that are not fenced."""

    registered: dict[int, Broker]
    alive: frozenset[int]


class Metadata:
    """The short history of the cluster, from which brokers answer.

    Attributes:
        lag: By how many seconds a broker's metadata is behind; those that are not listed keep up.
    """

    def __init__(self) -> None:
        self.lag: dict[int, float] = {}
        self._views: dict[int, float] = {}
        self._partitions: dict[str, dict[TopicPartition, list[tuple[float, Any]]]] = {}
        self._brokers: list[tuple[float, BrokerList]] = []

    def view(self, broker: int, now: float) -> float:
        """The time up to which a broker knows the cluster."""
        view = max(self._views.get(broker, -inf), now - self.lag.get(broker, 0.0))
        self._views[broker] = view
        return view

    def record(self, partition: TopicPartition, known: Any, now: float) -> None:
        """A partition changed; None if it was deleted."""
        history = self._partitions.setdefault(partition.topic, {}).setdefault(partition, [])
        _append(history, known, now)

    def record_brokers(self, known: BrokerList, now: float) -> None:
        """A broker came or went."""
        _append(self._brokers, known, now)

    def partitions(self, topics: Iterable[str] | None, as_of: float) -> dict[TopicPartition, Any]:
        """The partitions of these topics (of all, without names), as they were at this time."""
        found = {}
        for topic in sorted(self._partitions) if topics is None else topics:
            for partition, history in self._partitions.get(topic, {}).items():
                since, known = history[-1]
                if since > as_of:
                    known = _at(history, as_of)
                if known is not None:
                    found[partition] = known
        return found

    def brokers(self, as_of: float) -> BrokerList:
        """The brokers as they were at this time."""
        known: BrokerList = _at(self._brokers, as_of) or self._brokers[0][1]
        return known


def _append(history: list[tuple[float, Any]], known: Any, now: float) -> None:
    history.append((now, known))
    while len(history) > 2 and history[1][0] < now - HISTORY_SECONDS:
        del history[0]


def _at(history: list[tuple[float, Any]], time: float) -> Any:
    for since, known in reversed(history):
        if since <= time:
            return known
    return None
