"""Replication throttles: put on for a plan, and taken off so that exactly what stood before stands again.

Kafka throttles by two settings of each topic, which list the replicas concerned (``partition:broker``), and two rates
of each broker. For a moving partition the replicas that send are all its present ones; those that receive are the ones
to be added. What stands there already may be somebody else's: lists are merged, never overwritten, and ``*`` is left as
it is.

Before the first write, the value of every setting that will change is saved with the run's artifacts. That file alone
is enough to undo the rest, at any later time and from any machine; an entry leaves it once it is put back. What a run
left because its machine died is found there, and put right before the next snapshot.

Example: ``foo`` has ``leader.replication.throttled.replicas = 7:1`` from somebody else, and ``foo-0`` moves from [1, 2]
to [2, 3]. Saved is ``before 7:1, added 0:1 0:2``; set is ``7:1,0:1,0:2``; at the end, ``0:1`` and ``0:2`` leave.

A rate that stands while other reassignments use the broker is theirs, and ends with them: there is no knowing what
stood before it. Such a rate is saved as shared: at the end ours is deleted, unless somebody has put another in its
place meanwhile.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError, DriftError, InvalidInputError
from rebalance_lib.execution.status import PlanStatus, Status
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES = (LEADER_RATE, FOLLOWER_RATE)
ALL_RATES = (*RATES, LOG_DIR_RATE)
REPLICA_LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
ALL_REPLICAS = "*"
SAVED = "throttles.json"
READ_BACK_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Throttle:
    """What a plan throttles: entries per topic and list, and the brokers that take part."""

    replicas: dict[str, dict[str, list[str]]]
    brokers: list[int]


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, and what could not be, with the reason."""

    topics: list[str] = field(default_factory=list)
    brokers: list[int] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def throttle_for(plan: Plan, status: PlanStatus) -> Throttle:
    """The throttle that the unfinished moves of a plan need; partitions that only change order need none."""
    replicas: dict[str, dict[str, list[str]]] = defaultdict(lambda: {key: [] for key in REPLICA_LISTS})
    brokers: set[int] = set()
    targets = plan.as_dict()
    for tp in status.having(Status.PENDING, Status.MOVING):
        reassignment = status.reassignments.get(tp)
        adding = set(reassignment.adding) if reassignment else set(targets[tp]) - set(status.live[tp].replicas)
        if not adding:
            continue
        senders = [broker for broker in status.live[tp].replicas if broker not in adding]
        replicas[tp.topic][LEADER_REPLICAS] += [f"{tp.partition}:{broker}" for broker in senders]
        replicas[tp.topic][FOLLOWER_REPLICAS] += [f"{tp.partition}:{broker}" for broker in sorted(adding)]
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

    A dead broker sends nothing, so it needs no rate; that moves go away from it is often why there is a plan. On
    ``shared`` brokers, rates that stand belong to reassignments under way that others throttled, and end with them; so
    do the entries of ``adopted`` partitions of this plan, which another tool began to move and throttled.
    """
    check_rate(rate)
    throttle = throttle_for(plan, status)
    alive = set(cluster.alive_brokers())
    receivers = {int(entry.split(":")[1]) for lists in throttle.replicas.values() for entry in lists[FOLLOWER_REPLICAS]}
    if dead := sorted(receivers - alive):
        raise ClusterError(f"brokers {dead} take part in the plan but are not alive: start them, or plan again")
    throttle = Throttle(throttle.replicas, [broker for broker in throttle.brokers if broker in alive])
    saved = _load(artifacts, cluster.cluster_id())
    current = {topic: cluster.topic_config(topic, REPLICA_LISTS) for topic in throttle.replicas}
    for topic, lists in throttle.replicas.items():
        for key, wanted in lists.items():
            value = current[topic].get(key)
            numbers = {str(tp.partition) for tp in adopted if tp.topic == topic}
            _remember_list(saved, topic, key, value.value if value else None, wanted=wanted, adopted=numbers)
    for broker in throttle.brokers:
        _remember_rates(saved, cluster, broker, RATES, rate, shared=broker in shared)
    artifacts.write_json(SAVED, saved)
    for topic, lists in throttle.replicas.items():
        standing = {key: current[topic][key].value if key in current[topic] else None for key in lists}
        merged = {key: _merge(standing[key], wanted) for key, wanted in lists.items()}
        cluster.alter_topic_config(topic, {key: value for key, value in merged.items() if value != standing[key]})
    for broker in throttle.brokers:
        cluster.alter_broker_config(broker, dict.fromkeys(RATES, str(rate)))
    return throttle


def apply_log_dir_throttle(cluster: Cluster, brokers: Iterable[int], rate: int, artifacts: Artifacts) -> None:
    """Throttle copies between log dirs to ``rate`` bytes a second on each of these brokers; can be run again."""
    check_rate(rate)
    moving = sorted(set(brokers))
    saved = _load(artifacts, cluster.cluster_id())
    for broker in moving:
        _remember_rates(saved, cluster, broker, (LOG_DIR_RATE,), rate, shared=False)
    artifacts.write_json(SAVED, saved)
    for broker in moving:
        cluster.alter_broker_config(broker, {LOG_DIR_RATE: str(rate)})


def check_rate(rate: int) -> None:
    """Refuse a rate that would stop replication."""
    if rate <= 0:
        raise InvalidInputError(f"a throttle of {rate} bytes/s would stop replication: give a rate above 0")


def restore_throttles(cluster: Cluster, artifacts: Artifacts) -> Restored:
    """Put back what stood before `apply_throttle`; what cannot be reached now stays saved, and is listed.

    Raises:
        DriftError: The saved values are another cluster's.
    """
    restored = Restored()
    if not artifacts.exists(SAVED):
        return restored
    saved = _load(artifacts, cluster.cluster_id())
    alive = set(cluster.alive_brokers())
    for name in list(saved["brokers"]):
        broker = int(name)
        if broker not in alive:
            restored.left[f"broker {broker}"] = "not alive; run the restore again when it is back"
            continue
        try:
            _restore_broker(cluster, broker, saved["brokers"][name], saved.get("shared", {}).get(name, {}))
        except ClusterError as error:
            restored.left[f"broker {broker}"] = str(error)
        else:
            restored.brokers.append(broker)
            del saved["brokers"][name]
            saved.get("shared", {}).pop(name, None)
            artifacts.write_json(SAVED, saved)
    for topic in list(saved["topics"]):
        try:
            if cluster.partitions([topic]):  # else it was deleted meanwhile, and its settings with it
                _restore_topic(cluster, topic, saved["topics"][topic])
        except ClusterError as error:
            restored.left[f"topic {topic}"] = str(error)
        else:
            restored.topics.append(topic)
            del saved["topics"][topic]
            artifacts.write_json(SAVED, saved)
    return restored


def left_behind(artifacts: Artifacts) -> list[str]:
    """What the saved file of a run says is still to be put back."""
    if not artifacts.exists(SAVED):
        return []
    saved = artifacts.read_json(SAVED)
    return [*(f"topic {name}" for name in saved["topics"]), *(f"broker {name}" for name in saved["brokers"])]


def restore_left_behind(cluster: Cluster, runs: Artifacts) -> dict[str, Restored]:
    """Put back what earlier runs below this directory left on this cluster because they died; by run."""
    cluster_id = cluster.cluster_id()
    found = {}
    for name in runs.directories():
        run = runs / name
        if left_behind(run) and run.read_json(SAVED)["cluster_id"] == cluster_id:
            found[run.uri] = restore_throttles(cluster, run)
    return found


def throttled_partitions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Those of the partitions that a throttle of their topic names."""
    wanted = set(partitions)
    lists = {topic: cluster.topic_config(topic, REPLICA_LISTS) for topic in {tp.topic for tp in wanted}}
    named = {
        topic: {item.split(":")[0] for value in values.values() for item in _entries(value.value)}
        for topic, values in lists.items()
    }
    return {tp for tp in wanted if named[tp.topic] & {ALL_REPLICAS, str(tp.partition)}}


