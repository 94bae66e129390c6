"""Execute a reassignment by hand, as kafka-reassign-partitions does, against whatever the cluster is now.

The workflow's own steps compare with the snapshot that a plan was made for; here there is none. So the plan is checked
against the live cluster, in Kafka's order and words, and all of it before anything is changed: Kafka's tool leaves
half of a plan executed and its throttles set where the controller refuses the other half.

With ``additional``, reassignments may be under way. For each partition of the plan:

    under way to the same target       it is left alone; only its throttle may change
    under way, back to its originals   the reassignment is cancelled: as a new target, the controller never ends it
    under way to another target        the new target replaces it; the originals stay the senders
    not under way                      the target is submitted, unless the partition has it already

As in Kafka, a throttle given with ``additional`` holds for every reassignment under way, those of others too.

Example: ``foo-0`` goes from [1, 2] to [3, 4], and the plan says [2, 1]. The reassignment is cancelled, which gives
back the set {1, 2}; then the order [2, 1] is submitted, which moves no data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, PartitionState, Reassignment
from rebalance_lib.errors import ClusterError, InvalidInputError
from rebalance_lib.execution.cancellation import check_originals
from rebalance_lib.execution.log_dirs import planned_log_dirs, start_log_dir_moves
from rebalance_lib.execution.state import live_assignment, originals, save_rollback
from rebalance_lib.execution.status import PlanStatus, Status, listing
from rebalance_lib.execution.throttle import apply_log_dir_throttle, apply_throttle, check_rate
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
    "create a new partition assignment in addition to the existing one. The --additional flag can also be used to "
    "change the throttle by resubmitting the current reassignment."
)
CANCEL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes per second between brokers, and between the log dirs of a broker; None leaves that open."""

    between_brokers: int | None = None
    between_log_dirs: int | None = None

    def __post_init__(self) -> None:
        for rate in (self.between_brokers, self.between_log_dirs):
            if rate is not None:
                check_rate(rate)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan that fits the cluster, and what the cluster was when that was found."""

    plan: Plan
    before: Plan
    live: dict[TopicPartition, PartitionState]
    reassignments: dict[TopicPartition, Reassignment]

    @property
    def to_cancel(self) -> list[TopicPartition]:
        """Partitions that the plan sends back to where their reassignment took them from."""
        return [
            tp
            for tp, target in self.plan.as_dict().items()
            if tp in self.reassignments and set(originals(self.live[tp], self.reassignments[tp])) == set(target)
        ]

    @property
    def to_submit(self) -> list[TopicPartition]:
        """Partitions whose target the controller does not have yet."""
        back = set(self.to_cancel)
        return [tp for tp, target in self.plan.as_dict().items() if tp not in back and self._heads_for(tp) != target]

    @property
    def shared_brokers(self) -> frozenset[int]:
        """Brokers that take part in reassignments which somebody, or another plan, started: rates there are theirs."""
        targets = self.plan.as_dict()
        return frozenset(
            broker
            for tp, reassignment in self.reassignments.items()
            if targets.get(tp) != reassignment.target
            for broker in reassignment.replicas
        )

    def _heads_for(self, tp: TopicPartition) -> tuple[int, ...]:
        reassignment = self.reassignments.get(tp)
        return self.live[tp].replicas if reassignment is None else reassignment.target


def prepare(
    cluster: Cluster, plan: Plan, *, additional: bool = False, allow_replication_factor_change: bool = True
) -> Prepared:
    """Refuse, before anything is changed, what Kafka would refuse.

    Raises:
        InvalidInputError: The plan is empty, or names a broker or a partition that the cluster does not have.
        ClusterError: A reassignment is under way, or must not be cancelled.
    """
    if not len(plan):
        raise InvalidInputError("Partition reassignment list cannot be empty")
    reassignments = cluster.reassignments()
    if reassignments and not additional:
        raise ClusterError(f"{EXISTING} Under way: {listing(sorted(reassignments))}.")
    targets = plan.as_dict()
    alive = set(cluster.alive_brokers())
    if unknown := sorted({broker for replicas in targets.values() for broker in replicas} - alive):
        raise InvalidInputError(f"Unknown broker id {unknown[0]}: the brokers alive are {sorted(alive)}")
    known = cluster.partitions({tp.topic for tp in targets})
    topics = {tp.topic for tp in known}
    if missing := sorted({tp.topic for tp in targets} - topics):
        raise InvalidInputError(f"Topic {missing[0]} not found.")
    if lost := sorted(set(targets) - set(known)):
        raise InvalidInputError(f"Unable to find partition: {listing(lost)}")
    live = {tp: known[tp] for tp in targets}
    prepared = Prepared(plan, live_assignment(cluster, live, reassignments), live, reassignments)
    if not allow_replication_factor_change:
        _check_replication_factor(prepared)
    check_originals(prepared.to_cancel, live, reassignments, alive)
    return prepared


def note_way_back(prepared: Prepared, state: Artifacts) -> Plan:
    """Keep the assignment that the plan changes beside it; can be done again, also half way."""
    return save_rollback(state, prepared.plan, prepared.before, prepared.reassignments)


def execute(
    cluster: Cluster, prepared: Prepared, state: Artifacts, limits: Limits, *, timeout_seconds: float = 10.0
) -> None:
    """Set the throttles, hand the plan to the controller and start the log dir moves; can be run again."""
    plan = prepared.plan
    note_way_back(prepared, state)
    log_dirs = planned_log_dirs(plan)
    if limits.between_brokers is not None:
        everything, status = _moves(prepared)
        apply_throttle(cluster, everything, status, limits.between_brokers, state, shared=prepared.shared_brokers)
    if limits.between_log_dirs is not None:
        apply_log_dir_throttle(cluster, {replica.broker for replica in log_dirs}, limits.between_log_dirs, state)
    coming = {
        replica: log_dir
        for replica, log_dir in log_dirs.items()
        if replica.broker not in prepared.live[TopicPartition(replica.topic, replica.partition)].replicas
    }
    cluster.alter_replica_log_dirs(coming)
    targets = plan.as_dict()
    cluster.reassign({tp: targets[tp] for tp in prepared.to_submit})
    _take_back(cluster, prepared)
    start_log_dir_moves(cluster, log_dirs, timeout_seconds)


def _check_replication_factor(prepared: Prepared) -> None:
    changed = []
    for tp, target in prepared.plan.as_dict().items():
        reassignment = prepared.reassignments.get(tp)
        now = len(prepared.live[tp].replicas if reassignment is None else reassignment.target)
        if now != len(target):
            changed.append(f"{tp}: The replication factor is changed from {now} to {len(target)}")
    if changed:
        raise InvalidInputError("Error reassigning partition(s):\n" + "\n".join(changed))


def _moves(prepared: Prepared) -> tuple[Plan, PlanStatus]:
    """Everything that moves once the plan is submitted, with the replicas that will send and receive.

    A partition whose target is replaced counts as not started, with its originals alone.
    """
    submitted, cancelled = set(prepared.to_submit), set(prepared.to_cancel)
    targets = prepared.plan.as_dict()
    live, others = dict(prepared.live), {}
    by_partition = {
        tp: Status.PENDING if tp in submitted else Status.MOVING if tp in prepared.reassignments else Status.DONE
        for tp in targets
        if tp not in cancelled
    }
    for tp, reassignment in prepared.reassignments.items():
        if tp in submitted:
            live[tp] = replace(live[tp], replicas=originals(live[tp], reassignment))
        elif tp not in targets:
            others[tp] = reassignment.target
            live[tp] = PartitionState(reassignment.replicas, frozenset(), None, internal=False)
    under_way = {tp: entry for tp, entry in prepared.reassignments.items() if tp not in submitted | cancelled}
    throttled = {tp: targets[tp] for tp in by_partition} | others
    status = PlanStatus(by_partition | dict.fromkeys(others, Status.MOVING), live, under_way)
    return Plan.from_assignment(throttled), status


def _take_back(cluster: Cluster, prepared: Prepared) -> None:
    back = prepared.to_cancel
    if not back:
        return
    cluster.reassign(dict.fromkeys(back))
    deadline = time.monotonic() + CANCEL_SECONDS
    targets = prepared.plan.as_dict()
    while True:
        live = cluster.partitions({tp.topic for tp in back})
        if all(set(live[tp].replicas) == set(targets[tp]) for tp in back):
            break
        if time.monotonic() > deadline:
            raise ClusterError(f"the reassignment of {listing(back)} was cancelled but has not ended: verify again")
        time.sleep(0.2)
    cluster.reassign({tp: targets[tp] for tp in back if live[tp].replicas != targets[tp]})
