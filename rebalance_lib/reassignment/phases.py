"""The phases of a reassignment, as the older controllers numbered them, seen in any run.

Goal: let who knows the phases U1 to B8, or the twelve steps before them, read a run of this model in those
words.

Constraints: a view. It reads transitions, whichever controller made them, and decides nothing. KRaft writes
one record where these name several steps; the states between the steps are what an older controller would
have passed through.

Algorithm. A start or an override is U1, U2; unless it completes in the same breath, A1 and A2 follow. A
cancel is a start towards the original replicas, complete at once. Each ISR change that does not complete is
a wait. Completion is B1 to B8. Between B2 and B6 memory and store differ: that is why both are shown.

=====  ====  ======================================================================================
phase  step  what happens
=====  ====  ======================================================================================
U1     1     the store has RS = ORS + TRS, AR, RR
U2     1     so has memory; replicas of an earlier target that are not wanted any more stop
A1     2     LeaderAndIsr to ORS + TRS, with a new leader epoch
A2     3     AR becomes NewReplica
wait   4     until all of TRS are in the ISR
B1     5     AR becomes OnlineReplica
B2     6     memory has RS = TRS, AR and RR empty
B3     7     LeaderAndIsr to TRS, with a new leader if the leader is not in TRS
B4     8     RR becomes OfflineReplica and leaves the ISR
B5     9     RR becomes NonExistentReplica: its logs are deleted
B6     10    the store has RS = TRS, AR and RR empty
B7     11    the partition is no longer listed as moving
B8     12    UpdateMetadata to every broker
=====  ====  ======================================================================================

In the twelve steps RAR stands for TRS and OAR for ORS. Example, {1,2,3} to {2,3,4}: steps 1 to 3 at the
request, with {1,2,3,4} assigned and {4} new, then 5 to 12 when 4 is in the ISR, with {1} offline and
deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from rebalance_lib.reassignment.events import (
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentOverridden,
    ReassignmentStarted,
)
from rebalance_lib.reassignment.state import Assignment, PartitionState, Replicas, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rebalance_lib.reassignment.controller import Transition


class Phase(Enum):
    """A phase of a reassignment; its value is the step among the older twelve."""

    U1 = (1, "store RS = ORS + TRS with AR and RR")
    U2 = (1, "keep the same in memory, stop replicas that are wanted no more")
    A1 = (2, "LeaderAndIsr to ORS + TRS")
    A2 = (3, "AR becomes NewReplica")
    WAIT = (4, "wait until TRS is in the ISR")
    B1 = (5, "AR becomes OnlineReplica")
    B2 = (6, "RS = TRS in memory")
    B3 = (7, "LeaderAndIsr to TRS, with a new leader if the leader is not in TRS")
    B4 = (8, "RR becomes OfflineReplica and leaves the ISR")
    B5 = (9, "RR becomes NonExistentReplica")
    B6 = (10, "store RS = TRS")
    B7 = (11, "no longer listed as moving")
    B8 = (12, "UpdateMetadata to every broker")

    @property
    def step(self) -> int:
        """The number among the twelve steps of controllers before KIP-455."""
        return self.value[0]

    @property
    def meaning(self) -> str:
        """What the controller does in it."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class PhaseStep:
    """One phase passed through: what store and memory hold after it, the ISR, the leader, whom it touches."""

    phase: Phase
    stored: Assignment
    in_memory: Assignment
    isr: Replicas
    leader: int | None
    touched: Replicas = ()


@dataclass(frozen=True, slots=True)
class OldStep:
    """One of the twelve steps, in the words of controllers before KIP-455."""

    number: int
    text: str


def phases(transitions: Iterable[Transition]) -> tuple[PhaseStep, ...]:
    """The phases that these transitions of one partition pass through."""
    return tuple(step for transition in transitions for step in _phases(transition))


def twelve_steps(transitions: Iterable[Transition]) -> tuple[OldStep, ...]:
    """The same run in the older twelve steps; U1 and U2 are one of them."""
    return tuple(
        OldStep(step.phase.step, _old_words(step)) for step in phases(transitions) if step.phase is not Phase.U2
    )


