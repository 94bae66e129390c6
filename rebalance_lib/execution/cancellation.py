"""Cancel the reassignments of a plan, where no partition is worse off for it.

A cancelled partition goes back to its originals: the replicas without those that are being added. If none of these is
alive and in sync, nobody is left to lead, and the partition goes offline; if fewer are than ``min.insync.replicas``
asks for, producers with ``acks=all`` are refused where they were not before. Such a move is not cancelled, and is
named: let it end, or start one of the originals.

The controller gives back the set of the originals, not their order; ``rollback.json`` of the plan has that.

Example: ``foo-0`` goes from [1, 2, 3] to [4, 5, 6] and needs two in-sync replicas; 1 and 2 have died, and the ISR is
{3, 4, 5}. A cancel would leave {3} alone in sync, so the move goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from rebalance_lib.cluster import Cluster, PartitionMetadata, Reassignment, RefusedError
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import cancel_log_dir_moves
from rebalance_lib.execution.messages import ignore
from rebalance_lib.execution.min_isr import MinIsr
from rebalance_lib.execution.plan_status import Status, read_status
from rebalance_lib.execution.records.execution import planned_ends
from rebalance_lib.topology import TopicPartition

CANCEL_SECONDS = 10.0


def originals(state: PartitionMetadata, reassignment: Reassignment | None) -> tuple[int, ...]:
    """The replicas of a partition without those that are being added."""
    adding = () if reassignment is None else reassignment.adding
    return tuple(broker for broker in state.replicas if broker not in adding)


def cancel_own(
    cluster: Cluster,
    job: Job,
    on_cancelled: Callable[[list[TopicPartition]], None] = ignore,
    *,
    in_stages: bool = True,
) -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
    """Cancel the moves of a plan that are under way, and wait until they are gone; never those of somebody else.

    Args:
        cluster: The live cluster.
        job: What is executed.
        on_cancelled: Called with the partitions whose move was cancelled, as soon as the controller has: what comes
            afterwards may fail.
        in_stages: Whether the plan takes one new replica at a time, where its record cannot be read: what somebody else
            moves to the same brokers as a stage is not ours otherwise.

    Returns:
        The partitions whose move was cancelled, and those that are left, with the reason.
    """
    status = read_status(cluster, ends=planned_ends(job, in_stages=in_stages))
    under_way = [tp for tp in status.having(Status.MOVING) if tp in status.reassignments]
    kept = reasons_not_to_cancel(cluster, under_way, status.live, status.reassignments)
    cancelled = [tp for tp in under_way if tp not in kept]
    if cancelled:
        try:
            cluster.reassign(dict.fromkeys(cancelled))
        except RefusedError as error:
            kept |= {tp: f"the controller refused to cancel it: {reason}" for tp, reason in error.refused.items()}
            cancelled = [tp for tp in cancelled if tp not in kept]
        on_cancelled(cancelled)
    cancel_log_dir_moves(cluster, job.plan, CANCEL_SECONDS, only_own=True)
    clock, deadline = cluster.clock, cluster.clock.monotonic() + CANCEL_SECONDS
    while cancelled and clock.monotonic() < deadline and not cluster.reassignments().keys().isdisjoint(cancelled):
        clock.sleep(0.2)
    return cancelled, kept


def reasons_not_to_cancel(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    live: Mapping[TopicPartition, PartitionMetadata],
    reassignments: Mapping[TopicPartition, Reassignment],
) -> dict[TopicPartition, str]:
    """The moves that must not be cancelled, with the reason; what was deleted since it was listed is left out."""
    alive, min_isr = set(cluster.alive_brokers()), MinIsr(cluster)
    listed = [tp for tp in partitions if tp in live]
    min_isr.learn({tp.topic for tp in listed if not live[tp].in_sync.issuperset(live[tp].replicas)})
    found = {}
    for tp in listed:
        late = not live[tp].in_sync.issuperset(live[tp].replicas)
        least = min_isr.of(tp.topic) if late else 1
        reason = reason_not_to_cancel(tp, live[tp], reassignments[tp], alive, least)
        if reason is not None:
            found[tp] = reason
    return found


def reason_not_to_cancel(
    tp: TopicPartition, live: PartitionMetadata, reassignment: Reassignment, alive: Collection[int], min_isr: int
) -> str | None:
    """Why a move must not be cancelled: its partition would be worse off. None if it may."""
    before = originals(live, reassignment)
    left = live.in_sync.intersection(before, alive)
    if not left:
        return (
            f"{tp} must not be cancelled: of its original replicas {list(before)} none is alive and in sync, so it "
            f"would be left without a leader (in sync: {sorted(live.in_sync)}); start one of them, or let the "
            "reassignment end"
        )
    now, needed = live.in_sync.intersection(alive), min(min_isr, len(before))
    if len(left) < needed <= len(now):
        return (
            f"{tp} must not be cancelled: of its original replicas {list(before)} only {sorted(left)} are alive and in "
            f"sync, and it needs {needed}; start the others, or let the reassignment end"
        )
    return None


def check_originals(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    live: Mapping[TopicPartition, PartitionMetadata],
    reassignments: Mapping[TopicPartition, Reassignment],
) -> None:
    """Refuse a cancel after which a partition would be worse off, and name it."""
    for reason in reasons_not_to_cancel(cluster, partitions, live, reassignments).values():
        raise ClusterError(reason)
