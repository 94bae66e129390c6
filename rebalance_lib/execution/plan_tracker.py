"""The status of each partition of a plan, kept up to date: all of them at checks, those under way between checks.

So what a poll costs grows with the moves under way, not with the plan or the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirMove, LogDirStatus, log_dir_moves
from rebalance_lib.execution.metadata_lag import MetadataLag
from rebalance_lib.execution.next_moves import Step
from rebalance_lib.execution.plan_status import Ends, PlanStatus, Status
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.topology import TopicPartition

FRESH_SECONDS = 1.0  # a check may wait for brokers that do not answer, and much may happen meanwhile


class PlanTracker:
    """What is known of a plan on its cluster; ``status`` changes in place."""

    def __init__(
        self, cluster: Cluster, job: Job, journal: Journal, size: Callable[[TopicPartition], int], ends: Ends
    ) -> None:
        self._cluster = cluster
        self._job = job
        self._ends = ends
        self._topics = sorted({tp.topic for tp in ends.targets})
        self._lag = MetadataLag(job, journal, size, cluster.clock)
        self.status = PlanStatus({}, {}, {})
        self.log_dirs: list[LogDirMove] = []
        self.moving: dict[TopicPartition, None] = {}
        self._read_at = float("-inf")

    @property
    def fresh(self) -> bool:
        """Whether what is known was read just now, so that something may be requested by it."""
        return self._cluster.clock.monotonic() - self._read_at <= FRESH_SECONDS

    @property
    def cancelled(self) -> list[TopicPartition]:
        """The partitions whose move somebody else cancelled."""
        return self._lag.cancelled

    @property
    def log_dirs_left(self) -> list[LogDirMove]:
        """Replicas that are not in the log dir that the plan names."""
        return [move for move in self.log_dirs if not move.ended]

    @property
    def copying_within(self) -> bool:
        """Whether a replica is being copied between log dirs."""
        return any(move.status is LogDirStatus.MOVING for move in self.log_dirs)

    def read(self) -> None:
        """Read all of the plan."""
        self._read(sorted(self._ends.targets), self._topics)

    def read_moving(self) -> list[TopicPartition]:
        """Read what is under way; returns the partitions that are not any more."""
        before = list(self.moving)
        self._read(before, sorted({tp.topic for tp in before}))
        return [tp for tp in before if tp not in self.moving]

    def refresh(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions again, before something is requested for them."""
        listed = sorted(partitions)
        self._read(listed, sorted({tp.topic for tp in listed}))

    def _read(self, partitions: list[TopicPartition], topics: list[str]) -> None:
        self._read_at = self._cluster.clock.monotonic()
        status, reassignments = self.status, self._cluster.reassignments()
        live = self._cluster.partitions(topics) if topics else {}
        status.reassignments.clear()
        status.reassignments.update(reassignments)
        for tp in partitions:
            metadata, reassignment = live.get(tp), reassignments.get(tp)
            shown = self._ends.status(tp, metadata, reassignment)
            found = self._lag.debounce(tp, shown, metadata, reassignment)
            status.by_partition[tp] = found
            if metadata is not None and shown is not Status.RECREATED:
                status.live[tp] = metadata
            if found is Status.MOVING:
                self.moving[tp] = None
            else:
                self.moving.pop(tp, None)
        if self._job.log_dirs:
            self.log_dirs = log_dir_moves(self._cluster, self._job.log_dirs)
            self._lag.see_log_dirs(self.log_dirs)

    def begin(self, steps: Iterable[Step], *, accepted: bool) -> None:
        """These steps were requested just now; ``accepted`` if the answer said so."""
        listed = list(steps)
        self._lag.begin(listed, self.status.live, accepted=accepted)
        for step in listed:
            if step.replicas is not None:
                self.status.by_partition[step.partition] = Status.MOVING
                self.moving[step.partition] = None

    def cancel(self, tp: TopicPartition, reason: str) -> None:
        """The executor cancelled this move just now."""
        self._lag.cancel(tp, reason)
        self.status.by_partition[tp] = Status.PENDING
        self.moving.pop(tp, None)
