"""Whether a plan is reached, and what to do about its throttles then.

Kafka's tool looks at the replica list only, and ends well whatever it sees. Here a plan is

    reached        every partition has its replicas in order, all in sync, and every replica is in its log dir
    not finished   something is still moving, or not all replicas are in sync
    wrong          a partition is elsewhere and nothing moves it to its target, or it is gone

Throttles are taken off when the plan is reached and no reassignment of anybody is under way, for the rates of a
broker are common to all that move there. If the plan was executed with this tool, what was set before is put back; if
with another, its entries and rates are removed as that tool would. Of a plan that was executed here without a throttle
there is nothing to remove, and what is set is somebody else's.

Example: ``foo-0`` is planned for [3, 4] and has [1, 2] with nothing under way: wrong, and the throttles stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.commands.plan_state import owned, saved_rollback
from rebalance_lib.execution.log_dir_moves import LogDirMove, LogDirStatus, log_dir_moves, planned_log_dirs
from rebalance_lib.execution.plan_status import PlanStatus, Status, read_status
from rebalance_lib.execution.throttles.config import current_throttles
from rebalance_lib.execution.throttles.restore import Restored, clear_throttles, restore_throttles
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition


class Verdict(StrEnum):
    """Where a plan stands as a whole."""

    REACHED = "reached"
    NOT_FINISHED = "not finished"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Verification:
    """A plan compared with the cluster."""

    plan: Plan
    status: PlanStatus
    log_dirs: list[LogDirMove]

    @property
    def verdict(self) -> Verdict:
        """The plan as a whole; wrong wins, since waiting does not help there."""
        states = set(self.status.by_partition.values())
        log_dirs = {move.status for move in self.log_dirs}
        if states & {Status.PENDING, Status.DRIFTED, Status.RECREATED, Status.MISSING}:
            return Verdict.WRONG
        if Status.MOVING in states:
            return Verdict.NOT_FINISHED
        if log_dirs & {LogDirStatus.NOT_MOVING, LogDirStatus.ELSEWHERE, LogDirStatus.MISSING}:
            return Verdict.WRONG
        unfinished = log_dirs & {LogDirStatus.MOVING, LogDirStatus.UNKNOWN}
        return Verdict.NOT_FINISHED if unfinished else Verdict.REACHED

    @property
    def settled(self) -> bool:
        """Nothing of the plan is left to move: replicas may still be out of sync, and of a deleted topic nothing is."""
        targets = self.plan.as_dict()
        waiting = [
            tp
            for tp in self.status.having(Status.PENDING, Status.DRIFTED, Status.MOVING)
            if tp in self.status.reassignments or self.status.live[tp].replicas != targets[tp]
        ]
        return not waiting and all(move.ended for move in self.log_dirs)

    def says(self, tp: TopicPartition) -> str:
        """One partition in words; Kafka's own where its tool has any."""
        state, target = self.status.by_partition[tp], _listed(self.plan.as_dict()[tp])
        live, reassignment = self.status.live.get(tp), self.status.reassignments.get(tp)
        if live is None:
            return f"{tp} does not exist."
        if state is Status.DONE:
            return f"Reassignment of partition {tp} is completed."
        if reassignment is not None and state is Status.MOVING:
            return f"Reassignment of partition {tp} is still in progress."
        if reassignment is not None:
            return f"{tp} is being reassigned to {_listed(reassignment.target)} rather than {target}."
        if state is Status.MOVING:
            late = sorted(set(live.replicas) - live.in_sync)
            return f"{tp} has its replicas, but those on brokers {_listed(late)} are not in sync."
        return (
            f"There is no active reassignment of partition {tp}, "
            f"but replica set is {_listed(live.replicas)} rather than {target}."
        )


@dataclass(frozen=True, slots=True)
class Throttles:
    """What became of a plan's throttles: what was restored, or why they stay."""

    restored: Restored
    kept: str | None = None


def verify(cluster: Cluster, plan: Plan, state: Artifacts) -> Verification:
    """Compare a plan with the cluster; nothing is changed."""
    before = saved_assignment(cluster, plan, state) or plan
    status = read_status(cluster, plan, before, doubted=(Status.DRIFTED, Status.PENDING))
    return Verification(plan, status, log_dir_moves(cluster, planned_log_dirs(plan)))


def saved_assignment(cluster: Cluster, plan: Plan, state: Artifacts) -> Plan | None:
    """The assignment before this plan was executed on this cluster with this tool; None if it was not."""
    return saved_rollback(state) if owned(state, plan, cluster.cluster_id()) else None


def release_throttles(cluster: Cluster, plan: Plan, state: Artifacts) -> Throttles:
    """Remove the throttles of a plan that needs them no more, unless somebody else's moves do.

    What cannot be reached within some seconds is left, and named.
    """
    ours = owned(state, plan, cluster.cluster_id())
    if ours and not stale_throttles(state):
        return Throttles(Restored())
    current = current_throttles(cluster, plan)
    if not ours and not (current.replicas or current.brokers):
        return Throttles(Restored())
    if others := cluster.reassignments():
        return Throttles(Restored(), f"{len(others)} reassignments are under way that may need them")
    return Throttles(restore_throttles(cluster, state) if ours else clear_throttles(cluster, plan))


def _listed(brokers: tuple[int, ...] | list[int]) -> str:
    return ",".join(map(str, brokers))
