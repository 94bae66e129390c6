"""The two names everything else is built from: a broker with its rack, and a partition of a topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker's id and, where ``broker.rack`` is set, its rack."""

    id: int
    rack: str | None = None


class TopicPartition(NamedTuple):
    """A partition of a topic; sorts by topic, then by number, and prints as Kafka prints it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, in the order given: the shape that Kafka's requests take."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers
