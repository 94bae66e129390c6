"""Kafka's throttle configurations: their names, and what they hold now.

Kafka throttles by two configurations of each topic, which list the replicas concerned (``partition:broker``), and two
rates of each broker. Copies between the log dirs of a broker have a rate of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lib.cluster import Cluster, ConfigValue, RefusedConfigsError
from rebalance_lib.cluster.values import Change
from rebalance_lib.errors import InvalidInputError
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
FRESH_SECONDS = 1.0
UNREADABLE = "its configuration could not be read: is this user allowed to?"


@dataclass(frozen=True, slots=True)
class Throttle:
    """What is throttled: entries by topic and list, and the brokers that have a rate."""

    replicas: dict[str, dict[str, list[str]]]
    brokers: list[int]


def entries(value: str | None) -> list[str]:
    """The entries of a list of throttled replicas."""
    return [item for item in (value or "").split(",") if item]


def check_rate(rate: int) -> None:
    """Refuse a rate that would stop replication."""
    if rate <= 0:
        raise InvalidInputError(f"a throttle of {rate} bytes/s would stop replication: give a rate above 0")


def replica_lists(cluster: Cluster, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """The lists of throttled replicas of these topics; topics that are gone are left out."""
    found = cluster.topic_configs(topics, REPLICA_LISTS)
    return {topic: {key: value.value for key, value in lists.items()} for topic, lists in found.items()}


def alter_lists(cluster: Cluster, changes: Mapping[str, Mapping[str, Change]]) -> dict[str, str]:
    """Change the lists of throttled replicas of topics; returns the topics that were refused, with the reason."""
    try:
        cluster.alter_topic_configs(changes)
    except RefusedConfigsError as error:
        return error.refused
    return {}


def throttled_partitions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Those of the partitions that a list of their topic names."""
    wanted = set(partitions)
    named = {
        topic: {item.split(":")[0] for value in lists.values() for item in entries(value)}
        for topic, lists in replica_lists(cluster, {tp.topic for tp in wanted}).items()
    }
    return {tp for tp in wanted if named.get(tp.topic, set()) & {ALL_REPLICAS, str(tp.partition)}}


def current_throttles(cluster: Cluster, plan: Plan) -> Throttle:
    """What throttles this plan now, whoever set it: its entries in the topics' lists, and the brokers with rates.

    Rates count only where the plan can have caused them: those of replication if a list has an entry of the plan, that
    of log dirs if the plan names some.
    """
    numbers: dict[str, set[str]] = defaultdict(set)
    for topic, partition in plan.as_dict():
        numbers[topic].add(str(partition))
    replicas: dict[str, dict[str, list[str]]] = {}
    for topic, lists in sorted(replica_lists(cluster, numbers).items()):
        own = {
            key: [item for item in entries(value) if item.split(":")[0] in numbers[topic]]
            for key, value in lists.items()
        }
        if any(own.values()):
            replicas[topic] = own
    keys = plan_rates(plan, replicas=bool(replicas))
    if not keys:
        return Throttle(replicas, [])
    rates = dynamic_rates(cluster, sorted(cluster.alive_brokers()), keys)
    return Throttle(replicas, sorted(broker for broker, found in rates.items() if found))


def plan_rates(plan: Plan, *, replicas: bool) -> tuple[str, ...]:
    """The rates that a plan can have caused, given whether a list of throttled replicas names it."""
    names_log_dirs = bool(plan.entries["log_dirs"].null_count < len(plan))
    return (*(RATES if replicas else ()), *((LOG_DIR_RATE,) if names_log_dirs else ()))


def fresh_configs(cluster: Cluster, brokers: Sequence[int], keys: Sequence[str]) -> dict[int, dict[str, ConfigValue]]:
    """These configurations of brokers, to be changed by what they are; those that do not answer are left out.

    Where one does not, the answers of the others are as old as its time-out: they are read again.
    """
    began = cluster.clock.monotonic()
    found = cluster.broker_configs(brokers, keys)
    if found and cluster.clock.monotonic() - began > FRESH_SECONDS:
        found = cluster.broker_configs(sorted(found), keys)
    return found


def dynamic_rates(
    cluster: Cluster, brokers: Iterable[int], keys: Sequence[str] = ALL_RATES
) -> dict[int, dict[str, str]]:
    """The rates that are set on these very brokers; those that do not answer are left out."""
    return {
        broker: {key: value.value for key, value in found.items() if value.dynamic}
        for broker, found in cluster.broker_configs(brokers, keys).items()
    }
