"""Partitions and the logs of their replicas: how many bytes are where, at any time.

Nothing is stepped: between two events every size is a straight line, so each log has its bytes at some moment and the
rate since. A replica that has caught up has no bytes of its own: it is as long as its partition, and grows with it.

Example: a partition of 1000 bytes grows by 10 a second. A replica that began at second 5 and copies 110 bytes a second
has 550 of 1050 bytes at second 10, and has caught up at second 15, with 1100.
"""

from __future__ import annotations

from math import inf

from rebalance_lib.reassignment.state import PartitionState
from rebalance_lib.topology import TopicPartition


class Future:
    """A copy of a replica that is made in another log dir of its broker, to take its place."""

    __slots__ = ("bytes", "done_at", "path", "rate", "since")

    def __init__(self, path: str, now: float) -> None:
        self.path = path
        self.bytes = self.rate = 0.0
        self.since = now
        self.done_at = inf

    def size_at(self, now: float) -> float:
        """Its bytes."""
        return self.bytes + self.rate * (now - self.since)

    def copy(self, rate: float, now: float) -> None:
        """Copy at this rate from now on."""
        self.bytes, self.since, self.rate = self.size_at(now), now, rate


class Log:
    """A replica in a log dir of a broker.

    Attributes:
        broker: The broker's id.
        path: The log dir.
        topic_id: Of the topic that it belongs to; a topic created again has another.
        synced: Whether it is as long as the partition.
        created: When the broker created it.
        lagging_since: When it was last as long as the partition; infinite while it is.
        caught_up_at: When it will be as long as the partition, at its present rate.
        throttled: Whether a throttle of its leader's broker or of its own counts its fetches.
        reported: The bytes that it had after the last burst of throttled fetches.
        future: Its copy in another log dir, if one is being made.
    """

    __slots__ = (
        "broker",
        "bytes",
        "caught_up_at",
        "created",
        "future",
        "lagging_since",
        "path",
        "rate",
        "reported",
        "since",
        "synced",
        "throttled",
        "topic_id",
    )

    def __init__(self, broker: int, path: str, topic_id: str, now: float) -> None:
        self.broker = broker
        self.path = path
        self.topic_id = topic_id
        self.synced = False
        self.throttled = False
        self.created = self.since = self.lagging_since = now
        self.bytes = self.rate = self.reported = 0.0
        self.caught_up_at = inf
        self.future: Future | None = None


class Partition:
    """A partition: its state as the controller has it, its end, and its logs by broker.

    Attributes:
        name: Topic and number.
        topic_id: Of its topic.
        state: Replicas, ISR, leader.
        write_rate: Bytes a second that producers want to write.
        growth: Bytes a second that they can write.
        logs: The logs of its replicas by broker, those of dead brokers included.
    """

    __slots__ = ("end", "growth", "logs", "name", "since", "state", "topic_id", "write_rate")

    def __init__(
        self, name: TopicPartition, topic_id: str, state: PartitionState, size: float, write_rate: float
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.state = state
        self.write_rate = write_rate
        self.end = float(size)
        self.growth = 0.0
        self.since = 0.0
        self.logs: dict[int, Log] = {}

    def end_at(self, now: float) -> float:
        """The bytes of a replica that has all."""
        return self.end + self.growth * (now - self.since)

    def size_at(self, log: Log, now: float) -> float:
        """The bytes of this replica."""
        if log.synced:
            return self.end + self.growth * (now - self.since)
        return log.bytes + log.rate * (now - log.since)

    def grow(self, growth: float, now: float) -> None:
        """Grow at this rate from now on."""
        self.end, self.since, self.growth = self.end_at(now), now, growth

    def copy(self, log: Log, rate: float, now: float) -> None:
        """Let a replica that is behind copy at this rate from now on."""
        log.bytes, log.since, log.rate = log.bytes + log.rate * (now - log.since), now, rate

    def stop(self, log: Log, now: float) -> None:
        """This replica fetches no more: from now on it is behind whatever is written."""
        if log.synced:
            log.bytes, log.since, log.rate = self.end_at(now), now, 0.0
            log.synced, log.lagging_since = False, now
            log.reported = log.bytes

    def catch_up(self, log: Log) -> None:
        """This replica has all."""
        log.synced = True
        log.lagging_since = log.caught_up_at = inf

    def lead(self, broker: int, now: float) -> None:
        """The log of this broker is the partition's from now on: others are cut where they have more."""
        leader = self.logs[broker]
        end = self.size_at(leader, now)
        for log in self.logs.values():
            if not log.synced:
                log.bytes, log.since, log.rate = min(self.size_at(log, now), end), now, 0.0
        self.end, self.since, self.growth = end, now, 0.0  # those that had all of a longer log are cut with it
        self.catch_up(leader)
