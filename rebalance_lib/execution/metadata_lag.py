"""What to believe of a status: brokers hear of changes a moment after the controller made them.

A partition whose move was begun and that seems to rest where it was, one that seems to be elsewhere, and one that seems
to be gone are believed to be so only after some seconds. Until then they count as moving, or as not gone. A move that
was begun and rests where it was even then was cancelled by somebody else, if the controller had taken it; if its
request was lost, it can be begun again. And one that has ended does not go back: if it seems to rest where it began,
some seconds after its end, the broker that says so is behind.

What ended is written to the journal on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from rebalance_lib.clock import Clock
from rebalance_lib.cluster import Replica
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirMove, LogDirStatus
from rebalance_lib.execution.next_moves import Step
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.topology import TopicPartition

SETTLE_SECONDS = 5.0  # how long a broker may be behind the controller


@dataclass(slots=True)
class Begun:
    """A move that this process began or found under way: the replicas it began with, and whether it was taken."""

    replicas: frozenset[int]
    accepted: bool


class Over(NamedTuple):
    """A move that has ended: when, the replicas it began with, and whether its partition was at its target then."""

    at: float
    replicas: frozenset[int]
    done: bool


class MetadataLag:
    """What one process has begun and seen, to tell what is so from what only looks so."""

    def __init__(self, job: Job, journal: Journal, size: Callable[[TopicPartition], int], clock: Clock) -> None:
        self._clock = clock
        self._job = job
        self._journal = journal
        self._size = size
        self._begun: dict[TopicPartition, Begun] = {}
        self._within: dict[Replica, int] = {}
        self._over: dict[TopicPartition, Over] = {}
        self._doubted_since: dict[tuple[TopicPartition, Status], float] = {}
        self.cancelled: tuple[TopicPartition, ...] = ()

    def begin(self, steps: Iterable[Step], status: PlanStatus, *, accepted: bool) -> None:
        """Steps were asked for just now; ``accepted`` if the answer said so."""
        for step in steps:
            live = status.live[step.partition].replicas
            within = [replica for replica, _ in step.log_dirs] if step.replicas is None else []
            self._within |= dict.fromkeys(within, step.size)
            if not within:
                self._begun[step.partition] = Begun(frozenset(live), accepted)
            self._journal.note(
                events.BEGAN if accepted else events.ASKED,
                partition=str(step.partition),
                **({"replica": str(within[0])} if within else {}),
                **{"from": list(live), "to": list(step.replicas or live)},
                log_dirs={str(replica): path for replica, path in step.log_dirs},
                bytes=step.bytes,
            )

    def believe(self, status: PlanStatus, log_dirs: Iterable[LogDirMove]) -> PlanStatus:
        """The status without what only looks so; notices what ended, and what somebody else cancelled."""
        believed = dict(status.by_partition)
        for tp, state in status.by_partition.items():
            if state is Status.MOVING:
                self._forget(tp)
                self._see_moving(tp, status)
            elif (over := self._just_over(tp, state, status)) is not None:
                believed[tp] = over
            elif self._only_looks_so(tp, state, status):
                believed[tp] = Status.MOVING
        self._see_log_dirs(log_dirs)
        return replace(status, by_partition=believed)

    def all_there(self, status: PlanStatus) -> bool:
        """Whether partitions that are missing have been so for a while: else they may only seem to be."""
        return not [tp for tp in status.having(Status.MISSING) if self._doubtful(tp, Status.MISSING)]

    def _only_looks_so(self, tp: TopicPartition, state: Status, status: PlanStatus) -> bool:
        if state is Status.DRIFTED:
            return tp not in status.reassignments and self._doubtful(tp, state)
        return tp in self._begun and not self._ended(tp, state, status)

    def _just_over(self, tp: TopicPartition, state: Status, status: PlanStatus) -> Status | None:
        """What is so of a partition whose move, or a stage of it, has just ended, where it seems not to have begun."""
        over = self._over.get(tp)
        if over is None or self._clock.monotonic() - over.at > SETTLE_SECONDS:
            self._over.pop(tp, None)
            return None
        if state is not Status.PENDING or not (over.done or over.replicas == set(status.live[tp].replicas)):
            return None
        return Status.DONE if over.done else Status.MOVING

    def _see_moving(self, tp: TopicPartition, status: PlanStatus) -> None:
        reassignment = status.reassignments.get(tp)
        if reassignment is not None:
            originals = frozenset(status.live[tp].replicas) - set(reassignment.adding)
            self._begun[tp] = Begun(originals, accepted=True)
        else:
            self._begun.setdefault(tp, Begun(frozenset(self._job.origins.get(tp, ())), accepted=True))

    def _ended(self, tp: TopicPartition, state: Status, status: PlanStatus) -> bool:
        """Whether a move that was begun is over, one way or another."""
        begun = self._begun[tp]
        rests = state is Status.PENDING and begun.replicas == set(status.live[tp].replicas)
        if rests and self._doubtful(tp, state):
            return False
        self._forget(tp)
        del self._begun[tp]
        if not rests:
            self._over[tp] = Over(self._clock.monotonic(), begun.replicas, state is Status.DONE)
        if rests and begun.accepted:
            self.cancelled = (*self.cancelled, tp)
            self._journal.note(events.CANCELLED, by="somebody else", partition=str(tp))
        elif state is Status.DONE:
            copied = self._size(tp) * len(self._job.coming(tp))
            self._journal.note(events.ENDED, partition=str(tp), bytes=copied)
        return True

    def _see_log_dirs(self, log_dirs: Iterable[LogDirMove]) -> None:
        if not self._within:
            return
        unfinished = {move.replica for move in log_dirs if move.status is not LogDirStatus.DONE}
        for replica in [one for one in self._within if one not in unfinished]:
            tp = TopicPartition(replica.topic, replica.partition)
            copied = self._within.pop(replica)
            self._journal.note(events.ENDED, partition=str(tp), replica=str(replica), bytes=copied)

    def _doubtful(self, tp: TopicPartition, state: Status) -> bool:
        now = self._clock.monotonic()
        return now - self._doubted_since.setdefault((tp, state), now) < SETTLE_SECONDS

    def _forget(self, tp: TopicPartition) -> None:
        for state in (Status.PENDING, Status.DRIFTED, Status.MISSING):
            self._doubted_since.pop((tp, state), None)
