"""A run as lines of text, for a dry run and for logs.

One line per event, led by the partition; a request's line comes first, what follows from it is indented:

    t-0  reassign to 2,3,4
    t-0    starts: 1,2,3 to 2,3,4, adding 4, removing 1
    t-0    broker 4 begins to fetch
    t-0  the leader asks for ISR 1,2,3,4
    t-0    leader 1 to 2
    t-0    ISR 1,2,3 to 2,3,4
    t-0    broker 1 stops and deletes its log
    t-0    complete: 2,3,4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lib.reassignment.controller import DeleteTopic, Transition
from rebalance_lib.reassignment.events import (
    DeletionHeldOff,
    EligibleLeadersChanged,
    Event,
    IsrChanged,
    LeaderChanged,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentOverridden,
    ReassignmentStarted,
    ReassignmentStuck,
    ReplicasReordered,
    ReplicasStarted,
    ReplicasStopped,
    RequestRefused,
    RequestSkipped,
    TargetDiffers,
    TargetsNotAlive,
    TopicDeleted,
)
from rebalance_lib.reassignment.inputs import (
    AlterPartition,
    Cancel,
    ElectPreferredLeader,
    FenceBroker,
    Input,
    Reassign,
    UncleanShutdown,
    UnfenceBroker,
)
from rebalance_lib.reassignment.phases import phases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rebalance_lib.reassignment.state import Assignment, Replicas


def timeline(transitions: Iterable[Transition]) -> Iterator[str]:
    """The inputs of a run and what each brought about, a line each."""
    for transition in transitions:
        yield f"{transition.partition}  {describe_request(transition.request)}"
        for event in transition.events:
            yield f"{transition.partition}    {describe_event(event)}"


def phase_lines(transitions: Iterable[Transition]) -> Iterator[str]:
    """The phases of one partition's run, with what is assigned, in sync and leading after each."""
    for step in phases(transitions):
        held = f"RS {_list(step.in_memory.replicas)}{_pending(step.in_memory)}"
        leader = "none" if step.leader is None else step.leader
        yield f"{step.phase.name:<4}  {step.phase.meaning}: {held}, ISR {_list(step.isr)}, leader {leader}"


def describe_request(request: Input | DeleteTopic) -> str:  # noqa: PLR0911 - one line for each kind of input
    """An input in words."""
    match request:
        case Reassign(replicas=replicas):
            return f"reassign to {_list(replicas)}"
        case Cancel():
            return "cancel"
        case AlterPartition(isr=isr):
            return f"the leader asks for ISR {_list(isr)}"
        case FenceBroker(broker=broker):
            return f"broker {broker} dies"
        case UnfenceBroker(broker=broker):
            return f"broker {broker} is back"
        case UncleanShutdown(broker=broker):
            return f"broker {broker} registers after an unclean shutdown"
        case ElectPreferredLeader():
            return "elect the preferred leader"
        case DeleteTopic():
            return "delete the topic"


def describe_event(event: Event) -> str:  # noqa: C901, PLR0911, PLR0912 - one line for each kind of event
    """An event in words."""
    match event:
        case RequestSkipped(message=message):
            return f"skipped: {message}"
        case RequestRefused(error=error, message=message):
            return f"refused, {error}: {message}"
        case ReassignmentStarted(original=original, assignment=assignment):
            return f"starts: {_list(original)} to {_list(assignment.target)}{_pending(assignment)}"
        case ReassignmentOverridden(dropped=dropped, assignment=assignment):
            return f"target {_list(dropped)} dropped for {_list(assignment.target)}{_pending(assignment)}"
        case ReassignmentCancelled(dropped=dropped, replicas=replicas):
            return f"target {_list(dropped)} dropped, stays on {_list(replicas)}"
        case ReplicasReordered(before=before, after=after):
            return f"order {_list(before)} to {_list(after)}, no data moves"
        case TargetDiffers(requested=requested, target=target):
            return f"warning: heads for {_list(target)}, not for {_list(requested)}"
        case ReassignmentStuck(replicas=replicas):
            return f"warning: cannot complete, {_brokers(replicas)} both added and removed; cancel it"
        case TargetsNotAlive(brokers=brokers):
            return f"warning: waits for {_brokers(brokers)}, not alive"
        case ReplicasStarted(brokers=brokers):
            return f"{_brokers(brokers)} {'begins' if len(brokers) == 1 else 'begin'} to fetch"
        case LeaderChanged(before=before_leader, after=after_leader):
            return f"leader {_leader(before_leader)} to {_leader(after_leader)}"
        case IsrChanged(before=before, after=after):
            return f"ISR {_list(before)} to {_list(after)}"
        case EligibleLeadersChanged(before=before, after=after):
            return f"eligible to lead outside the ISR {_list(before)} to {_list(after)}"
        case ReplicasStopped(brokers=brokers):
            one = len(brokers) == 1
            return f"{_brokers(brokers)} {'stops and deletes its log' if one else 'stop and delete their logs'}"
        case ReassignmentCompleted(assignment=assignment):
            return f"complete: {_list(assignment.target)}"
        case DeletionHeldOff():
            return "held off until no partition of the topic is moving"
        case TopicDeleted():
            return "deleted"


def _pending(assignment: Assignment) -> str:
    adding = f", adding {_list(assignment.adding)}" if assignment.adding else ""
    removing = f", removing {_list(assignment.removing)}" if assignment.removing else ""
    return adding + removing


def _list(replicas: Replicas) -> str:
    return ",".join(map(str, replicas)) or "none"


def _leader(broker: int | None) -> str:
    return "none" if broker is None else str(broker)


def _brokers(brokers: Replicas) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {_list(brokers)}"
