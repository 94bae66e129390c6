"""Brokers: whether they run, and their log dirs with what takes space in them.

A broker that is *up* may still *hang*: the controller hears from it, yet it answers no request and copies nothing. New
replicas go to the log dir that was noted for them by AlterReplicaLogDirs, else to the one with the fewest. The log of
a replica that is removed takes its space until ``file.delete.delay.ms`` has passed. A log dir that is full fails, as
it does in Kafka, and a broker that has no log dir left stops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from rebalance_lib.cluster.values import HeldReplica, LogDir
from rebalance_lib.topology import TopicPartition
from simulator.replicas import Partition

NIC = 100_000_000.0  # bytes a second, in each direction


class BrokerLogDir:
    """A log dir: its path, its size, whether it works, and what was removed from it and still takes space."""

    __slots__ = ("deleted", "online", "path", "total")

    def __init__(self, path: str, total: float) -> None:
        self.path = path
        self.total = float(total)
        self.online = True
        self.deleted: list[tuple[float, float]] = []  # when the space is free again, and how much

    def free_later(self, time: float, size: float, now: float) -> None:
        """Count this as taken until that time."""
        self.deleted = [(until, taken) for until, taken in self.deleted if until > now]
        if time > now:
            self.deleted.append((time, size))


class SimulatedBroker:
    """A broker.

    Attributes:
        id: Its id.
        rack: Its rack, if any.
        up: Whether its process runs.
        hung: Whether it runs, and does nothing but tell the controller that it does.
        nic: Bytes a second that it can send, and that it can receive.
        log_dirs: By path.
        partitions: Those that it has a log of.
        noted: The log dirs that replicas are to be put into when they come; forgotten by a restart.
        queued: Requests that reached it while it hung, and that it applies when it goes on.
    """

    __slots__ = ("hung", "id", "log_dirs", "nic", "noted", "partitions", "queued", "rack", "up")

    def __init__(self, broker: int, rack: str | None, log_dirs: Mapping[str, float], nic: float = NIC) -> None:
        self.id = broker
        self.rack = rack
        self.nic = float(nic)
        self.up = True
        self.hung = False
        self.log_dirs = {path: BrokerLogDir(path, total) for path, total in log_dirs.items()}
        self.partitions: dict[TopicPartition, Partition] = {}
        self.noted: dict[TopicPartition, str] = {}
        self.queued: list[Callable[[SimulatedBroker], object]] = []

    @property
    def working(self) -> bool:
        """Whether it answers requests and copies replicas."""
        return self.up and not self.hung

    def log_dir_for(self, partition: TopicPartition) -> str | None:
        """Where it puts a new replica: None if no log dir works."""
        noted = self.noted.pop(partition, None)
        if noted is not None and self.log_dirs[noted].online:
            return noted
        counts = {path: 0 for path, log_dir in self.log_dirs.items() if log_dir.online}
        for held in self.partitions.values():
            if (path := held.logs[self.id].path) in counts:
                counts[path] += 1
        return min(counts, key=lambda path: counts[path], default=None)

    def used_bytes(self, now: float) -> dict[str, float]:
        """The space that is taken in each log dir: by replicas, by copies of them, and by what was just removed."""
        used = self._deleted_bytes(now)
        for partition in self.partitions.values():
            log = partition.logs[self.id]
            used[log.path] += partition.size_at(log, now)
            if log.future is not None:
                used[log.future.path] += log.future.size_at(now)
        return used

    def full_at(self, now: float) -> tuple[float, str]:
        """When which of its log dirs will be full, if everything goes on as it does."""
        used = self.used_bytes(now)
        growth = dict.fromkeys(used, 0.0)
        for partition in self.partitions.values():
            log = partition.logs[self.id]
            growth[log.path] += partition.growth if log.synced else log.rate
            if log.future is not None:
                growth[log.future.path] += log.future.rate
        first, where = inf, ""
        for path, log_dir in self.log_dirs.items():
            free = log_dir.total - used[path]
            full = now if free <= 0 else now + free / growth[path] if growth[path] > 0 else inf
            if log_dir.online and full < first:
                first, where = full, path
        return first, where

    def describe_log_dirs(
        self, wanted: frozenset[TopicPartition] | None, now: float, *, bursts: bool = False
    ) -> list[LogDir]:
        """What it answers to DescribeLogDirs.

        Args:
            wanted: The partitions of interest; None for all.
            now: Simulated seconds.
            bursts: Show a replica that is behind as it was after the last burst of fetches.
        """
        replicas: dict[str, list[HeldReplica]] = {path: [] for path in self.log_dirs}
        used = self._deleted_bytes(now)
        for name, partition in self.partitions.items():
            log, future = partition.logs[self.id], partition.logs[self.id].future
            size = partition.size_at(log, now)
            used[log.path] += size
            if future is not None:
                used[future.path] += future.size_at(now)
            if wanted is None or name in wanted:
                shown = log.reported if bursts and log.throttled and not log.synced else size
                replicas[log.path].append(HeldReplica(name, int(shown), future=False))
                if future is not None:
                    replicas[future.path].append(HeldReplica(name, int(future.size_at(now)), future=True))
        return [
            LogDir(path, True, int(log_dir.total), max(0, int(log_dir.total - used[path])), sorted(replicas[path]))
            if log_dir.online
            else LogDir(path, False, None, None, [])
            for path, log_dir in self.log_dirs.items()
        ]

    def _deleted_bytes(self, now: float) -> dict[str, float]:
        """The space that is taken in each log dir by what was removed and is not deleted yet."""
        taken = dict.fromkeys(self.log_dirs, 0.0)
        for path, log_dir in self.log_dirs.items():
            for until, size in log_dir.deleted:
                if until > now:
                    taken[path] += size
        return taken