def standing_throttles(cluster: Cluster, plan: Plan) -> Throttle:
    """What throttles this plan now, whoever set it: its entries in the topics' lists, and the brokers with rates.

    Rates count only where the plan can have caused them: those of replication if a list has an entry of the plan, that
    of log dirs if the plan names some.
    """
    numbers: dict[str, set[str]] = defaultdict(set)
    for topic, partition in plan.as_dict():
        numbers[topic].add(str(partition))
    replicas: dict[str, dict[str, list[str]]] = {}
    for topic in sorted({tp.topic for tp in cluster.partitions(numbers)}):
        lists = cluster.topic_config(topic, REPLICA_LISTS)
        own = {
            key: [item for item in _entries(value.value) if item.split(":")[0] in numbers[topic]]
            for key, value in lists.items()
        }
        if any(own.values()):
            replicas[topic] = own
    keys = (*(RATES if replicas else ()), *((LOG_DIR_RATE,) if _names_log_dirs(plan) else ()))
    alive = sorted(cluster.alive_brokers())
    return Throttle(replicas, [broker for broker in alive if keys and dynamic_rates(cluster, broker, keys)])


def clear_throttles(cluster: Cluster, plan: Plan) -> Restored:
    """Take off what throttles a plan that another tool started, where nothing is known of what stood before.

    Only the plan's own entries leave the topics' lists; the rates are deleted, as that tool would. Rates go first: if
    this ends half way, the entries still tell that there is something to clear.
    """
    restored = Restored()
    throttle = standing_throttles(cluster, plan)
    keys = (*(RATES if throttle.replicas else ()), *((LOG_DIR_RATE,) if _names_log_dirs(plan) else ()))
    for broker in throttle.brokers:
        try:
            _restore_broker(cluster, broker, dict.fromkeys(dynamic_rates(cluster, broker, keys)), {})
        except ClusterError as error:
            restored.left[f"broker {broker}"] = str(error)
        else:
            restored.brokers.append(broker)
    for topic, lists in throttle.replicas.items():
        try:
            _restore_topic(cluster, topic, {key: {"added": items} for key, items in lists.items()})
        except ClusterError as error:
            restored.left[f"topic {topic}"] = str(error)
        else:
            restored.topics.append(topic)
    return restored