def _phases(transition: Transition) -> Iterator[PhaseStep]:
    before, after = transition.before, transition.after
    if before is None or after is None:
        return
    completed = next((e for e in transition.events if isinstance(e, ReassignmentCompleted)), None)
    for event in transition.events:
        match event:
            case ReassignmentStarted(assignment=assignment) | ReassignmentOverridden(assignment=assignment):
                yield from _update(before, assignment)
                if completed is None:
                    yield from _start(after, without(after.replicas, before.replicas))
            case ReassignmentCancelled(replicas=replicas):
                yield from _update(before, Assignment(replicas))
                yield from _finish(before, after, Assignment(replicas), without(before.isr, before.adding))
            case ReassignmentCompleted(assignment=assignment, caught_up=isr):
                yield from _finish(before, after, assignment, isr)
    if before.reassigning and after.reassigning and frozenset(before.isr) != frozenset(after.isr):
        yield _at(Phase.WAIT, after, without(after.isr, before.isr))


def _at(phase: Phase, state: PartitionState, touched: Replicas = ()) -> PhaseStep:
    return PhaseStep(phase, state.assignment, state.assignment, state.isr, state.leader, touched)


def _update(before: PartitionState, assignment: Assignment) -> Iterator[PhaseStep]:
    unwanted = without(before.replicas, assignment.replicas)
    yield PhaseStep(Phase.U1, assignment, before.assignment, before.isr, before.leader, assignment.replicas)
    yield PhaseStep(Phase.U2, assignment, assignment, without(before.isr, unwanted), before.leader, unwanted)


def _start(after: PartitionState, new: Replicas) -> Iterator[PhaseStep]:
    yield _at(Phase.A1, after, after.replicas)
    yield _at(Phase.A2, after, new)


def _finish(before: PartitionState, after: PartitionState, moving: Assignment, isr: Replicas) -> Iterator[PhaseStep]:
    done = Assignment(moving.target)
    step = PhaseStep(Phase.B1, moving, moving, isr, before.leader, moving.adding)
    yield step
    step = replace(step, phase=Phase.B2, in_memory=done, touched=done.replicas)
    yield step
    moved = () if after.leader in (before.leader, None) else (after.leader,)
    step = replace(step, phase=Phase.B3, leader=after.leader, touched=tuple(b for b in moved if b is not None))
    yield step
    step = replace(step, phase=Phase.B4, isr=without(isr, moving.removing), touched=moving.removing)
    yield step
    yield replace(step, phase=Phase.B5)
    step = replace(step, phase=Phase.B6, stored=done, touched=done.replicas)
    yield step
    yield replace(step, phase=Phase.B7, touched=())
    yield replace(step, phase=Phase.B8, touched=())


def _old_words(step: PhaseStep) -> str:
    touched = _braces(step.touched)
    rar = _braces(step.in_memory.target)
    isr = _braces(step.isr)
    leader = f"new leader {step.leader}" if step.touched else f"leader {step.leader} stays"
    words = {
        Phase.U1: f"AR = OAR + RAR = {touched} in ZooKeeper and in memory",
        Phase.A1: f"LeaderAndIsr to every replica of {touched}, with a new leader epoch",
        Phase.A2: f"RAR - OAR = {touched} become NewReplica",
        Phase.WAIT: f"wait until RAR {rar} is in the ISR, now {isr}",
        Phase.B1: f"RAR {rar} become OnlineReplica",
        Phase.B2: f"AR = RAR = {rar} in memory",
        Phase.B3: f"LeaderAndIsr to RAR {rar}: {leader}",
        Phase.B4: f"OAR - RAR = {touched} become OfflineReplica, ISR {isr}",
        Phase.B5: f"OAR - RAR = {touched} become NonExistentReplica, their logs are deleted",
        Phase.B6: f"AR = RAR = {rar} in ZooKeeper",
        Phase.B7: "the partition leaves /admin/reassign_partitions",
        Phase.B8: "UpdateMetadata to every broker",
    }
    return words[step.phase]


def _braces(brokers: Replicas) -> str:
    return "{" + ",".join(map(str, brokers)) + "}"
