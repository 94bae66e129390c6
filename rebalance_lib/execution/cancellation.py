"""Cancel the reassignments of a plan, where that leaves every partition a leader.

A cancelled partition goes back to its originals: the replicas without those that are being added. If none of these is
alive and in sync, nobody is left to lead, and the partition goes offline. Then nothing is cancelled at all, and the
partition is named: the way out is forward, or to start one of the originals.

The controller gives back the set of the originals, not their order; ``rollback.json`` of the plan has that.

Example: ``foo-0`` goes from [1, 2] to [3, 4]; 1 and 2 have died, and the ISR is {3}. A cancel would leave [1, 2]
without a leader, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rebalance_lib.artifacts import CANCEL, Artifacts
from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.cluster import Cluster, PartitionMetadata, Reassignment, Replica
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.commands.plan_state import originals
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import cancel_log_dir_moves
from rebalance_lib.execution.plan_status import Status, read_status
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

CANCEL_SECONDS = 10.0


def ask_to_cancel(artifacts: Artifacts, by: str, clock: Clock = SYSTEM) -> None:
    """Ask whoever carries the run out to end it: at the next check it takes the way out."""
    artifacts.write_json(CANCEL, {"by": by, "at": clock.timestamp()})


def asked_to_cancel(artifacts: Artifacts, since: datetime | None = None) -> str | None:
    """Who asked to end the run, and when; None if nobody did, or only before ``since``."""
    if not artifacts.exists(CANCEL):
        return None
    asked = artifacts.read_json(CANCEL)
    if since is not None and datetime.fromisoformat(asked["at"]) < since:
        return None
    return f"{asked['by']} asked to cancel the run at {asked['at']}"


def forget_cancel(artifacts: Artifacts) -> None:
    """Let a run that was cancelled go on."""
    artifacts.remove_files([CANCEL])


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The partitions whose reassignment was cancelled, and the replicas that stay in their log dir."""

    partitions: list[TopicPartition]
    replicas: list[Replica]


def cancel(cluster: Cluster, plan: Plan, *, timeout_seconds: float = 10.0) -> Cancelled:
    """Cancel what is under way of the plan's partitions, whoever started it.

    Raises:
        ClusterError: A partition would be left without a leader; nothing was cancelled.
    """
    planned = plan.as_dict()
    reassignments = cluster.reassignments()
    under_way = sorted(tp for tp in reassignments if tp in planned)
    live = cluster.partitions({tp.topic for tp in under_way})
    check_originals(under_way, live, reassignments, set(cluster.alive_brokers()))
    cluster.reassign(dict.fromkeys(under_way))
    return Cancelled(under_way, cancel_log_dir_moves(cluster, plan, timeout_seconds))


def cancel_own(cluster: Cluster, job: Job) -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
    """Cancel the moves of a plan that are under way, and wait until they are gone; never those of somebody else.

    Returns:
        The partitions whose move was cancelled, and those that are left, with the reason.
    """
    status = read_status(cluster, job.plan, job.before)
    under_way = [tp for tp in status.having(Status.MOVING) if tp in status.reassignments]
    alive = set(cluster.alive_brokers())
    kept = {
        tp: reason
        for tp in under_way
        if (reason := no_way_back(tp, status.live[tp], status.reassignments[tp], alive)) is not None
    }
    cancelled = [tp for tp in under_way if tp not in kept]
    cluster.reassign(dict.fromkeys(cancelled))
    cancel_log_dir_moves(cluster, job.plan, CANCEL_SECONDS, only_own=True)
    clock, deadline = cluster.clock, cluster.clock.monotonic() + CANCEL_SECONDS
    while cancelled and clock.monotonic() < deadline and not cluster.reassignments().keys().isdisjoint(cancelled):
        clock.sleep(0.2)
    return cancelled, kept


def no_way_back(tp: TopicPartition, live: PartitionMetadata, reassignment: Reassignment, alive: set[int]) -> str | None:
    """Why a move must not be cancelled: the partition would be left without a leader. None if it may."""
    before = originals(live, reassignment)
    if alive & live.in_sync & set(before):
        return None
    return (
        f"{tp} must not be cancelled: of its original replicas {list(before)} none is alive and in sync, so it "
        f"would be left without a leader (in sync: {sorted(live.in_sync)}); start one of them, or let the "
        "reassignment end"
    )


def check_originals(
    partitions: Iterable[TopicPartition],
    live: Mapping[TopicPartition, PartitionMetadata],
    reassignments: Mapping[TopicPartition, Reassignment],
    alive: set[int],
) -> None:
    """Refuse a cancel after which a partition would have no leader, and name it."""
    for tp in partitions:
        if tp not in live:
            continue  # deleted since it was listed, and its reassignment with it
        reason = no_way_back(tp, live[tp], reassignments[tp], alive)
        if reason is not None:
            raise ClusterError(reason)