def _names_log_dirs(plan: Plan) -> bool:
    return bool(plan.entries["log_dirs"].null_count < len(plan))


def _load(artifacts: Artifacts, cluster_id: str) -> dict[str, Any]:
    if not artifacts.exists(SAVED):
        return {"cluster_id": cluster_id, "topics": {}, "brokers": {}}
    saved: dict[str, Any] = artifacts.read_json(SAVED)
    if saved["cluster_id"] != cluster_id:
        raise DriftError(
            f"{artifacts.uri}/{SAVED} holds the throttles of cluster {saved['cluster_id']}, this is {cluster_id}"
        )
    return saved


def _remember_list(
    saved: dict[str, Any],
    topic: str,
    key: str,
    standing: str | None,
    *,
    wanted: Iterable[str],
    adopted: Collection[str],
) -> None:
    """Note the value before the run, and which entries are ours; a second call adds entries, but forgets nothing."""
    before = [item for item in _entries(standing) if item.split(":")[0] not in adopted]
    entry = saved["topics"].setdefault(topic, {}).setdefault(key, {"before": ",".join(before) or None, "added": []})
    before = _entries(entry["before"])
    entry["added"] = sorted({*entry["added"], *(item for item in wanted if item not in before)})


def _remember_rates(
    saved: dict[str, Any], cluster: Cluster, broker: int, keys: Sequence[str], rate: int, *, shared: bool
) -> None:
    """Note the rates before the run, once; and, where others use the broker, what ours are."""
    standing = cluster.broker_config(broker, keys)
    before = saved["brokers"].setdefault(str(broker), {})
    ours = saved.setdefault("shared", {}).get(str(broker), {})
    for key in keys:
        own = standing[key].value if key in standing and standing[key].dynamic else None
        if key not in before and shared and own is not None:
            before[key] = None
            ours[key] = str(rate)
        before.setdefault(key, own)
        if key in ours:
            ours[key] = str(rate)
    if ours:
        saved["shared"][str(broker)] = ours


def _entries(value: str | None) -> list[str]:
    return [item for item in (value or "").split(",") if item]


def _merge(standing: str | None, wanted: list[str]) -> str | None:
    if standing == ALL_REPLICAS:
        return standing
    merged = list(dict.fromkeys([*_entries(standing), *wanted]))
    return ",".join(merged) or None


def _restore_topic(cluster: Cluster, topic: str, lists: Mapping[str, Mapping[str, Any]]) -> None:
    standing = cluster.topic_config(topic, REPLICA_LISTS)
    goal: dict[str, str | None] = {}
    for key, entry in lists.items():
        value = standing[key].value if key in standing else None
        if value != ALL_REPLICAS:
            goal[key] = ",".join(item for item in _entries(value) if item not in entry["added"]) or None
    cluster.alter_topic_config(
        topic,
        {key: value for key, value in goal.items() if value != (standing[key].value if key in standing else None)},
    )
    _read_back(lambda: {k: v.value for k, v in cluster.topic_config(topic, REPLICA_LISTS).items()}, goal, topic)


def _restore_broker(cluster: Cluster, broker: int, rates: Mapping[str, str | None], shared: Mapping[str, str]) -> None:
    standing = dynamic_rates(cluster, broker, tuple(rates))
    goal = {key: value for key, value in rates.items() if key not in shared or standing.get(key) == shared[key]}
    cluster.alter_broker_config(broker, goal)
    _read_back(lambda: dynamic_rates(cluster, broker, tuple(rates)), goal, broker)


def dynamic_rates(cluster: Cluster, broker: int, keys: Sequence[str] = ALL_RATES) -> dict[str, str]:
    """The rates that are set on this very broker."""
    return {key: value.value for key, value in cluster.broker_config(broker, keys).items() if value.dynamic}


def _read_back(read: Callable[[], Mapping[str, str]], goal: Mapping[str, str | None], where: object) -> None:
    """Wait until the cluster shows the goal: a setting reaches the brokers a moment after the controller took it."""
    deadline = time.monotonic() + READ_BACK_SECONDS
    while True:
        standing = read()
        if all(standing.get(key) == value for key, value in goal.items()):
            return
        if time.monotonic() > deadline:
            raise ClusterError(f"{where} still shows {standing} {READ_BACK_SECONDS:.0f} s after it was set to {goal}")
        time.sleep(0.2)
