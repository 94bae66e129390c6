"""A controller's rules: how one partition changes at one input. Each kind of controller has its own module.

``Rules.step`` is pure: state and input in, state and events out. What differs between controllers and not
between partitions (whether a deletion waits for a reassignment) is beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rebalance_lib.reassignment.events import Event, RequestRefused
from rebalance_lib.reassignment.inputs import AlterPartition, Input
from rebalance_lib.reassignment.state import Brokers, PartitionState, Replicas, TopicSettings


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state after an input, and what came about."""

    state: PartitionState
    events: tuple[Event, ...] = ()

    @property
    def refused(self) -> RequestRefused | None:
        """The error the request was answered with, if any."""
        return next((event for event in self.events if isinstance(event, RequestRefused)), None)


Step = Callable[[PartitionState, Input, Brokers, TopicSettings], Outcome]


@dataclass(frozen=True, slots=True)
class Rules:
    """A kind of controller: its step, and whether deleting a topic waits for its reassignments."""

    name: str
    step: Step
    holds_off_deletion: bool


def refuse(state: PartitionState, error: str, message: str) -> Outcome:
    """Nothing changes, and the answer is one of Kafka's errors."""
    return Outcome(state, (RequestRefused(error, message),))


def duplicate(replicas: Replicas) -> int | None:
    """The first broker that is listed twice, if any."""
    seen: set[int] = set()
    for replica in replicas:
        if replica in seen:
            return replica
        seen.add(replica)
    return None


def wrong_isr(state: PartitionState, request: AlterPartition, brokers: Brokers) -> RequestRefused | None:
    """Why a controller refuses an ISR, if it does: it must hold the leader, and only live replicas."""
    isr = ",".join(map(str, request.isr))
    if state.leader is None:
        return RequestRefused("INVALID_REQUEST", f"the partition has no leader that could ask for ISR {isr}")
    if state.leader not in request.isr:
        return RequestRefused("INVALID_REQUEST", f"ISR {isr} lacks the leader {state.leader}")
    if duplicate(request.isr) is not None or not frozenset(request.isr) <= frozenset(state.replicas):
        return RequestRefused("INVALID_REQUEST", f"ISR {isr} is not within the replicas {state.replicas}")
    dead = sorted(frozenset(request.isr) - brokers.alive)
    if dead:
        return RequestRefused("INELIGIBLE_REPLICA", f"ISR {isr} has brokers that are not alive: {dead}")
    return None
