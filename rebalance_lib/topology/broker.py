"""The two names everything else is built from: a broker with its rack, and a partition of a topic."""

from __future__ import annotations

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
