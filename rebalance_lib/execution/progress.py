"""How far a plan has come: in partitions and bytes, at which rate, and how long it will take.

The bytes of a move are those of the new replica against its leader, from the sizes in the brokers' log dirs: Kafka's
own lag figure stays 0 for a replica that is being added. A `Meter` asks for what moves now; sizes of the rest it asks
for once, for they change little and the answer is long. The rate is that of the last checks.

Example: ``foo-0`` of 10 MB goes to two new brokers; one holds 10 MB, the other 4 MB: 14 of 20 MB are copied. If it were
12 MB one second ago, the rate is 2 MB/s, and 3 s are left.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_lib.cluster import Cluster, LogDir
from rebalance_lib.execution.cancellation import originals
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.plan import Plan
from rebalance_lib.plan.waves import SLOT_BYTES
from rebalance_lib.topology import TopicPartition

RATE_SECONDS = 60.0  # over how long a rate is measured


class Copy(NamedTuple):
    """A new replica on its way: bytes that it has, and that its leader has."""

    partition: TopicPartition
    broker: int
    copied: int
    whole: int

    @property
    def remaining(self) -> int:
        """Bytes that it lacks."""
        return max(0, self.whole - self.copied)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What brokers hold of some partitions, their log dirs, and which of them did not answer."""

    bytes: dict[tuple[TopicPartition, int], int]
    log_dirs: dict[int, list[LogDir]]
    silent: frozenset[int]


@dataclass(frozen=True, slots=True)
class BrokerProgress:
    """The bytes that a broker is given: copied so far and in all, and the rate in bytes per second if known."""

    copied: int
    to_copy: int
    rate: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of partitions by status, bytes copied of the bytes to copy in the whole run, rate and time left."""

    done: int
    moving: int
    pending: int
    missing: int
    drifted: tuple[TopicPartition, ...]
    bytes_copied: int
    bytes_to_copy: int
    rate: float | None = None
    brokers: dict[int, BrokerProgress] = field(default_factory=dict)
    copies: tuple[Copy, ...] = ()

    @property
    def stopped(self) -> bool:
        """Something is left to do, but nothing is under way: the moves were cancelled, or never submitted."""
        return self.pending > 0 and self.moving == 0

    @property
    def finished(self) -> bool:
        """Nothing of the plan is left to do."""
        return not (self.moving or self.pending)

    @property
    def share(self) -> float:
        """The part of the work that is done, from 0 to 1."""
        if self.bytes_to_copy:
            return self.bytes_copied / self.bytes_to_copy
        partitions = self.done + self.moving + self.pending
        return self.done / partitions if partitions else 1.0

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at this rate; None while that is not known."""
        remaining = self.bytes_to_copy - self.bytes_copied
        return remaining / self.rate if self.rate else None

    def __str__(self) -> str:
        partitions = self.done + self.moving + self.pending
        text = f"{self.done} of {partitions} partitions done, {self.moving} moving, {self.pending} not started"
        if self.bytes_to_copy:
            text += f"; {self.share:.0%} of {self.bytes_to_copy / 1e6:.1f} MB copied"
        if self.rate and not self.finished:
            text += f", {self.rate / 1e6:.2f} MB/s, {duration(self.seconds_left or 0)} left"
        if self.missing:
            text += f"; {self.missing} belong to topics that were deleted"
        return text


