"""Execute a reassignment by hand, as kafka-reassign-partitions does, against whatever the cluster is now.

The workflow's own steps compare with the snapshot that a plan was made for; here there is none. So the plan is checked
against the live cluster, in Kafka's order and words, and all of it before anything is changed: Kafka's tool leaves
half of a plan executed and its throttles set where the controller refuses the other half.

With ``additional``, reassignments may be under way. For each partition of the plan:

    under way to the same target       it is left alone; only its throttle may change
    under way to another target        the new target replaces it; the originals stay the senders
    ... that the controller never ends the reassignment is cancelled, then the target submitted: a target that drops a
                                       replica on its way and adds none leaves it both adding and removing for ever
    not under way                      the target is submitted, unless the partition has it already

As in Kafka, a throttle given with ``additional`` holds for every reassignment under way, those of others too.

Example: ``foo-0`` goes from [1, 2] to [3, 4], and the plan says [2, 1]. The reassignment is cancelled, which gives
back the set {1, 2}; then the order [2, 1] is submitted, which moves no data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, PartitionMetadata, Reassignment
from rebalance_lib.errors import ClusterError, InvalidInputError
from rebalance_lib.execution.cancellation import check_originals, originals
from rebalance_lib.execution.commands.plan_state import live_assignment, save_rollback, set_owner
from rebalance_lib.execution.log_dir_moves import check_log_dirs, planned_log_dirs, start_log_dir_moves
from rebalance_lib.execution.plan_status import PlanStatus, Status, listing
from rebalance_lib.execution.throttles.apply import apply_log_dir_throttle, apply_throttle
from rebalance_lib.execution.throttles.config import check_rate, throttled_partitions
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.plan import Plan
from rebalance_lib.reassignment import Assignment
from rebalance_lib.reassignment.kraft import propose
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
    live: dict[TopicPartition, PartitionMetadata]
    reassignments: dict[TopicPartition, Reassignment]

    @property
    def to_cancel(self) -> list[TopicPartition]:
        """Partitions under way whose new target the controller would never end, as KRaft's rules have it."""
        return [
            tp
            for tp, target in self.plan.as_dict().items()
            if tp in self.reassignments and self._heads_for(tp) != target and self._never_ends(tp, target)
        ]

    @property
    def to_submit(self) -> list[TopicPartition]:
        """Partitions whose target the controller does not have yet."""
        back = set(self.to_cancel)
        return [tp for tp, target in self.plan.as_dict().items() if tp not in back and self._heads_for(tp) != target]

    def foreign(self, *, again: bool) -> dict[TopicPartition, Reassignment]:
        """Reassignments that somebody, or another plan, started; this plan's own are only if it is executed again."""
        targets = self.plan.as_dict()
        return {tp: entry for tp, entry in self.reassignments.items() if not again or targets.get(tp) != entry.target}

    def _never_ends(self, tp: TopicPartition, target: tuple[int, ...]) -> bool:
        entry = self.reassignments[tp]
        proposed = propose(Assignment(entry.replicas, entry.adding, entry.removing), target)
        return proposed.stuck or proposed.target != target

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
    check_originals(cluster, prepared.to_cancel, live, reassignments)
    check_log_dirs(cluster, plan)
    return prepared


def execute(
    cluster: Cluster, prepared: Prepared, state: Artifacts, limits: Limits, *, timeout_seconds: float = 10.0
) -> Plan:
    """Set the throttles, hand the plan to the controller and start the log dir moves; can be run again.

    Returns:
        The way back, which is kept beside the plan too.

    Raises:
        ClusterError: Something was not accepted; the message says that throttles may be set, and how to take them off.
    """
    plan = prepared.plan
    again = set_owner(state, plan, cluster.cluster_id())
    way_back = save_rollback(state, plan, prepared.before, prepared.reassignments, again=again)
    try:
        _throttle(cluster, prepared, state, limits, prepared.foreign(again=again))
        _hand_over(cluster, prepared, timeout_seconds)
    except ClusterError as error:
        if stale_throttles(state):
            raise ClusterError(
                f"{error}. Throttles were set: execute the plan again, or cancel it to take them off"
            ) from error
        raise
    return way_back


def _throttle(
    cluster: Cluster,
    prepared: Prepared,
    state: Artifacts,
    limits: Limits,
    foreign: dict[TopicPartition, Reassignment],
) -> None:
    if limits.between_brokers is not None:
        everything, status = _moves(prepared)
        throttled = throttled_partitions(cluster, foreign)
        apply_throttle(
            cluster,
            everything,
            status,
            limits.between_brokers,
            state,
            shared=frozenset(broker for tp in throttled for broker in foreign[tp].replicas),
            adopted=throttled & set(prepared.plan.as_dict()),
        )
    if limits.between_log_dirs is not None:
        brokers = {replica.broker for replica in planned_log_dirs(prepared.plan)}
        apply_log_dir_throttle(cluster, brokers, limits.between_log_dirs, state)


def _hand_over(cluster: Cluster, prepared: Prepared, timeout_seconds: float) -> None:
    log_dirs = planned_log_dirs(prepared.plan)
    coming = {
        replica: log_dir
        for replica, log_dir in log_dirs.items()
        if replica.broker not in prepared.live[TopicPartition(replica.topic, replica.partition)].replicas
    }
    cluster.alter_replica_log_dirs(coming)
    targets = prepared.plan.as_dict()
    cluster.reassign({tp: targets[tp] for tp in prepared.to_submit})
    _replace(cluster, prepared)
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
            live[tp] = PartitionMetadata(reassignment.replicas, frozenset(), None, internal=False)
    under_way = {tp: entry for tp, entry in prepared.reassignments.items() if tp not in submitted | cancelled}
    throttled = {tp: targets[tp] for tp in by_partition} | others
    status = PlanStatus(by_partition | dict.fromkeys(others, Status.MOVING), live, under_way)
    return Plan.from_assignment(throttled), status


def _replace(cluster: Cluster, prepared: Prepared) -> None:
    """Cancel, wait until the originals are back, and submit the target from there."""
    back = {tp: set(originals(prepared.live[tp], prepared.reassignments[tp])) for tp in prepared.to_cancel}
    if not back:
        return
    cluster.reassign(dict.fromkeys(back))
    deadline = cluster.clock.monotonic() + CANCEL_SECONDS
    while True:
        live = cluster.partitions({tp.topic for tp in back})
        if all(set(live[tp].replicas) == back[tp] for tp in back if tp in live):
            break
        if cluster.clock.monotonic() > deadline:
            raise ClusterError(
                f"the reassignment of {listing(list(back))} was cancelled but has not ended: verify again"
            )
        cluster.clock.sleep(0.2)
    targets = prepared.plan.as_dict()
    cluster.reassign({tp: targets[tp] for tp in back if tp in live and live[tp].replicas != targets[tp]})
