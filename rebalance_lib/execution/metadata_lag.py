"""Metadata lag: brokers learn of changes a moment after the controller made them, so what they show is debounced.

A partition whose move was begun and that seems to rest where it was, one that seems to be elsewhere, and one whose
topic seems to be gone or recreated count as such only after some seconds. Until then they count as moving, or as they
were. A move that was begun and rests where it was even then was cancelled by somebody else, if the controller had
accepted it; if its request was lost, it can be submitted again. And one that has ended does not go back: if it seems to
rest where it began, or at a stage before, some seconds after its end, the broker that says so lags.

What ended is written to the journal on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_lib.clock import Clock
from rebalance_lib.cluster import PartitionMetadata, Reassignment, Replica
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirMove, LogDirStatus
from rebalance_lib.execution.next_moves import Step
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.plan.stages import stages
from rebalance_lib.topology import TopicPartition

LAG_SECONDS = 5.0  # how far a broker's metadata may be behind the controller's
DOUBTFUL = frozenset({Status.DRIFTED, Status.RECREATED, Status.MISSING})


@dataclass(slots=True)
class Begun:
    """A move that this process began or found under way: the replicas it began with, and whether it was accepted."""

    replicas: frozenset[int]
    accepted: bool


class Over(NamedTuple):
    """A move that has ended: when, the replicas it began with, and whether its partition was at its target then."""

    at: float
    replicas: frozenset[int]
    done: bool


class MetadataLag:
    """What one process has begun and seen, to tell what is so from what a broker that lags shows."""

    def __init__(self, job: Job, journal: Journal, size: Callable[[TopicPartition], int], clock: Clock) -> None:
        self._clock = clock
        self._job = job
        self._journal = journal
        self._size = size
        self._begun: dict[TopicPartition, Begun] = {}
        self._within: dict[Replica, int] = {}
        self._over: dict[TopicPartition, list[Over]] = {}
        self._since: dict[TopicPartition, tuple[Status, float]] = {}  # what is shown, and since when
        self.cancelled: list[TopicPartition] = []

    def begin(self, steps: Iterable[Step], live: Mapping[TopicPartition, PartitionMetadata], *, accepted: bool) -> None:
        """Steps were requested just now; ``accepted`` if the answer said so."""
        for step in steps:
            replicas = live[step.partition].replicas
            within = [replica for replica, _ in step.log_dirs] if step.replicas is None else []
            self._within |= dict.fromkeys(within, step.size)
            if not within:
                self._begun[step.partition] = Begun(frozenset(replicas), accepted)
                self._forget(step.partition)
            self._journal.note(
                events.BEGAN if accepted else events.REQUESTED,
                partition=str(step.partition),
                **({"replica": str(within[0])} if within else {}),
                **{"from": list(replicas), "to": list(step.replicas or replicas)},
                log_dirs={str(replica): path for replica, path in step.log_dirs},
                bytes=step.bytes,
            )

    def debounce(
        self, tp: TopicPartition, shown: Status, live: PartitionMetadata | None, reassignment: Reassignment | None
    ) -> Status:
        """The status of a partition, by what is shown of it; notices what ended, and what somebody else cancelled."""
        if shown is Status.MOVING:
            self._forget(tp)
            self._see_moving(tp, reassignment)
            return shown
        if shown in DOUBTFUL:
            listed = shown is Status.DRIFTED and reassignment is not None
            if not listed and self._recent(tp, shown):
                return Status.MOVING  # so that nothing begins, and the run does not end either
            self._begun.pop(tp, None)
            return shown
        if shown is Status.DONE or tp not in self._begun:
            self._forget(tp)
        over = self._just_over(tp, shown, live)
        if over is not None:
            return over
        if tp in self._begun and not self._ended(tp, shown, live):
            return Status.MOVING
        return shown

    def _just_over(self, tp: TopicPartition, shown: Status, live: PartitionMetadata | None) -> Status | None:
        """The status of a partition whose move, or a stage of it, has just ended, where it seems not to have begun."""
        if tp not in self._over:
            return None
        recent = [over for over in self._over[tp] if self._clock.monotonic() - over.at <= LAG_SECONDS]
        self._over[tp] = recent
        if not recent:
            del self._over[tp]
        if shown is not Status.PENDING:
            return None
        if any(over.done for over in recent):
            return Status.DONE
        passed = live is not None and any(self._passed(tp, over.replicas, live) for over in recent)
        return Status.MOVING if passed else None

    def _see_moving(self, tp: TopicPartition, reassignment: Reassignment | None) -> None:
        if reassignment is not None:
            originals = frozenset(reassignment.replicas) - set(reassignment.adding)
            self._begun[tp] = Begun(originals, accepted=True)
        else:
            self._begun.setdefault(tp, Begun(frozenset(self._job.origins.get(tp, ())), accepted=True))

    def _ended(self, tp: TopicPartition, shown: Status, live: PartitionMetadata | None) -> bool:
        """Whether a move that was begun is over, one way or another."""
        begun = self._begun[tp]
        rests = shown is Status.PENDING and live is not None and begun.replicas == set(live.replicas)
        passed = shown is Status.PENDING and live is not None and self._passed(tp, begun.replicas, live)
        if (rests or passed) and self._recent(tp, shown):
            return False
        self._forget(tp)
        del self._begun[tp]
        if not rests:
            over = Over(self._clock.monotonic(), begun.replicas, shown is Status.DONE)
            self._over.setdefault(tp, []).append(over)
        if rests and begun.accepted:
            self.cancelled.append(tp)
            self._journal.note(events.CANCELLED, by="somebody else", partition=str(tp))
        elif shown is Status.DONE:
            copied = self._size(tp) * len(self._job.coming(tp))
            self._journal.note(events.ENDED, partition=str(tp), bytes=copied)
        return True

    def _passed(self, tp: TopicPartition, begun: frozenset[int], live: PartitionMetadata) -> bool:
        """Whether a partition seems to be where a move of it began, or at a stage before, which another process began.

        A broker may lag behind more than one stage: small partitions pass some in a second.
        """
        shown, origin = frozenset(live.replicas), self._job.origins.get(tp, ())
        way = [frozenset(one) for one in (origin, *stages(origin, self._job.targets[tp]))]
        return shown == begun or (begun in way and shown in way[: way.index(begun)])

    def cancel(self, tp: TopicPartition, reason: str) -> None:
        """The executor itself cancelled this move."""
        self._begun.pop(tp, None)
        self._journal.note(events.CANCELLED, by="the executor", partition=str(tp), reason=reason)

    def see_log_dirs(self, log_dirs: Iterable[LogDirMove]) -> None:
        """Note the copies between log dirs that have ended."""
        if not self._within:
            return
        unfinished = {move.replica for move in log_dirs if move.status is not LogDirStatus.DONE}
        for replica in [one for one in self._within if one not in unfinished]:
            tp = TopicPartition(replica.topic, replica.partition)
            copied = self._within.pop(replica)
            self._journal.note(events.ENDED, partition=str(tp), replica=str(replica), bytes=copied)

    def _recent(self, tp: TopicPartition, shown: Status) -> bool:
        now = self._clock.monotonic()
        if self._since.get(tp, (None, now))[0] is not shown:
            self._since[tp] = (shown, now)
        return now - self._since[tp][1] < LAG_SECONDS

    def _forget(self, tp: TopicPartition) -> None:
        self._since.pop(tp, None)
