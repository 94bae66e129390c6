"""Replication throttles, put on for a plan.

Kafka throttles by two settings of each topic, which list the replicas concerned (``partition:broker``), and two rates
of each broker. For a moving partition the replicas that send are all its present ones; those that receive are the ones
to be added. What stands there already may be somebody else's: lists are merged, never overwritten, and ``*`` is left as
it is. Copies between the log dirs of a broker have a rate of their own.

Before the first write, the value of every setting that will change is saved (`saved_throttles`); `restoring` puts it
back. The rate may be changed while moves are under way: the wanted one is a small file with the run's artifacts, which
is read at every check.

Example: ``foo`` has ``leader.replication.throttled.replicas = 7:1`` from somebody else, and ``foo-0`` moves from [1, 2]
to [2, 3]. Saved is ``before 7:1, added 0:1 0:2``; set is ``7:1,0:1,0:2``; at the end, ``0:1`` and ``0:2`` leave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, ConfigValue, Entries
from rebalance_lib.cluster.requests import ATTEMPTS, SilentError
from rebalance_lib.errors import ClusterError, InvalidInputError, RebalanceError
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.throttles.saved import SavedThrottles, entries
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
WANTED, HEARD = "throttle.json", "wish.json"
REMEDY = "stall remedy"


@dataclass(frozen=True, slots=True)
class Throttle:
    """What a plan throttles: entries per topic and list, and the brokers that take part."""

    replicas: dict[str, dict[str, list[str]]]
    brokers: list[int]


def throttle_for(
    targets: Mapping[TopicPartition, Sequence[int]], status: PlanStatus, *, in_stages: bool = False
) -> Throttle:
    """The throttle that unfinished moves to these replicas need; partitions that only change order need none.

    A partition that gets its new replicas one at a time may be sent by one that came earlier.
    """
    replicas: dict[str, dict[str, list[str]]] = defaultdict(lambda: {key: [] for key in REPLICA_LISTS})
    brokers: set[int] = set()
    for tp in status.having(Status.PENDING, Status.MOVING):
        reassignment = status.reassignments.get(tp)
        live = status.live[tp].replicas
        coming = set(targets[tp]) - set(live)
        adding = (set(reassignment.adding) if reassignment else set()) | coming
        if not adding:
            continue
        senders = [broker for broker in live if broker not in adding]
        if in_stages and len(adding) > 1:
            senders += sorted(adding)
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
    in_stages: bool = False,
    given_up: Callable[[], bool] = lambda: False,
) -> Throttle:
    """Throttle the plan's moves to ``rate`` bytes a second on each broker; can be run again, also with another rate.

    A broker that is dead or hangs sends and receives nothing, and needs no rate until it is back; that moves go away
    from it is often why there is a plan. On ``shared`` brokers, rates that stand belong to reassignments under way that
    others throttled, and end with them; so do the entries of ``adopted`` partitions of this plan, which another tool
    began to move and throttled. If the run is ``given_up`` right before the first write, nothing is set.
    """
    check_rate(rate)
    throttle = throttle_for(plan.as_dict(), status, in_stages=in_stages)
    alive = set(cluster.alive_brokers())
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    described = cluster.topic_configs(throttle.replicas, REPLICA_LISTS)
    if missing := sorted(throttle.replicas.keys() - described.keys()):
        raise ClusterError(f"the settings of topic {missing[0]} could not be read: is this user allowed to?")
    standing = {topic: {key: value.value for key, value in lists.items()} for topic, lists in described.items()}
    for topic, lists in throttle.replicas.items():
        numbers = {str(tp.partition) for tp in adopted if tp.topic == topic}
        for key, wanted in lists.items():
            saved.note_list(topic, key, standing[topic].get(key), wanted=wanted, adopted=numbers)
    before = _standing_rates(cluster, [broker for broker in throttle.brokers if broker in alive], RATES)
    throttle = Throttle(throttle.replicas, sorted(before))
    for broker, rates in before.items():
        saved.note_rates(broker, rates, RATES, rate, shared=broker in shared)
    if given_up():
        return Throttle({}, [])
    saved.write()
    cluster.alter_topic_configs(
        {
            topic: {
                key: Entries(tuple(wanted))
                for key, wanted in lists.items()
                if wanted and standing[topic].get(key) != ALL_REPLICAS
            }
            for topic, lists in throttle.replicas.items()
        }
    )
    for broker in throttle.brokers:
        cluster.alter_broker_config(broker, dict.fromkeys(RATES, str(rate)))
    return throttle


def _standing_rates(cluster: Cluster, brokers: Iterable[int], keys: Sequence[str]) -> dict[int, dict[str, ConfigValue]]:
    """The rates that stand on these brokers; those that do not answer are left out."""
    found = {}
    for broker in brokers:
        with suppress(SilentError):
            found[broker] = cluster.broker_config(broker, keys, attempts=2)
    return found


def apply_log_dir_throttle(cluster: Cluster, brokers: Iterable[int], rate: int, artifacts: Artifacts) -> list[int]:
    """Throttle copies between log dirs to ``rate`` bytes a second on each of these brokers; can be run again.

    Returns:
        The brokers that it was set on: those that answer.
    """
    check_rate(rate)
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    before = _standing_rates(cluster, sorted(set(brokers)), (LOG_DIR_RATE,))
    for broker, standing in before.items():
        saved.note_rates(broker, standing, (LOG_DIR_RATE,), rate, shared=False)
    saved.write()
    for broker in before:
        cluster.alter_broker_config(broker, {LOG_DIR_RATE: str(rate)})
    return list(before)


class Held(NamedTuple):
    """What became of rates: brokers where they were set, what others set between brokers, and who did not answer."""

    changed: list[int]
    theirs: dict[int, int]
    silent: frozenset[int]


def hold_rates(
    cluster: Cluster,
    artifacts: Artifacts,
    rates: Mapping[str, int],
    alive: Collection[int],
    *,
    over_others: bool = False,
    given_up: Callable[[], bool] = lambda: False,
) -> Held:
    """Make these rates, by setting, the ones that stand on each broker that the run throttles.

    Other tools delete rates when their own moves end: this puts ours back while it is needed. A rate that somebody else
    set in the place of ours is told, and left alone unless ``over_others``. Brokers that do not answer are passed over.
    """
    for rate in rates.values():
        check_rate(rate)
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    changes: dict[int, dict[str, str]] = {}
    theirs: dict[int, int] = {}
    silent: set[int] = set()
    for broker, noted in sorted(saved.brokers.items()):
        keys = [key for key in rates if key in noted]
        if not keys or broker not in alive:
            continue
        try:
            standing = dynamic_rates(cluster, broker, keys, attempts=2)
        except SilentError:
            silent.add(broker)
            continue
        foreign = {key for key in keys if key in standing and standing[key] not in noted[key]["set"]}
        if between := foreign.intersection(RATES):
            theirs[broker] = min(int(standing[key]) for key in between)
        wrong = {key: str(rates[key]) for key in keys if over_others or key not in foreign}
        wrong = {key: value for key, value in wrong.items() if standing.get(key) != value}
        changes |= {broker: wrong} if wrong else {}
    if not changes or given_up():
        return Held([], theirs, frozenset(silent))
    for broker, wrong in changes.items():
        for key in wrong:
            saved.note_rates(broker, {}, (key,), rates[key], shared=False)
    saved.write()
    for broker, wrong in changes.items():
        cluster.alter_broker_config(broker, wrong)
    return Held(list(changes), theirs, frozenset(silent))


def request_rate(artifacts: Artifacts, rate: int, by: str) -> None:
    """Ask for another rate; whoever carries the plan out sets it at the next check."""
    check_rate(rate)
    artifacts.write_json(WANTED, {"rate": rate, "by": by})


def read_override(artifacts: Artifacts, rate: int | None) -> None:
    """Want a rate that somebody has begun to wish for; None for no wish.

    A wish that stood when the run first asked was for another run, and is none for this one. What was last heard is
    kept with the run, so that a wish made while nobody carried it out is heard by the next who does.
    """
    with suppress(RebalanceError, OSError, ValueError):  # it is heard at the next check
        known = artifacts.exists(HEARD)
        heard = artifacts.read_json(HEARD)["rate"] if known else rate
        if rate is not None and rate > 0 and rate != heard:
            request_rate(artifacts, rate, "a wish")
        if rate != heard or not known:
            artifacts.write_json(HEARD, {"rate": rate})


def forget_override(artifacts: Artifacts) -> None:
    """The run is over: the next one begins with its own rate."""
    artifacts.remove_files([HEARD])
    if requested_rate(artifacts) is not None:
        artifacts.write_json(WANTED, {"rate": None, "by": "the end of a run"})


def requested_rate(artifacts: Artifacts, otherwise: int | None = None, *, remedies: bool = True) -> int | None:
    """The rate that was asked for since the run began; None if none was, ``otherwise`` if it cannot be read now.

    Without ``remedies``, one that was raised because moves between brokers stalled does not count.
    """
    try:
        if not artifacts.exists(WANTED):
            return None
        content: Any = artifacts.read_json(WANTED)
    except (RebalanceError, OSError, ValueError):
        return otherwise
    rate = content.get("rate") if isinstance(content, dict) else content
    if not remedies and isinstance(content, dict) and content.get("by") == REMEDY:
        return None
    return rate if type(rate) is int and rate > 0 else None


def check_rate(rate: int) -> None:
    """Refuse a rate that would stop replication."""
    if rate <= 0:
        raise InvalidInputError(f"a throttle of {rate} bytes/s would stop replication: give a rate above 0")


def throttled_partitions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Those of the partitions that a throttle of their topic names."""
    wanted = set(partitions)
    lists = cluster.topic_configs({tp.topic for tp in wanted}, REPLICA_LISTS)
    named = {
        topic: {item.split(":")[0] for value in values.values() for item in entries(value.value)}
        for topic, values in lists.items()
    }
    return {tp for tp in wanted if named.get(tp.topic, set()) & {ALL_REPLICAS, str(tp.partition)}}


