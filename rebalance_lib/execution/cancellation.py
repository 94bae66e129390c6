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

from rebalance_lib.cluster import Cluster, PartitionState, Reassignment, Replica
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.log_dirs import cancel_log_dir_moves
from rebalance_lib.execution.state import originals
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition


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


def check_originals(
    partitions: Iterable[TopicPartition],
    live: Mapping[TopicPartition, PartitionState],
    reassignments: Mapping[TopicPartition, Reassignment],
    alive: set[int],
) -> None:
    """Refuse a cancel after which a partition would have no leader, and name it."""
    for tp in partitions:
        if tp not in live:
            continue  # deleted since it was listed, and its reassignment with it
        before = originals(live[tp], reassignments[tp])
        if not alive & live[tp].in_sync & set(before):
            raise ClusterError(
                f"{tp} must not be cancelled: of its original replicas {list(before)} none is alive and in sync, so it "
                f"would be left without a leader (in sync: {sorted(live[tp].in_sync)}); start one of them, or let the "
                "reassignment end"
            )