class Meter:
    """Measures a plan again and again; remembers sizes, and what it saw before, for rates."""

    def __init__(self, plan: Plan, before: Plan, sizes: Mapping[TopicPartition, int] | None = None) -> None:
        origins = before.as_dict()
        self._planned_sizes = sizes or {}
        self._new = {
            tp: tuple(broker for broker in target if broker not in origins.get(tp, ()))
            for tp, target in plan.as_dict().items()
        }
        self._sizes: dict[TopicPartition, int] = {}
        self._copied: dict[tuple[TopicPartition, int], int] = {}
        self._seen: deque[tuple[float, int, dict[int, int]]] = deque()

    def size(self, tp: TopicPartition) -> int:
        """The bytes of one replica of the partition, as its leader last showed it, or as they were when it was planned.

        One that nobody knows counts as large as takes a broker's slot of its own.
        """
        return self._sizes.get(tp, self._planned_sizes.get(tp, SLOT_BYTES))

    def knows(self, tp: TopicPartition) -> bool:
        """Whether the size of the partition is, or was, known."""
        return tp in self._sizes or tp in self._planned_sizes

    def learn(self, cluster: Cluster, status: PlanStatus, alive: Collection[int]) -> None:
        """Ask for the sizes of planned partitions that are not known yet: their leaders, else their other replicas.

        Not those that are being added: what has just begun to be copied would count as empty.
        """
        unknown = [tp for tp in self._new if tp not in self._sizes and tp in status.live]
        if not unknown:
            return
        leaders = {leader for tp in unknown if (leader := status.live[tp].leader) in alive and leader is not None}
        self._learn(read_sizes(cluster, unknown, leaders), unknown, status)
        unknown = [tp for tp in unknown if tp not in self._sizes]
        whole = {tp: originals(status.live[tp], status.reassignments.get(tp)) for tp in unknown}
        others = {broker for brokers in whole.values() for broker in brokers if broker in alive} - leaders
        found = read_sizes(cluster, unknown, others)
        for tp in unknown:
            held = [found.bytes[tp, broker] for broker in whole[tp] if (tp, broker) in found.bytes]
            if held:
                self._sizes[tp] = max(held)

    def read(self, cluster: Cluster, status: PlanStatus, alive: Collection[int]) -> tuple[Progress, Sizes]:
        """Measure the moves under way; a broker that does not answer has what it had when it last did."""
        self.learn(cluster, status, alive)
        moving = [tp for tp in status.having(Status.MOVING) if self._new[tp] and tp in status.live]
        asked = {broker for tp in moving for broker in (*self._new[tp], *status.live[tp].replicas) if broker in alive}
        found = read_sizes(cluster, moving, asked)
        self._learn(found, moving, status)
        silent = {key: copied for key, copied in self._copied.items() if key[1] in found.silent}
        self._copied = {**silent, **found.bytes}
        copies = [
            Copy(tp, broker, min(self.size(tp), self._copied.get((tp, broker), 0)), self.size(tp))
            for tp in moving
            for broker in self._new[tp]
        ]
        copied: dict[int, int] = defaultdict(int)
        to_copy: dict[int, int] = defaultdict(int)
        under_way = set(moving)
        for tp, brokers in self._new.items():
            here = () if tp in under_way else status.live[tp].replicas if tp in status.live else brokers
            whole = self.size(tp) if self.knows(tp) else 0
            for broker in brokers:
                to_copy[broker] += whole
                copied[broker] += whole if broker in here else 0
        for copy in copies:
            copied[copy.broker] += copy.copied
        return self._progress(cluster.clock.monotonic(), status, dict(copied), dict(to_copy), copies), found

    def _learn(self, found: Sizes, partitions: Iterable[TopicPartition], status: PlanStatus) -> None:
        for tp in partitions:
            leader = status.live[tp].leader
            if leader is not None and (tp, leader) in found.bytes:
                self._sizes[tp] = found.bytes[tp, leader]

    def _progress(
        self, now: float, status: PlanStatus, copied: Mapping[int, int], to_copy: Mapping[int, int], copies: list[Copy]
    ) -> Progress:
        self._seen.append((now, sum(copied.values()), dict(copied)))
        while len(self._seen) > 2 and now - self._seen[0][0] > RATE_SECONDS:
            self._seen.popleft()
        begun, before, by_broker = self._seen[0]
        elapsed = now - begun

        def rate(bytes_now: int, bytes_then: int) -> float | None:
            return max(0.0, (bytes_now - bytes_then) / elapsed) if elapsed > 0 else None

        return Progress(
            done=len(status.having(Status.DONE)),
            moving=len(status.having(Status.MOVING)),
            pending=len(status.having(Status.PENDING)),
            missing=len(status.having(Status.MISSING)),
            drifted=tuple(status.having(Status.DRIFTED, Status.RECREATED)),
            bytes_copied=sum(copied.values()),
            bytes_to_copy=sum(to_copy.values()),
            rate=rate(sum(copied.values()), before),
            brokers={
                broker: BrokerProgress(copied[broker], to_copy[broker], rate(copied[broker], by_broker.get(broker, 0)))
                for broker in sorted(to_copy)
            },
            copies=tuple(copies),
        )


def read_sizes(cluster: Cluster, partitions: Collection[TopicPartition], brokers: Iterable[int]) -> Sizes:
    """What these brokers hold of these partitions, and their log dirs; copies between log dirs do not count."""
    asked = sorted(set(brokers)) if partitions else []
    log_dirs = cluster.describe_log_dirs(asked, partitions) if asked else {}
    sizes = {
        (held.partition, broker): held.size
        for broker, listed in log_dirs.items()
        for log_dir in listed
        for held in log_dir.replicas
        if not held.future
    }
    return Sizes(sizes, log_dirs, frozenset(asked) - log_dirs.keys())


def duration(seconds: float) -> str:
    """A time as people say it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