def standing_throttles(cluster: Cluster, plan: Plan) -> Throttle:
    """What throttles this plan now, whoever set it: its entries in the topics' lists, and the brokers with rates.

    Rates count only where the plan can have caused them: those of replication if a list has an entry of the plan, that
    of log dirs if the plan names some.
    """
    numbers: dict[str, set[str]] = defaultdict(set)
    for topic, partition in plan.as_dict():
        numbers[topic].add(str(partition))
    replicas: dict[str, dict[str, list[str]]] = {}
    for topic, lists in sorted(cluster.topic_configs(numbers, REPLICA_LISTS).items()):
        own = {
            key: [item for item in entries(value.value) if item.split(":")[0] in numbers[topic]]
            for key, value in lists.items()
        }
        if any(own.values()):
            replicas[topic] = own
    keys = plan_rates(plan, replicas=bool(replicas))
    alive = sorted(cluster.alive_brokers())
    return Throttle(replicas, [broker for broker in alive if keys and dynamic_rates(cluster, broker, keys)])


def plan_rates(plan: Plan, *, replicas: bool) -> tuple[str, ...]:
    """The rates that a plan can have caused, given whether a list of throttled replicas names it."""
    names_log_dirs = bool(plan.entries["log_dirs"].null_count < len(plan))
    return (*(RATES if replicas else ()), *((LOG_DIR_RATE,) if names_log_dirs else ()))


def dynamic_rates(
    cluster: Cluster, broker: int, keys: Sequence[str] = ALL_RATES, *, attempts: int = ATTEMPTS
) -> dict[str, str]:
    """The rates that are set on this very broker."""
    found = cluster.broker_config(broker, keys, attempts=attempts)
    return {key: value.value for key, value in found.items() if value.dynamic}
