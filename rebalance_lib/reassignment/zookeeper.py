"""The rules of controllers on ZooKeeper: Kafka 2.4 to 3.9 (KIP-455), and before, without an override.

Goal: show what an operator of an older cluster would see, from the same inputs; KRaft is the one measured.

Constraints: the assignment is kept in a store and in memory, and a reassignment is a row of steps between
them. The model applies the steps of one phase at once; ``phases`` spells them out.

Algorithm. From the original replicas ORS (what is assigned, without what is being added) and the target TRS:

    replicas = TRS then the rest of ORS, adding = replicas - ORS, removing = replicas - TRS

U: write that, and stop replicas that an earlier target was adding and this one does not want. A: if not all
of TRS are in the ISR, start the adding ones and wait. B: once they are, replicas = TRS, the leader moves to
the first live in-sync replica of TRS *only if* it is not in TRS or not alive, the removing ones leave the
ISR, stop and are deleted. A and B each open a leader epoch, so that brokers take notice.

Example, {1,2,3} to {3,4,5,6}, leader 1, overridden on the way by {3,4,7}:

    Reassign 3,4,5,6   replicas 3,4,5,6,1,2  adding 4,5,6  removing 1,2
    Reassign 3,4,7     replicas 3,4,7,1,2    adding 4,7    removing 1,2    5 and 6 stop at once
    ISR 1,2,3,4,7      replicas 3,4,7                                      leader 3

A cancel is a reassignment to ORS: what was being added stops at once.

The four reasons to skip: the partition is moving (before 2.4 only; since then the new target wins), its
replicas are the target already, all targets are dead (since 2.4: any new replica that is not alive is an
error), its topic is being deleted. While a partition of a topic moves, the topic's deletion waits.

One liberty: where stopping replicas at once would leave no in-sync replica, these controllers could lose the
leader for good; the model refuses instead, in KRaft's words. And they knew no eligible leader replicas: a
partition that loses its last in-sync replica keeps it in the ISR, without a leader.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rebalance_lib.reassignment.events import (
    Event,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentOverridden,
    ReassignmentStarted,
    ReplicasReordered,
    RequestRefused,
    RequestSkipped,
    SkipReason,
    consequences,
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
from rebalance_lib.reassignment.rules import Outcome, Rules, duplicate, refuse, wrong_isr
from rebalance_lib.reassignment.state import (
    Assignment,
    Brokers,
    PartitionState,
    Replicas,
    TopicSettings,
    with_appended,
    without,
)


def step(  # noqa: PLR0911 - one return for each kind of input
    state: PartitionState, request: Input, brokers: Brokers, topic: TopicSettings, *, overrides: bool = True
) -> Outcome:
    """The state after an input, and what came about; ``overrides``: whether the controller knows KIP-455."""
    match request:
        case Reassign():
            return _reassign(state, request, brokers, overrides=overrides)
        case Cancel():
            return _cancel(state, brokers, overrides=overrides)
        case AlterPartition():
            return _alter_partition(state, request, brokers)
        case ElectPreferredLeader():
            return _elect_preferred_leader(state, brokers)
        case FenceBroker(broker):
            return _lose_broker(state, broker, brokers.fence(broker), topic)
        case UnfenceBroker(broker):
            return _regain_broker(state, brokers.unfence(broker), topic)
        case UncleanShutdown():
            return Outcome(state)


def propose(assignment: Assignment, target: Replicas) -> Assignment:
    """The assignment that a target leads to; the original replicas stay the original ones."""
    replicas = with_appended(target, assignment.original)
    return Assignment(replicas, without(replicas, assignment.original), without(replicas, target))


def complete(assignment: Assignment, isr: Replicas) -> bool:
    """Whether this ISR completes the reassignment."""
    return assignment.reassigning and frozenset(isr).issuperset(assignment.target)


def _reassign(state: PartitionState, request: Reassign, brokers: Brokers, *, overrides: bool) -> Outcome:
    wrong = _not_done(state, request, brokers, overrides=overrides)
    if wrong is not None:
        return Outcome(state, (wrong,))
    proposed = propose(state.assignment, request.replicas)
    started = _rest_on(state, proposed, brokers)
    if started is None:
        return _would_be_unclean(state, proposed.replicas)
    decided: Event
    if not state.reassigning and not proposed.reassigning:
        return Outcome(started, (ReplicasReordered(state.replicas, started.replicas),))
    if state.reassigning:
        decided = ReassignmentOverridden(state.target, proposed)
    else:
        decided = ReassignmentStarted(state.replicas, proposed)
    after, completed = _complete(replace(started, leader_epoch=state.leader_epoch), brokers)
    if not completed:
        after = started
    if not started.reassigning:
        completed = (ReassignmentCompleted(proposed, started.isr),)
    return Outcome(after, (decided, *consequences(state, after), *completed))


def _not_done(
    state: PartitionState, request: Reassign, brokers: Brokers, *, overrides: bool
) -> RequestSkipped | RequestRefused | None:
    replicas = ",".join(map(str, request.replicas))
    if state.reassigning and (not overrides or request.replicas == state.target):
        moving = ",".join(map(str, state.target))
        return RequestSkipped(SkipReason.ALREADY_MOVING, f"already moving to {moving}")
    if not state.reassigning and request.replicas == state.replicas:
        return RequestSkipped(SkipReason.SAME_REPLICAS, f"already assigned to {replicas}")
    if wrong := _wrong_list(request.replicas):
        return RequestRefused("INVALID_REPLICA_ASSIGNMENT", wrong)
    if brokers.alive.isdisjoint(request.replicas):
        return RequestSkipped(SkipReason.TARGETS_DEAD, f"none of {replicas} is alive")
    dead = sorted(frozenset(propose(state.assignment, request.replicas).adding) - brokers.alive)
    if overrides and dead:
        return RequestRefused("INVALID_REPLICA_ASSIGNMENT", f"brokers are not alive: {dead}")
    return None


def _wrong_list(replicas: Replicas) -> str | None:
    if not replicas:
        return "the replica list is empty"
    twice = duplicate(replicas)
    return None if twice is None else f"broker {twice} is listed more than once"


def _cancel(state: PartitionState, brokers: Brokers, *, overrides: bool) -> Outcome:
    if not overrides:
        return refuse(state, "UNSUPPORTED_VERSION", "controllers before Kafka 2.4 cannot cancel a reassignment")
    if not state.reassigning:
        return refuse(state, "NO_REASSIGNMENT_IN_PROGRESS", "no reassignment is in progress")
    after = _rest_on(state, Assignment(state.original), brokers)
    if after is None:
        return _would_be_unclean(state, state.original)
    return Outcome(after, (ReassignmentCancelled(state.target, after.replicas), *consequences(state, after)))


def _would_be_unclean(state: PartitionState, replicas: Replicas) -> Outcome:
    names = ",".join(map(str, replicas))
    return refuse(
        state,
        "INVALID_REPLICA_ASSIGNMENT",
        f"going to {names} would need an unclean leader election: none of them is in the ISR",
    )


def _rest_on(state: PartitionState, assignment: Assignment, brokers: Brokers) -> PartitionState | None:
    """The state on this assignment, replicas outside it stopped; None if no in-sync replica would be left."""
    stopped = without(state.replicas, assignment.replicas)
    isr = without(state.isr, stopped)
    if not isr:
        return None
    led = _led(replace(state.assigned(assignment), isr=isr), assignment.target, brokers, must_move=stopped)
    return replace(led, leader_epoch=state.leader_epoch + 1)


def _alter_partition(state: PartitionState, request: AlterPartition, brokers: Brokers) -> Outcome:
    refusal = wrong_isr(state, request, brokers)
    if refusal is not None:
        return Outcome(state, (refusal,))
    after, completed = _complete(replace(state, isr=request.isr), brokers)
    return Outcome(after, (*consequences(state, after), *completed))


def _complete(state: PartitionState, brokers: Brokers) -> tuple[PartitionState, tuple[ReassignmentCompleted, ...]]:
    if not complete(state.assignment, state.isr):
        return state, ()
    dead = tuple(replica for replica in state.target if replica not in brokers.alive)
    led = _led(state, state.target, brokers, must_move=state.removing + dead)
    after = replace(
        led.assigned(Assignment(state.target)),
        isr=without(state.isr, state.removing),
        leader_epoch=state.leader_epoch + 1,
    )
    return after, (ReassignmentCompleted(state.assignment, state.isr),)


def _led(state: PartitionState, candidates: Replicas, brokers: Brokers, *, must_move: Replicas) -> PartitionState:
    """Move the leader, if it must, to the first candidate, else the first replica, alive and in sync."""
    if state.leader is not None and state.leader not in must_move:
        return state
    for replica in with_appended(candidates, state.replicas):
        if replica in brokers.alive and replica in state.isr and replica not in must_move:
            return replace(state, leader=replica, leader_epoch=state.leader_epoch + (replica != state.leader))
    return replace(state, leader=None, leader_epoch=state.leader_epoch + (state.leader is not None))


def _elect_preferred_leader(state: PartitionState, brokers: Brokers) -> Outcome:
    preferred = state.replicas[0]
    if state.leader == preferred:
        return refuse(state, "ELECTION_NOT_NEEDED", f"the preferred leader {preferred} leads already")
    if preferred not in brokers.alive or preferred not in state.isr:
        return refuse(state, "PREFERRED_LEADER_NOT_AVAILABLE", f"broker {preferred} is not alive or not in the ISR")
    after = replace(state, leader=preferred, leader_epoch=state.leader_epoch + 1)
    return Outcome(after, consequences(state, after))


def _lose_broker(state: PartitionState, broker: int, brokers: Brokers, topic: TopicSettings) -> Outcome:
    if broker not in state.isr:
        return Outcome(state)
    after = _led(state, state.replicas, brokers, must_move=(broker,))
    after = _led_uncleanly(after, brokers, topic)
    if len(after.isr) > 1:
        after = replace(after, isr=without(after.isr, (broker,)))
    return Outcome(after, consequences(state, after))


def _regain_broker(state: PartitionState, brokers: Brokers, topic: TopicSettings) -> Outcome:
    if state.leader is not None:
        return Outcome(state)
    after = _led_uncleanly(_led(state, state.replicas, brokers, must_move=()), brokers, topic)
    return Outcome(after, consequences(state, after))


def _led_uncleanly(state: PartitionState, brokers: Brokers, topic: TopicSettings) -> PartitionState:
    if state.leader is not None or not topic.unclean_leader_election:
        return state
    for replica in state.replicas:
        if replica in brokers.alive:
            return replace(state, leader=replica, isr=(replica,), leader_epoch=state.leader_epoch + 1)
    return state


KIP_455 = Rules(name="ZooKeeper, Kafka 2.4 to 3.9", step=step, holds_off_deletion=True)
BEFORE_KIP_455 = Rules(name="ZooKeeper, before Kafka 2.4", step=partial(step, overrides=False), holds_off_deletion=True)
