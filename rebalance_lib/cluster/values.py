"""What a cluster says of itself, as values in Kafka's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import TopicPartition

DYNAMIC = frozenset({"DYNAMIC_BROKER_CONFIG", "DYNAMIC_TOPIC_CONFIG"})


class RefusedError(ClusterError):
    """The controller refused some partitions of a request; the others were accepted.

    Attributes:
        refused: Kafka's name of the error, for each partition that was refused.
    """

    def __init__(self, message: str, refused: Mapping[TopicPartition, str]) -> None:
        super().__init__(message)
        self.refused = dict(refused)


class RefusedConfigsError(ClusterError):
    """Some resources of a request did not take their settings; the others did.

    Attributes:
        refused: Kafka's reason, by the name of each topic, or the id of each broker, that was refused.
    """

    def __init__(self, message: str, refused: Mapping[str, str]) -> None:
        super().__init__(message)
        self.refused = dict(refused)


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """What the cluster says of a partition now; ``leader`` is None while there is none.

    ``topic_id`` is the id as Kafka prints it: another one under the same name is a topic that was deleted and created
    again. It is empty where the brokers are too old to have ids.
    """

    replicas: tuple[int, ...]
    in_sync: frozenset[int]
    leader: int | None
    internal: bool
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment under way."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas it ends with."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


class Replica(NamedTuple):
    """A replica of a partition, named as Kafka prints it: topic, partition and broker."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"


class HeldReplica(NamedTuple):
    """A replica as a broker holds it in a log dir; ``future`` while it is only being copied there."""

    partition: TopicPartition
    size: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log dir of a broker; one that failed holds nothing.

    Bytes, and whether it is cordoned (Kafka 4.3, KIP-1066), are None where the broker is too old to tell.
    """

    path: str
    online: bool
    total_bytes: int | None
    usable_bytes: int | None
    replicas: list[HeldReplica]
    cordoned: bool | None = None


@dataclass(frozen=True, slots=True)
class ReplicaLogDir:
    """Where a broker keeps a replica, and where it is copying it to; None for neither."""

    current: str | None
    future: str | None


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A setting as it stands: its value and Kafka's name of the place it comes from."""

    value: str
    source: str

    @property
    def dynamic(self) -> bool:
        """Set on this very broker or topic, not inherited."""
        return self.source in DYNAMIC


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries to add to the list in a setting, or to take out of it, whatever else is in it, in one step of Kafka's."""

    values: tuple[str, ...]
    out: bool = False


Change = str | Entries | None  # a new value, entries of a list, or None to delete
