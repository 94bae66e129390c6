"""The parts of a schedule, as plain values: brokers, topics, what is planned, what throttles were there, and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_lib.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerShape:
    """A broker: its log dirs are ``/d0``, ``/d1``, with their bytes; ``nic`` is what it sends or receives a second."""

    id: int
    rack: str
    log_dirs: tuple[int, ...]
    nic: int = 100_000_000


@dataclass(frozen=True, slots=True)
class PartitionShape:
    """A partition before the run, in sync on all its replicas: bytes of each, and bytes written to it a second."""

    replicas: tuple[int, ...]
    size: int
    write_rate: int


@dataclass(frozen=True, slots=True)
class TopicShape:
    """A topic before the run."""

    name: str
    min_isr: int
    partitions: tuple[PartitionShape, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster before the run."""

    brokers: tuple[BrokerShape, ...]
    topics: tuple[TopicShape, ...]

    def broker(self, broker: int) -> BrokerShape:
        """The broker with this id."""
        return next(one for one in self.brokers if one.id == broker)

    def topic(self, name: str) -> TopicShape:
        """The topic with this name."""
        return next(one for one in self.topics if one.name == name)

    def partition(self, topic: str, partition: int) -> PartitionShape:
        """One partition."""
        return self.topic(topic).partitions[partition]

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Shape:
        """Read it from plain data."""
        return cls(
            tuple(BrokerShape(**{**one, "log_dirs": tuple(one["log_dirs"])}) for one in given["brokers"]),
            tuple(
                TopicShape(
                    one["name"],
                    one["min_isr"],
                    tuple(
                        PartitionShape(**{**part, "replicas": tuple(part["replicas"])}) for part in one["partitions"]
                    ),
                )
                for one in given["topics"]
            ),
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """What is planned for one partition."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Planned:
        """Read it from plain data."""
        log_dirs = given["log_dirs"]
        return cls(
            given["topic"],
            given["partition"],
            tuple(given["replicas"]),
            None if log_dirs is None else tuple(log_dirs),
        )


@dataclass(frozen=True, slots=True)
class Prior:
    """Throttles before the run: dynamic and static rates by broker, the cluster's default, and lists by topic.

    Brokers are strings, since the keys of a JSON object are.
    """

    rates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    static: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    default: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Prior:
        """Read it from plain data."""
        return cls(given["rates"], given["static"], given["default"], given["lists"])


@dataclass(frozen=True, slots=True)
class Fault:
    """What strikes, when, and how: ``kind`` is the name of a function of `simulator.faults`, ``args`` its arguments.

    A fault that lasts has ``seconds`` among its arguments.
    """

    at: float
    kind: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{name} {value}" for name, value in self.args.items())
        return f"{self.kind.replace('_', ' ')}" + (f" ({words})" if words else "")
