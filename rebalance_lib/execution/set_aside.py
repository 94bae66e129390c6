"""The partitions that a run does not move any more, with the reason; the rest of the plan goes on."""

from __future__ import annotations

from rebalance_lib.execution.messages import Log
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.plan_tracker import PlanTracker
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.topology import TopicPartition

REASONS = {
    Status.DRIFTED: "somebody else moved it",
    Status.RECREATED: "its topic was deleted and created again",
}


class SetAside(dict[TopicPartition, str]):
    """By partition: why it was set aside."""

    def __init__(self, tracker: PlanTracker, journal: Journal, log: Log) -> None:
        super().__init__()
        self._tracker = tracker
        self._journal = journal
        self._log = log

    def add(self, tp: TopicPartition, reason: str) -> None:
        """Set a partition aside; the first reason stays."""
        if tp not in self:
            self[tp] = reason
            self._log(f"{tp} is set aside: {reason}")
            self._journal.note(events.SET_ASIDE, partition=str(tp), reason=reason)

    def add_what_waits(self, reason: str) -> None:
        """Set aside what has not begun: partitions, and replicas that are not in their log dir."""
        log_dirs = [TopicPartition(*move.replica[:2]) for move in self._tracker.log_dirs_left if move.future is None]
        for tp in (*self._tracker.status.having(Status.PENDING), *log_dirs):
            self.add(tp, reason)

    def follow_status(self) -> None:
        """What somebody else changed is set aside; what is as planned again is taken up again."""
        misplaced = {TopicPartition(*move.replica[:2]) for move in self._tracker.log_dirs_left}
        for tp, status in self._tracker.status.by_partition.items():
            if status is Status.RECREATED and tp in self._tracker.status.reassignments:
                target = list(self._tracker.status.reassignments[tp].target)
                reason = f"{REASONS[status]}; a reassignment of the new one to {target} goes on: look at it"
                self.add(tp, reason)  # of somebody else, or requested before brokers showed the new topic
            elif status in REASONS:
                self.add(tp, REASONS[status])
            elif status is Status.DONE and tp in self and tp not in misplaced:
                del self[tp]
