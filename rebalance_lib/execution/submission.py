"""Check that the plan still fits the cluster, then hand the controller what is left of it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError, DriftError
from rebalance_lib.execution.status import PlanStatus, Status, listing, plan_status
from rebalance_lib.plan import Plan


@dataclass(frozen=True, slots=True)
class Submitted:
    """How many partitions were handed over now, and how many were done, under way or gone already."""

    submitted: int
    already_done: int
    already_moving: int
    missing: int


def preflight(cluster: Cluster, plan: Plan, before: Plan, *, cluster_id: str) -> PlanStatus:
    """Refuse, before anything is changed, a plan that no longer fits the cluster.

    Raises:
        DriftError: It is another cluster, or somebody else moved partitions of the plan.
        ClusterError: Foreign reassignments are under way, or a target broker is not alive.
    """
    live_id = cluster.cluster_id()
    if live_id != cluster_id:
        raise DriftError(f"the plan is for cluster {cluster_id}, this is {live_id}: check the connection")
    status = plan_status(cluster, plan, before)
    if foreign := status.foreign:
        raise ClusterError(
            f"{len(foreign)} reassignments of somebody else are under way ({listing(foreign)}): "
            "wait until they end, or cancel them with the tool that started them"
        )
    if drifted := status.having(Status.DRIFTED):
        raise DriftError(
            f"{len(drifted)} partitions are no longer where the snapshot saw them ({listing(drifted)}): plan again"
        )
    alive = set(cluster.alive_brokers())
    targets = plan.as_dict()
    unfinished = status.having(Status.PENDING, Status.MOVING)
    if dead := sorted({broker for tp in unfinished for broker in targets[tp]} - alive):
        raise ClusterError(f"target brokers {dead} are not alive: start them, or plan again without them")
    return status


def submit(cluster: Cluster, plan: Plan, status: PlanStatus) -> Submitted:
    """Hand the controller every partition that is neither done nor under way."""
    targets = plan.as_dict()
    pending = status.having(Status.PENDING)
    cluster.reassign({tp: targets[tp] for tp in pending})
    return Submitted(
        submitted=len(pending),
        already_done=len(status.having(Status.DONE)),
        already_moving=len(status.having(Status.MOVING)),
        missing=len(status.having(Status.MISSING)),
    )
