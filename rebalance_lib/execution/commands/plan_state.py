"""What a plan executed by hand leaves beside its file: the way back, and the throttles that were set before.

The directory is named after the plan's file, ``plan.json.state/``, so that whoever has the one finds the other.
``rollback.json`` is a plan like any other, ``throttles.json`` holds the throttles before the plan, ``owner.json``
says of which plan, by digest, and of which cluster they are, since a file can be written anew or used twice.

A plan may be executed more than once, to change its throttle or after a failure. What was noted the first time is what
was before; so of a partition that is on its way or arrived, the first note is kept.

Example: ``foo-0`` goes from [1, 2] to [3, 4]. Executed again half way, the cluster shows [3, 4, 1, 2]; the way back
stays [1, 2].
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, PartitionMetadata, Reassignment, Replica
from rebalance_lib.errors import ClusterError, InvalidInputError
from rebalance_lib.execution.cancellation import originals
from rebalance_lib.execution.records.execution import EXECUTION, read_execution
from rebalance_lib.execution.records.journal import JOURNAL
from rebalance_lib.execution.throttles.saved import BACKUP, SAVED, stale_throttles
from rebalance_lib.plan import Plan, PlanEntry, format_plan, parse_plan
from rebalance_lib.plan.faults import ANY_LOG_DIR
from rebalance_lib.topology import TopicPartition

ROLLBACK = "rollback.json"
OWNER = "owner.json"


def owned(state: Artifacts, plan: Plan, cluster_id: str) -> bool:
    """Whether what is kept there is of this plan on this cluster."""
    return _read_owner(state) == _owner(plan, cluster_id)


def executed_on(state: Artifacts, plan: Plan) -> str | None:
    """The id of the cluster that this very plan was executed on before; None if it was not."""
    owner = _read_owner(state)
    return owner["cluster_id"] if owner is not None and owner["digest"] == plan.digest else None


def tried(state: Artifacts, plan: Plan, cluster_id: str) -> bool:
    """Whether this plan was begun here before; if not, nothing that is under way is its own."""
    if state.exists(OWNER):
        return owned(state, plan, cluster_id)
    return state.exists(EXECUTION) or state.exists(SAVED) or state.exists(JOURNAL)


def set_owner(state: Artifacts, plan: Plan, cluster_id: str) -> bool:
    """Make the directory this plan's on this cluster; returns whether it was already.

    Raises:
        ClusterError: It still holds throttles that another plan or cluster is to get back.
    """
    if owned(state, plan, cluster_id):
        return True
    if left := stale_throttles(state):
        raise ClusterError(
            f"{state.uri} still keeps the throttles from before another plan was executed ({', '.join(left)}): "
            "verify or cancel that plan first, under the name of this file, or give this one another name"
        )
    if state.exists(ROLLBACK) and (owner := _read_owner(state)) is not None:
        earlier = owner["digest"].removeprefix("sha256:")[:12]
        state.write_text(f"rollback-{earlier}.json", state.read_text(ROLLBACK))
        state.write_text(ROLLBACK, format_plan(Plan.from_entries([])))
    state.remove_files(name for name in (SAVED, BACKUP) if state.exists(name))
    state.write_json(OWNER, _owner(plan, cluster_id), durable=True)
    return False


def _read_owner(state: Artifacts) -> dict[str, str] | None:
    """Whose the directory is; None if nobody's. Where that is damaged, the record of the execution tells."""
    if not state.exists(OWNER):
        return None
    try:
        content = state.read_json(OWNER)
        return {name: str(content[name]) for name in ("cluster_id", "digest")}
    except (InvalidInputError, UnicodeDecodeError, KeyError, TypeError) as error:
        execution = read_execution(state)
        if execution is None:
            raise InvalidInputError(
                f"{state.uri}/{OWNER} is damaged: if nothing of the plan is under way, remove {state.uri}, run it again"
            ) from error
        return {"cluster_id": execution.cluster_id, "digest": execution.digest}


def _owner(plan: Plan, cluster_id: str) -> dict[str, str]:
    return {"cluster_id": cluster_id, "digest": plan.digest}


def saved_rollback(state: Artifacts) -> Plan | None:
    """The way back that was noted when the plan was executed; None if it never was, or by another tool."""
    return parse_plan(state.read_text(ROLLBACK)) if state.exists(ROLLBACK) else None


def save_rollback(
    state: Artifacts, plan: Plan, before: Plan, under_way: Mapping[TopicPartition, object], *, again: bool
) -> Plan:
    """Note the way back; of a plan executed again, keep what was noted of partitions on their way or arrived."""
    noted = saved_rollback(state) if again else None
    targets = plan.as_dict()
    entries = []
    for entry in before:
        tp = entry.topic_partition
        earlier = noted.partition(tp) if noted is not None else None
        keep = earlier is not None and (tp in under_way or entry.replicas == targets.get(tp))
        entries.append(earlier if keep and earlier is not None else entry)
    way_back = Plan.from_entries(entries)
    state.write_text(ROLLBACK, format_plan(way_back))
    return way_back


def live_assignment(
    cluster: Cluster,
    live: Mapping[TopicPartition, PartitionMetadata],
    reassignments: Mapping[TopicPartition, Reassignment],
) -> Plan:
    """These partitions as they are, with their log dirs; replicas that are only being added do not count."""
    alive = set(cluster.alive_brokers())
    held = cluster.replica_log_dirs({broker for state in live.values() for broker in state.replicas} & alive, live)
    entries = []
    for tp, state in sorted(live.items()):
        replicas = originals(state, reassignments.get(tp))
        places = [held.get(Replica(tp.topic, tp.partition, broker)) for broker in replicas]
        log_dirs = tuple(place.current if place and place.current else ANY_LOG_DIR for place in places)
        entries.append(PlanEntry(tp.topic, tp.partition, replicas, log_dirs))
    return Plan.from_entries(entries)
