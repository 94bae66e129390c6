"""What a step brings about, as values that a dry run can show and a test can compare.

A step yields first what was decided about the request (started, overridden, cancelled, skipped, refused),
then its consequences in the order in which they take hold: new replicas start, the leader moves, the ISR
changes, replicas stop, the reassignment is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rebalance_lib.reassignment.state import Assignment, PartitionState, Replicas, without


class SkipReason(Enum):
    """Why a controller leaves a partition as it is without calling the request wrong."""

    ALREADY_MOVING = "already moving"
    SAME_REPLICAS = "same replicas"
    TARGETS_DEAD = "all targets dead"
    TOPIC_DELETED = "topic being deleted"


@dataclass(frozen=True, slots=True)
class RequestSkipped:
    """The request changes nothing."""

    reason: SkipReason
    message: str


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The request is answered with one of Kafka's errors."""

    error: str
    message: str


@dataclass(frozen=True, slots=True)
class ReassignmentStarted:
    """A partition at rest has a target; ``original`` has the order of replicas, which is then lost."""

    original: Replicas
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class ReassignmentOverridden:
    """A partition that was moving has a new target; the older one is dropped."""

    dropped: Replicas
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class ReassignmentCancelled:
    """A partition that was moving stays where it came from."""

    dropped: Replicas
    replicas: Replicas


@dataclass(frozen=True, slots=True)
class ReplicasReordered:
    """The same brokers in another order: another preferred leader, no data moves."""

    before: Replicas
    after: Replicas


@dataclass(frozen=True, slots=True)
class TargetDiffers:
    """The controller accepted the request but heads for another target."""

    requested: Replicas
    target: Replicas


@dataclass(frozen=True, slots=True)
class ReassignmentStuck:
    """Replicas both added and removed: only a cancel or a target that adds a broker helps out."""

    replicas: Replicas


@dataclass(frozen=True, slots=True)
class TargetsNotAlive:
    """Target replicas on brokers that are not alive: the reassignment waits for their return."""

    brokers: Replicas


@dataclass(frozen=True, slots=True)
class ReplicasStarted:
    """Brokers create the replica and begin to fetch from the leader."""

    brokers: Replicas


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Another leader, or none."""

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class IsrChanged:
    """Other in-sync replicas."""

    before: Replicas
    after: Replicas


@dataclass(frozen=True, slots=True)
class EligibleLeadersChanged:
    """Other replicas outside the ISR that are known to have all that was committed."""

    before: Replicas
    after: Replicas


@dataclass(frozen=True, slots=True)
class ReplicasStopped:
    """Brokers stop the replica and delete its log."""

    brokers: Replicas


@dataclass(frozen=True, slots=True)
class ReassignmentCompleted:
    """The target is reached; ``caught_up`` is the ISR that allowed it, before removed replicas left it."""

    assignment: Assignment
    caught_up: Replicas


@dataclass(frozen=True, slots=True)
class DeletionHeldOff:
    """The topic is to be deleted, once none of its partitions is moving."""


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """The partition is gone, with whatever moved it."""


Event = (
    RequestSkipped
    | RequestRefused
    | ReassignmentStarted
    | ReassignmentOverridden
    | ReassignmentCancelled
    | ReplicasReordered
    | TargetDiffers
    | ReassignmentStuck
    | TargetsNotAlive
    | ReplicasStarted
    | LeaderChanged
    | IsrChanged
    | EligibleLeadersChanged
    | ReplicasStopped
    | ReassignmentCompleted
    | DeletionHeldOff
    | TopicDeleted
)


def consequences(before: PartitionState, after: PartitionState) -> tuple[Event, ...]:
    """What two states of a partition tell apart, in the order in which it takes hold."""
    events: list[Event] = []
    if started := without(after.replicas, before.replicas):
        events.append(ReplicasStarted(started))
    if after.leader != before.leader:
        events.append(LeaderChanged(before.leader, after.leader))
    if frozenset(after.isr) != frozenset(before.isr):
        events.append(IsrChanged(before.isr, after.isr))
    if after.elr != before.elr:
        events.append(EligibleLeadersChanged(before.elr, after.elr))
    if stopped := without(before.replicas, after.replicas):
        events.append(ReplicasStopped(stopped))
    return tuple(events)
