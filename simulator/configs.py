"""Configurations of topics and brokers, with Kafka's operations and precedence, as they are and as they were.

A topic has only what was set on it; everything else is Kafka's default. A value of a broker comes from the first of:
set on the broker, the cluster's default for all brokers, the broker's own ``server.properties``.

APPEND adds the entries of a list that are not in it, SUBTRACT removes entries, SET replaces the value and DELETE
removes it. A list of throttled replicas is either ``*`` or made of ``partition:broker``: the controller refuses any
mix.

Example: ``0:1`` appended to ``7:1`` gives ``7:1,0:1``, however often; appended to ``*`` it is refused.

>>> configs = Configs()
>>> configs.alter_topic("foo", {LEADER_REPLICAS: "7:1"}, 0.0)
>>> configs.alter_topic("foo", {LEADER_REPLICAS: Entries(("0:1", "7:1"))}, 1.0)
>>> configs.topics["foo"][LEADER_REPLICAS]
'7:1,0:1'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf

from rebalance_lib.cluster.values import Change, ConfigValue, Entries

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
RATES = (LEADER_RATE, FOLLOWER_RATE)
REPLICA_LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
DEFAULTS = {MIN_ISR: "1", UNCLEAN: "false"}
HISTORY_SECONDS = 10.0  # nobody is further behind

_THROTTLED = re.compile(r"\*|(\d+:\d+(,\d+:\d+)*)?")
_ALL = frozenset({"*"})


class Configs:
    """All configurations of a cluster.

    Attributes:
        topics: What is set on each topic.
        brokers: What is set on each broker, dynamically.
        default: What is set as the default of all brokers, dynamically.
        static: What the properties file of each broker says.
    """

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, str]] = {}
        self.brokers: dict[int, dict[str, str]] = {}
        self.default: dict[str, str] = {}
        self.static: dict[int, dict[str, str]] = {}
        self._history: dict[str | int, list[tuple[float, dict[str, str] | None]]] = {}
        self._throttled: dict[tuple[str, str], frozenset[str]] = {}

    def alter_topic(self, topic: str, changes: Mapping[str, Change], now: float) -> str | None:
        """Change a topic's configuration, all of it or nothing; returns why it was refused."""
        values = dict(self.topics.get(topic, {}))
        refused = _apply(values, changes)
        if refused is None:
            self._keep(topic, values, now)
            self.topics[topic] = values
            for key in REPLICA_LISTS:
                self._throttled.pop((topic, key), None)
        return refused

    def alter_broker(self, broker: int, changes: Mapping[str, Change], now: float) -> str | None:
        """Change a broker's dynamic configuration, all of it or nothing; returns why it was refused."""
        values = dict(self.brokers.get(broker, {}))
        refused = _apply(values, changes) or _invalid_rate(values, changes)
        if refused is None:
            self._keep(broker, values, now)
            self.brokers[broker] = values
        return refused

    def delete_topic(self, topic: str, now: float) -> None:
        """The configuration of a topic goes with it."""
        self._keep(topic, None, now)
        self.topics.pop(topic, None)
        for key in REPLICA_LISTS:
            self._throttled.pop((topic, key), None)

    def topic_values(self, topic: str, keys: Sequence[str], as_of: float = inf) -> dict[str, ConfigValue]:
        """What DescribeConfigs says of a topic, as it was at a time; values that are empty are left out."""
        values = self._as_of(topic, as_of, self.topics.get(topic)) or {}
        found = {}
        for key in keys:
            if values.get(key):
                found[key] = ConfigValue(values[key], "DYNAMIC_TOPIC_CONFIG")
            elif key in DEFAULTS and key not in values:
                found[key] = ConfigValue(DEFAULTS[key], "DEFAULT_CONFIG")
        return found

    def broker_values(self, broker: int, keys: Sequence[str], as_of: float = inf) -> dict[str, ConfigValue]:
        """What DescribeConfigs says of a broker, as it was at a time; values that are empty are left out."""
        layers = (
            (self._as_of(broker, as_of, self.brokers.get(broker)) or {}, "DYNAMIC_BROKER_CONFIG"),
            (self.default, "DYNAMIC_DEFAULT_BROKER_CONFIG"),
            (self.static.get(broker, {}), "STATIC_BROKER_CONFIG"),
            (DEFAULTS, "DEFAULT_CONFIG"),
        )
        found = {}
        for key in keys:
            for values, source in layers:
                if values.get(key):
                    found[key] = ConfigValue(values[key], source)
                    break
        return found

    def rate(self, broker: int, key: str) -> float:
        """A rate of a broker in bytes a second; infinite where none is set."""
        for values in (self.brokers.get(broker), self.default, self.static.get(broker)):
            if values and values.get(key):
                return float(values[key])
        return inf

    def is_throttled(self, topic: str, key: str, partition: int, broker: int) -> bool:
        """Whether a list of throttled replicas names this replica."""
        listed = self._throttled.get((topic, key))
        if listed is None:
            value = self.topics.get(topic, {}).get(key, "")
            listed = self._throttled[topic, key] = _ALL if value == "*" else frozenset(filter(None, value.split(",")))
        return bool(listed) and (listed is _ALL or f"{partition}:{broker}" in listed)

    def _keep(self, name: str | int, values: dict[str, str] | None, now: float) -> None:
        current = self.topics.get(name) if isinstance(name, str) else self.brokers.get(name)
        history = self._history.setdefault(name, [(-inf, current)])
        history.append((now, values))
        while len(history) > 2 and history[1][0] < now - HISTORY_SECONDS:
            del history[0]

    def _as_of(self, name: str | int, time: float, current: dict[str, str] | None) -> dict[str, str] | None:
        history = self._history.get(name)
        if history is None:
            return current
        return next((values for since, values in reversed(history) if since <= time), history[0][1])


def _apply(values: dict[str, str], changes: Mapping[str, Change]) -> str | None:
    for key, change in changes.items():
        if change is None:
            values.pop(key, None)
        elif isinstance(change, Entries):
            current = [item for item in values.get(key, "").split(",") if item]
            if change.out:
                current = [item for item in current if item not in change.values]
            else:
                current += [item for item in dict.fromkeys(change.values) if item not in current]
            values[key] = ",".join(current)
        else:
            values[key] = change
        if key in REPLICA_LISTS and key in values and not _THROTTLED.fullmatch(values[key]):
            return "InvalidConfigurationError: must be the literal '*' or a list of replicas"
    return None


def _invalid_rate(values: Mapping[str, str], changes: Mapping[str, Change]) -> str | None:
    """The broker itself refuses a rate that is no whole number from 0."""
    for key in changes:
        if key in (*RATES, LOG_DIR_RATE) and key in values and not values[key].isdecimal():
            return f"InvalidRequestError: Invalid value {values[key]} for configuration {key}"
    return None
