"""Cancel what is under way of a plan's partitions, as ``kafka-reassign-partitions --cancel`` does, whoever began it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lib.cluster import Cluster, Replica
from rebalance_lib.execution.cancellation import check_originals
from rebalance_lib.execution.log_dir_moves import cancel_log_dir_moves
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The partitions whose reassignment was cancelled, and the replicas that stay in their log dir."""

    partitions: list[TopicPartition]
    replicas: list[Replica]


def cancel(cluster: Cluster, plan: Plan, *, timeout_seconds: float = 10.0) -> Cancelled:
    """Cancel what is under way of the plan's partitions.

    Raises:
        ClusterError: A partition would be left without a leader, or short of in-sync replicas; nothing was cancelled.
    """
    planned = plan.as_dict()
    reassignments = cluster.reassignments()
    under_way = sorted(tp for tp in reassignments if tp in planned)
    live = cluster.partitions({tp.topic for tp in under_way})
    check_originals(cluster, under_way, live, reassignments)
    if under_way:
        cluster.reassign(dict.fromkeys(under_way))
    return Cancelled(under_way, cancel_log_dir_moves(cluster, plan, timeout_seconds))
