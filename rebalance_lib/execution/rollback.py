"""The way back of a run, as a run of its own: what its partitions had before, from where they are now.

It is planned, reviewed and executed like any other plan, by the same executor. Partitions that the run never
moved, or that are back already, are not in it; those of deleted topics, and those that somebody else has moved since,
are left out. Where the run named log dirs, the former ones are named.

Example: a run put ``foo-0`` from [1, 2] to [3, 2] and did not get to ``foo-1``. Its way back is ``foo-0`` to [1, 2].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rebalance_lib.cluster import Cluster, Replica, groups_or_none, take_snapshot
from rebalance_lib.errors import ClusterError, DriftError
from rebalance_lib.execution.plan_status import at_rest, listing
from rebalance_lib.execution.records.run import Run
from rebalance_lib.plan import Plan, PlanEntry, current_assignment
from rebalance_lib.plan.faults import ANY_LOG_DIR
from rebalance_lib.plan.pace import Pace
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import Snapshot


def prepare_rollback(
    cluster: Cluster, run: Run, into: Run, pace: Pace | None = None, *, log: Callable[[str], object]
) -> Plan:
    """Write snapshot and plan of the way back of ``run`` as the run ``into``; the plan is empty if nothing is to undo.

    Args:
        cluster: The live cluster.
        run: What is to be undone.
        into: Where the way back is written.
        pace: What the forecast counts with.
        log: Takes messages about consumer groups that cannot be read.

    Raises:
        DriftError: It was on another cluster.
        ClusterError: Moves of the run are still under way: cancel them first.
    """
    before, snapshot, groups = run.snapshot(), take_snapshot(cluster), groups_or_none(cluster, log)
    if snapshot.cluster_id != before.cluster_id:
        raise DriftError(f"the run was on cluster {before.cluster_id}, this is {snapshot.cluster_id}")
    plan = run.plan()
    moving = sorted(cluster.reassignments().keys() & plan.as_dict().keys())
    if moving:
        raise ClusterError(f"{len(moving)} partitions of the run are moving ({listing(moving)}): cancel the run first")
    back = Plan.from_entries(_changes(plan, before, snapshot))
    into.write_snapshot(snapshot)
    into.write_groups(groups)
    publish_plan(into.artifacts / "plan", back, snapshot, pace, groups)
    return back


def _changes(plan: Plan, before: Snapshot, now: Snapshot) -> Iterator[PlanEntry]:
    origins, live = current_assignment(before).as_dict(), current_assignment(now).as_dict()
    former, present = _log_dirs(before), _log_dirs(now)
    for entry in plan:
        tp = entry.topic_partition
        if tp not in live or tp not in origins:
            continue
        if live[tp] != entry.replicas and not at_rest(live[tp], origins[tp], entry.replicas):
            continue
        replicas = [Replica(*tp, broker) for broker in origins[tp]]
        log_dirs = tuple(former.get(one) or ANY_LOG_DIR for one in replicas) if entry.log_dirs else None
        elsewhere = entry.log_dirs and any(former.get(one) not in (None, present.get(one)) for one in replicas)
        if live[tp] != origins[tp] or elsewhere:
            yield PlanEntry(*tp, origins[tp], log_dirs)


def _log_dirs(snapshot: Snapshot) -> dict[Replica, str | None]:
    columns = (snapshot.replicas[name].to_pylist() for name in ("topic", "partition", "broker", "log_dir"))
    return {Replica(topic, partition, broker): path for topic, partition, broker, path in zip(*columns, strict=True)}
