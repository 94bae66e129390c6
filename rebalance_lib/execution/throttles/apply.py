"""Set the throttle of a whole plan at once, as kafka-reassign-partitions does.

For a moving partition the replicas that send are all its present ones; those that receive are the ones to be added.
What is set already may be somebody else's: lists are merged, never overwritten, and ``*`` is left as it is. Before the
first write, every value that will change is saved (`saved`); `restore` puts it back.

Example: ``foo`` has ``leader.replication.throttled.replicas = 7:1`` from somebody else, and ``foo-0`` moves from [1, 2]
to [2, 3]. Saved is ``before 7:1, added 0:1 0:2``; set is ``7:1,0:1,0:2``; at the end, ``0:1`` and ``0:2`` leave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, Entries
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.throttles.config import (
    ALL_REPLICAS,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    RATES,
    REPLICA_LISTS,
    UNREADABLE,
    Throttle,
    check_rate,
    fresh_configs,
    replica_lists,
)
from rebalance_lib.execution.throttles.saved import SavedThrottles
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

Lists = dict[str, dict[str, list[str]]]  # entries by topic and list


def entries_of(tp: TopicPartition, senders: Iterable[int], receivers: Iterable[int]) -> dict[str, list[str]]:
    """The entries that throttle one move."""
    return {
        LEADER_REPLICAS: [f"{tp.partition}:{broker}" for broker in senders],
        FOLLOWER_REPLICAS: [f"{tp.partition}:{broker}" for broker in receivers],
    }


def throttle_for(targets: Mapping[TopicPartition, Sequence[int]], status: PlanStatus) -> Throttle:
    """The throttle that unfinished moves to these replicas need; partitions that only change order need none."""
    replicas: Lists = defaultdict(lambda: {key: [] for key in REPLICA_LISTS})
    brokers: set[int] = set()
    for tp in status.having(Status.PENDING, Status.MOVING):
        reassignment = status.reassignments.get(tp)
        live = status.live[tp].replicas
        adding = (set(reassignment.adding) if reassignment else set()) | (set(targets[tp]) - set(live))
        if not adding:
            continue
        senders = [broker for broker in live if broker not in adding]
        for key, items in entries_of(tp, senders, sorted(adding)).items():
            replicas[tp.topic][key] += items
        brokers |= {*senders, *adding}
    return Throttle(dict(replicas), sorted(brokers))


def apply_throttle(
    cluster: Cluster,
    plan: Plan,
    status: PlanStatus,
    rate: int,
    artifacts: Artifacts,
    *,
    shared: Collection[int] = (),
    adopted: Collection[TopicPartition] = (),
) -> Throttle:
    """Throttle the plan's moves to ``rate`` bytes a second on each broker; can be run again, also with another rate.

    A broker that is dead or hangs sends and receives nothing, and needs no rate until it is back; that moves go away
    from it is often why there is a plan. On ``shared`` brokers, rates that are set belong to reassignments under way
    that others throttled, and end with them; so do the entries of ``adopted`` partitions of this plan, which another
    tool began to move and throttled.
    """
    check_rate(rate)
    throttle = throttle_for(plan.as_dict(), status)
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    numbers: dict[str, set[str]] = defaultdict(set)
    for tp in adopted:
        numbers[tp.topic].add(str(tp.partition))
    current = replica_lists(cluster, throttle.replicas)
    if unreadable := sorted(throttle.replicas.keys() - current.keys()):
        raise ClusterError(f"the throttle of topic {unreadable[0]} could not be set: {UNREADABLE}")
    change = note_entries(saved, current, throttle.replicas, numbers)
    brokers = set(throttle.brokers) & cluster.alive_brokers().keys()
    before = fresh_configs(cluster, sorted(brokers), RATES)
    for broker, rates in before.items():
        saved.note_rates(broker, rates, RATES, rate, shared=broker in shared)
    saved.write()
    cluster.alter_topic_configs(change)
    _check_set(cluster.alter_broker_configs({broker: dict.fromkeys(RATES, str(rate)) for broker in before}))
    return Throttle(throttle.replicas, sorted(before))


def note_entries(
    saved: SavedThrottles,
    current: Mapping[str, Mapping[str, str]],
    wanted: Mapping[str, Mapping[str, Sequence[str]]],
    adopted: Mapping[str, Collection[str]] | None = None,
) -> dict[str, dict[str, Entries]]:
    """Note entries as ours; returns the change of the lists that adds them, to be made once that is written.

    All of them are added, also where ``current`` shows them: a broker that is behind may show what was removed.
    """
    change: dict[str, dict[str, Entries]] = {}
    for topic, lists in wanted.items():
        for key, items in lists.items():
            there = current[topic].get(key)
            saved.note_list(topic, key, there, wanted=items, adopted=(adopted or {}).get(topic, ()))
            if items and there != ALL_REPLICAS:
                change.setdefault(topic, {})[key] = Entries(tuple(items))
    return change


def apply_log_dir_throttle(cluster: Cluster, brokers: Iterable[int], rate: int, artifacts: Artifacts) -> list[int]:
    """Throttle copies between log dirs to ``rate`` bytes a second on each of these brokers; can be run again.

    Returns:
        The brokers that it was set on: those that answer.
    """
    check_rate(rate)
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    before = cluster.broker_configs(sorted(set(brokers)), (LOG_DIR_RATE,))
    for broker, current in before.items():
        saved.note_rates(broker, current, (LOG_DIR_RATE,), rate)
    saved.write()
    _check_set(cluster.alter_broker_configs({broker: {LOG_DIR_RATE: str(rate)} for broker in before}))
    return sorted(before)


def _check_set(failed: Mapping[int, str]) -> None:
    if failed:
        broker, reason = next(iter(sorted(failed.items())))
        raise ClusterError(f"the throttle of broker {broker} could not be set: {reason}")
