"""How fast replicas copy, and when the next of them has caught up.

Goal: the rates that NICs, throttles and write rates allow, constant from one event to the next, so that time can
advance by any step at no cost.

A replica that is behind fetches from its partition's leader. Each copy counts against the NIC of the sender and that
of the receiver. If the replica is not in the ISR, it also counts against ``leader.replication.throttled.rate`` of the
sender, where the topic's list names the leader, and against ``follower.replication.throttled.rate`` of the receiver,
where the list names the replica. All that counts against a limit shares it: max-min fair, as in
`rebalance_lib.reassignment.fair_shares`, which works on arrays of many copies between two limits each. Here there are
few copies and up to four limits, and a plain loop is faster.

Copies between the log dirs of a broker share its disks' rate and ``replica.alter.log.dirs.io.max.bytes.per.second``.

Left out: traffic of replicas that are in sync and of clients, which would take a part of the NIC.

Example: broker 1 sends a throttled copy to 2 at no more than 10, and one that is not throttled to 3, over a NIC of 100.

>>> limits = {"1 out": 100.0, "1 throttle": 10.0, "2 in": 100.0, "3 in": 100.0}
>>> fair_shares([("1 out", "2 in", "1 throttle"), ("1 out", "3 in")], limits)
[10.0, 90.0]
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf

from simulator.brokers import SimulatedBroker
from simulator.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    MIN_ISR,
    Configs,
)
from simulator.replicas import Future, Log, Partition

DISK_RATE = 200_000_000.0  # bytes a second between the log dirs of a broker
FETCH_SECONDS = 0.05  # a new replica takes that long to begin to fetch

Key = Hashable


def fair_shares(copies: Sequence[tuple[Key, ...]], limits: Mapping[Key, float]) -> list[float]:
    """The share of each copy, given the limits that it counts against."""
    shares = [0.0] * len(copies)
    budget = dict(limits)
    waiting = list(range(len(copies)))
    while waiting:
        users: dict[Key, int] = {}
        for number in waiting:
            for key in copies[number]:
                users[key] = users.get(key, 0) + 1
        scarce = min(users, key=lambda key: budget[key] / users[key])
        share = max(0.0, budget[scarce] / users[scarce])
        for number in [number for number in waiting if scarce in copies[number]]:
            shares[number] = share
            waiting.remove(number)
            for key in copies[number]:
                budget[key] -= share
    return shares


class Copying:
    """The copies that are being made, with their rates."""

    def __init__(self, brokers: Mapping[int, SimulatedBroker], configs: Configs) -> None:
        self._brokers = brokers
        self._configs = configs
        self._limits: dict[Key, float] = {}
        self._between_brokers: list[tuple[Partition, Log]] = []
        self._between_log_dirs: list[tuple[Partition, Log, Future]] = []
        self._counts: list[tuple[Key, ...]] = []

    def update(self, partitions: Sequence[Partition], now: float) -> float:
        """Set the rates of all copies, as of now; returns when the first of them has caught up."""
        self._limits, self._counts = {}, []
        self._between_brokers, self._between_log_dirs = [], []
        for partition in partitions:
            leader = self._leader_of(partition)
            growth = partition.write_rate if leader is not None and self._accepts_writes(partition) else 0.0
            if growth != partition.growth:
                partition.grow(growth, now)
            for broker, log in partition.logs.items():
                if not log.synced:
                    self._collect(partition, broker, log, leader, now)
                if log.future is not None:
                    self._collect_future(partition, log, log.future, now)
        if not self._counts:
            return inf
        shares = fair_shares(self._counts, self._limits)
        first = inf
        for (partition, log), share in zip(self._between_brokers, shares, strict=False):
            partition.copy(log, share, now)
            gap, closing = max(0.0, partition.end_at(now) - log.bytes), share - partition.growth
            caught_up_at = now + gap / closing if closing > 0 else now if not gap else inf
            log.caught_up_at = max(caught_up_at, log.created + FETCH_SECONDS)
            first = min(first, log.caught_up_at)
        for (partition, log, future), share in zip(
            self._between_log_dirs, shares[len(self._between_brokers) :], strict=True
        ):
            future.copy(share, now)
            grows = partition.growth if log.synced else log.rate
            gap, closing = max(0.0, partition.size_at(log, now) - future.bytes), share - grows
            future.done_at = now + gap / closing if closing > 0 else now if not gap else inf
            first = min(first, future.done_at)
        return first

    def _leader_of(self, partition: Partition) -> int | None:
        """The leader, if it can be written to and read from."""
        leader = partition.state.leader
        return leader if leader is not None and self.can_copy(leader, partition) else None

    def _accepts_writes(self, partition: Partition) -> bool:
        """Whether enough replicas are in sync for producers that want all of them to acknowledge."""
        state = partition.state
        if len(state.isr) == len(state.replicas):
            return True
        wanted = int(self._configs.topics.get(partition.name.topic, {}).get(MIN_ISR) or 1)
        return len(state.isr) >= min(wanted, len(state.replicas))

    def can_copy(self, broker: int, partition: Partition) -> bool:
        """Whether this broker answers, and its log of the partition is in a log dir that works."""
        log = partition.logs.get(broker)
        one = self._brokers[broker]
        return log is not None and one.up and not one.hung and one.log_dirs[log.path].online

    def _collect(self, partition: Partition, broker: int, log: Log, leader: int | None, now: float) -> None:
        state = partition.state
        if leader is None or broker not in state.replicas or not self.can_copy(broker, partition):
            partition.copy(log, 0.0, now)
            log.caught_up_at = inf
            return
        limits, configs = self._limits, self._configs
        out, into = ("out", leader), ("in", broker)
        limits[out], limits[into] = self._brokers[leader].nic, self._brokers[broker].nic
        keys: tuple[Key, ...] = (out, into)
        if broker not in state.isr:
            topic, number = partition.name
            if configs.is_throttled(topic, LEADER_REPLICAS, number, leader):
                limits[LEADER_RATE, leader] = configs.rate(leader, LEADER_RATE)
                keys += ((LEADER_RATE, leader),)
            if configs.is_throttled(topic, FOLLOWER_REPLICAS, number, broker):
                limits[FOLLOWER_RATE, broker] = configs.rate(broker, FOLLOWER_RATE)
                keys += ((FOLLOWER_RATE, broker),)
        log.throttled = len(keys) > 2
        self._between_brokers.append((partition, log))
        self._counts.insert(len(self._between_brokers) - 1, keys)

    def _collect_future(self, partition: Partition, log: Log, future: Future, now: float) -> None:
        one = self._brokers[log.broker]
        if not self.can_copy(log.broker, partition) or not one.log_dirs[future.path].online:
            future.copy(0.0, now)
            future.done_at = inf
            return
        rate = min(DISK_RATE, self._configs.rate(log.broker, LOG_DIR_RATE))
        self._limits[LOG_DIR_RATE, log.broker] = rate
        self._between_log_dirs.append((partition, log, future))
        self._counts.append(((LOG_DIR_RATE, log.broker),))
