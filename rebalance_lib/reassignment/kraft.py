"""The KRaft controller's rules, as Kafka 4.3 applies them.

Goal: after every input, the replicas, adding, removing, ISR, leader and leader epoch that the real
controller writes.

Constraints: a partition changes by one atomic record per input. There is no separate write to a store and to
memory, so what older controllers did in U1 to A2 is one record, and B1 to B8 another; where the ISR suits
already, one record does both.

Algorithm. A reassignment proposes, from the replicas RS that the partition has *now* and the target TRS:

    adding = TRS - RS, removing = RS - TRS (both by broker id), replicas = TRS then removing

Each change then goes the same way: complete the reassignment if it can be, work out the eligible leader
replicas, keep the leader if it is alive and in the ISR, else take the first of the replicas that is. The
leader epoch rises when the leader changes and when a replica leaves the set.

A reassignment is complete when all of adding are in the ISR, something of the ISR remains without removing,
and, if it removes more than it adds, all of the target are in the ISR. So an unmoved replica out of sync
does not block a move of equal size (KAFKA-19975, new in 4.3; before, the whole target had to be in sync).

Example, {1,2,3} to {2,3,4} with leader 1:

    Reassign 2,3,4           replicas 2,3,4,1  adding 4  removing 1  ISR 1,2,3    leader 1  epoch 0
    AlterPartition 1,2,3,4   replicas 2,3,4                          ISR 2,3,4    leader 2  epoch 1

Where it is not what KIP-455 describes, all seen on a 4.3.1 controller:

- A new target is compared with RS, not with ORS. A replica that an earlier target was adding and the new one
  does not want is *removed at completion*, not stopped at once, and a later cancel keeps it.
- Where the new target adds nothing, the earlier adding stays in place, and where it removes nothing, the
  earlier removing does. So a target that drops a replica in flight and adds none (the original replicas,
  say) leaves that replica both added and removed, and never completes: cancel instead. A target of all
  replicas in flight is accepted and has no effect.
- A cancel keeps the order of the replicas in flight: it gives back the original set, not the original order.
- A cancel is refused if no original replica is in the ISR, unless the topic allows unclean leader election.
  Then it goes through, and with all originals dead the partition has no leader; with eligible leader
  replicas on, the last known leader is then no replica any more, and the controller fails, again and again,
  when an original registers after an unclean shutdown.
- Target brokers must be registered; they need not be alive. The reassignment waits for them.
- A topic is deleted at once, with its reassignments.

Left out: the recovery state after an unclean election, and log dirs that fail while the broker lives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rebalance_lib.reassignment.events import (
    Event,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentOverridden,
    ReassignmentStarted,
    ReassignmentStuck,
    ReplicasReordered,
    RequestRefused,
    RequestSkipped,
    SkipReason,
    TargetDiffers,
    TargetsNotAlive,
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
    without,
)


@dataclass(frozen=True, slots=True)
class _Change:
    """What an input proposes; the rest of the record follows from it."""

    assignment: Assignment
    isr: Replicas
    electable: frozenset[int]
    unclean: bool = False
    prefer_first: bool = False
    shut_down_uncleanly: frozenset[int] = frozenset()


def step(state: PartitionState, request: Input, brokers: Brokers, topic: TopicSettings) -> Outcome:
    """The state after an input, as the KRaft controller would write it, and what came about."""
    match request:
        case Reassign():
            return _reassign(state, request, brokers, topic)
        case Cancel():
            return _cancel(state, brokers, topic)
        case AlterPartition():
            return _alter_partition(state, request, brokers, topic)
        case ElectPreferredLeader():
            return _elect_preferred_leader(state, brokers, topic)
        case FenceBroker(broker) | UncleanShutdown(broker):
            return _lose_broker(state, request, brokers.fence(broker), topic)
        case UnfenceBroker(broker):
            return _regain_broker(state, brokers.unfence(broker), topic)


def propose(assignment: Assignment, target: Replicas) -> Assignment:
    """The assignment that a new target leads to, from one that may be in flight already."""
    removing = tuple(sorted(without(assignment.replicas, target)))
    adding = tuple(sorted(without(target, assignment.replicas)))
    return Assignment(
        replicas=target + removing,
        adding=adding or assignment.adding,
        removing=removing or assignment.removing,
    )


def complete(assignment: Assignment, isr: Replicas) -> bool:
    """Whether this ISR completes the reassignment."""
    remaining = frozenset(without(isr, assignment.removing))
    if not assignment.reassigning or not remaining or not remaining.issuperset(assignment.adding):
        return False
    shrinks = len(assignment.adding) < len(assignment.removing)
    return not shrinks or remaining.issuperset(assignment.target)


def _reassign(state: PartitionState, request: Reassign, brokers: Brokers, topic: TopicSettings) -> Outcome:
    refusal = _wrong_target(state, request, brokers)
    if refusal is not None:
        return Outcome(state, (refusal,))
    proposed = propose(state.assignment, request.replicas)
    notes = _notes(state, request, proposed, brokers)
    after, completed = _apply(state, _Change(proposed, state.isr, brokers.alive), topic)
    if after.assignment == state.assignment:
        return Outcome(state, (_nothing_to_do(state, request), *notes))
    decided: Event
    if state.reassigning:
        decided = ReassignmentOverridden(state.target, proposed)
    elif proposed.reassigning:
        decided = ReassignmentStarted(state.replicas, proposed)
    else:
        decided = ReplicasReordered(state.replicas, proposed.replicas)
    return Outcome(after, (decided, *notes, *consequences(state, after), *completed))


def _wrong_target(state: PartitionState, request: Reassign, brokers: Brokers) -> RequestRefused | None:
    if not request.replicas:
        return RequestRefused("INVALID_REPLICA_ASSIGNMENT", "the replica list is empty")
    for replica in sorted(request.replicas):
        if replica not in brokers.registered:
            return RequestRefused("INVALID_REPLICA_ASSIGNMENT", f"broker {replica} is not registered")
    twice = duplicate(request.replicas)
    if twice is not None:
        return RequestRefused("INVALID_REPLICA_ASSIGNMENT", f"broker {twice} is listed more than once")
    factor = len(state.target)
    if not request.allow_replication_factor_change and len(request.replicas) != factor:
        return RequestRefused(
            "INVALID_REPLICATION_FACTOR",
            f"the replication factor would go from {factor} to {len(request.replicas)}",
        )
    return None


def _notes(state: PartitionState, request: Reassign, proposed: Assignment, brokers: Brokers) -> tuple[Event, ...]:
    """What the answer of the controller keeps from the operator."""
    notes: list[Event] = []
    if proposed.target != request.replicas:
        notes.append(TargetDiffers(request.replicas, proposed.target))
    if proposed.stuck:
        notes.append(ReassignmentStuck(tuple(sorted(frozenset(proposed.adding) & frozenset(proposed.removing)))))
    if dead := tuple(replica for replica in without(proposed.adding, state.isr) if replica not in brokers.alive):
        notes.append(TargetsNotAlive(dead))
    return tuple(notes)


def _nothing_to_do(state: PartitionState, request: Reassign) -> RequestSkipped:
    replicas = ",".join(map(str, request.replicas))
    if state.reassigning and request.replicas == state.target:
        return RequestSkipped(SkipReason.ALREADY_MOVING, f"already moving to {replicas}")
    return RequestSkipped(SkipReason.SAME_REPLICAS, f"already assigned to {replicas}")


def _cancel(state: PartitionState, brokers: Brokers, topic: TopicSettings) -> Outcome:
    if not state.reassigning:
        return refuse(state, "NO_REASSIGNMENT_IN_PROGRESS", "no reassignment is in progress")
    isr = without(state.isr, state.adding)
    if not isr and not topic.unclean_leader_election:
        originals = ",".join(map(str, state.original))
        return refuse(
            state,
            "INVALID_REPLICA_ASSIGNMENT",
            f"going back to {originals} would need an unclean leader election: none of them is in the ISR",
        )
    change = _Change(
        Assignment(state.original),
        isr or state.original[:1],
        brokers.alive,
        unclean=topic.unclean_leader_election,
    )
    after, _ = _apply(state, change, topic)
    return Outcome(after, (ReassignmentCancelled(state.target, after.replicas), *consequences(state, after)))


def _alter_partition(state: PartitionState, request: AlterPartition, brokers: Brokers, topic: TopicSettings) -> Outcome:
    refusal = wrong_isr(state, request, brokers)
    if refusal is not None:
        return Outcome(state, (refusal,))
    change = _Change(state.assignment, request.isr, brokers.alive, unclean=topic.unclean_leader_election)
    after, completed = _apply(state, change, topic)
    return Outcome(after, (*consequences(state, after), *completed))


def _elect_preferred_leader(state: PartitionState, brokers: Brokers, topic: TopicSettings) -> Outcome:
    preferred = state.replicas[0]
    if state.leader == preferred:
        return refuse(state, "ELECTION_NOT_NEEDED", f"the preferred leader {preferred} leads already")
    change = _Change(state.assignment, state.isr, brokers.alive, prefer_first=True)
    after, completed = _apply(state, change, topic)
    if after == state:
        return refuse(state, "PREFERRED_LEADER_NOT_AVAILABLE", f"broker {preferred} is not alive or not in the ISR")
    return Outcome(after, (*consequences(state, after), *completed))


def _lose_broker(
    state: PartitionState, request: FenceBroker | UncleanShutdown, brokers: Brokers, topic: TopicSettings
) -> Outcome:
    unclean_shutdown = isinstance(request, UncleanShutdown) and topic.eligible_leader_replicas
    affected = state.isr + state.elr if unclean_shutdown else state.isr
    if request.broker not in affected:
        return Outcome(state)
    change = _Change(
        state.assignment,
        without(state.isr, (request.broker,)),
        brokers.alive,
        unclean=topic.unclean_leader_election,
        shut_down_uncleanly=frozenset({request.broker}) if unclean_shutdown else frozenset(),
    )
    after, completed = _apply(state, change, topic)
    return Outcome(after, (*consequences(state, after), *completed))


def _regain_broker(state: PartitionState, brokers: Brokers, topic: TopicSettings) -> Outcome:
    if state.leader is not None:
        return Outcome(state)
    change = _Change(state.assignment, state.isr, brokers.alive, unclean=topic.unclean_leader_election)
    after, completed = _apply(state, change, topic)
    return Outcome(after, (*consequences(state, after), *completed))


def _apply(
    state: PartitionState, change: _Change, topic: TopicSettings
) -> tuple[PartitionState, tuple[ReassignmentCompleted, ...]]:
    assignment, isr = change.assignment, change.isr
    completed: tuple[ReassignmentCompleted, ...] = ()
    if complete(assignment, isr):
        completed = (ReassignmentCompleted(assignment, isr),)
        isr = without(isr, assignment.removing)
        assignment = Assignment(assignment.target)
    elr = _eligible(state, isr, change, topic)
    leader, unclean = _elect(state, change, topic, replicas=assignment.replicas, isr=isr, elr=elr)
    if unclean and leader is not None:
        isr, elr = (leader,), ()
    elif leader is not None and leader != state.leader and leader in elr:
        isr, elr = (leader,), without(elr, (leader,))
    if not isr and not topic.eligible_leader_replicas:
        isr = state.isr
    after = replace(
        state.assigned(assignment),
        isr=isr,
        elr=elr,
        leader=leader,
        last_known_elr=_last_known(state, leader, topic),
    )
    if leader != state.leader or not frozenset(state.replicas) <= frozenset(assignment.replicas):
        after = replace(after, leader_epoch=state.leader_epoch + 1)
    return after, completed


def _eligible(state: PartitionState, isr: Replicas, change: _Change, topic: TopicSettings) -> Replicas:
    """Below the min ISR, whoever leaves the ISR stays eligible to lead, unless it shut down uncleanly."""
    if not topic.eligible_leader_replicas or len(isr) >= min(topic.min_insync_replicas, len(state.replicas)):
        return ()
    return tuple(sorted((frozenset(state.elr) | frozenset(state.isr)) - frozenset(isr) - change.shut_down_uncleanly))


def _elect(
    state: PartitionState,
    change: _Change,
    topic: TopicSettings,
    *,
    replicas: Replicas,
    isr: Replicas,
    elr: Replicas,
) -> tuple[int | None, bool]:
    """The leader, and whether it was elected without proof that it has all that was committed."""
    valid = change.electable.intersection(isr or elr)
    if change.prefer_first and replicas[0] in valid:
        return replicas[0], False
    if state.leader in valid:
        return state.leader, False
    for replica in replicas:
        if replica in valid:
            return replica, False
    if topic.eligible_leader_replicas and not isr and not elr and len(state.last_known_elr) == 1:
        last_known = state.last_known_elr[0]
        if last_known in change.electable and last_known in state.replicas:
            return last_known, True
    if change.unclean:
        for replica in replicas:
            if replica in change.electable:
                return replica, True
    return None, False


def _last_known(state: PartitionState, leader: int | None, topic: TopicSettings) -> Replicas:
    """The last leader is remembered when the partition loses it, and forgotten when there is a new one."""
    if not topic.eligible_leader_replicas or leader == state.leader:
        return state.last_known_elr
    if leader is None:
        return state.last_known_elr or ((state.leader,) if state.leader is not None else ())
    return ()


KRAFT = Rules(name="KRaft, Kafka 4.3", step=step, holds_off_deletion=False)
