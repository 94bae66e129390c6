"""Clusters for the planner's tests, in plain dictionaries: what Kafka knows, nothing of the planner's arrays.

A `Cluster` becomes a snapshot to plan for, and can carry out a plan, as Kafka would: so a test can plan again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import strategies as st

from rebalance_lib.planner import ClusterModel
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.topology import BROKERS, REPLICAS, BrokerSets, Snapshot, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rebalance_lib.plan import Plan
    from rebalance_lib.planner import Candidate, Request

GB = 1 << 30
DISK = "/data"


@dataclass(frozen=True)
class Host:
    """A broker: its log dirs with their capacities, None where unknown, and bytes on them that are not Kafka's.

    ``cordoned`` names those that are given nothing; None for a broker too old to say.
    """

    rack: str | None = None
    alive: bool = True
    disks: Mapping[str, int | None] = field(default_factory=lambda: {DISK: None})
    other_data: int = 0
    registered: bool = True
    cordoned: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Held:
    """A partition: its replicas in order, the bytes of each, and the log dir of each."""

    replicas: tuple[int, ...]
    sizes: tuple[int | None, ...]
    log_dirs: tuple[str | None, ...]
    internal: bool = False
    adding: tuple[int, ...] = ()
    lagging: tuple[int, ...] = ()  # brokers whose replicas are not in sync

    @property
    def size(self) -> int:
        """What a further replica will occupy: as much as the leader does, or the largest if that is not known."""
        return self.sizes[0] if self.sizes[0] is not None else max((s for s in self.sizes if s is not None), default=0)

    def bytes_on(self, broker: int) -> int:
        size = self.sizes[self.replicas.index(broker)]
        return max((s for s in self.sizes if s is not None), default=0) if size is None else size


@dataclass(frozen=True)
class Cluster:
    """Brokers by id, partitions by topic and number."""

    hosts: Mapping[int, Host]
    partitions: Mapping[TopicPartition, Held]
    sets: Mapping[str, object] = field(default_factory=dict)  # as in the file of broker sets

    @property
    def live(self) -> list[int]:
        return [id_ for id_, host in self.hosts.items() if host.alive]

    @property
    def racks_count(self) -> bool:
        return all(self.hosts[id_].rack is not None for id_ in self.live)

    def rack(self, broker: int) -> str | None:
        host = self.hosts[broker]
        return host.rack if self.racks_count and host.registered else None

    def set_of(self, topic: str) -> set[int]:
        """The brokers that a topic belongs on: all of them if there are no sets."""
        registered = sorted(id_ for id_, host in self.hosts.items() if host.registered)
        given = {
            name: (set(one), ()) if isinstance(one, list) else (set(one["brokers"]), tuple(one["topics"]))
            for name, one in self.sets.items()
        }
        if not given:
            return set(self.hosts)
        for brokers, patterns in given.values():
            if any(fnmatchcase(topic, pattern) for pattern in patterns):
                return brokers
        rest = set(registered) - {id_ for brokers, _ in given.values() for id_ in brokers}
        listed = sorted((one for one in [*(brokers for brokers, _ in given.values()), rest] if one), key=min)
        held = Counter(b for name, one in self.partitions.items() if name.topic == topic for b in one.replicas)
        return max(listed, key=lambda one: sum(held[b] for b in one))

    def bytes_by_broker(self) -> Counter[int]:
        return total((broker, held.bytes_on(broker)) for held in self.partitions.values() for broker in held.replicas)

    def replicas_by_broker(self) -> Counter[int]:
        return Counter(broker for held in self.partitions.values() for broker in held.replicas)

    def leaders_by_broker(self) -> Counter[int]:
        return Counter(held.replicas[0] for held in self.partitions.values())

    def bytes_by_disk(self) -> Counter[tuple[int, str | None]]:
        return total(
            ((broker, disk), held.bytes_on(broker))
            for held in self.partitions.values()
            for broker, disk in zip(held.replicas, held.log_dirs, strict=True)
        )

    def assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {name: held.replicas for name, held in self.partitions.items()}

    def after(self, plan: Plan) -> Cluster:
        """The cluster once Kafka has carried out the plan."""
        partitions = dict(self.partitions)
        for entry in plan:
            name = entry.topic_partition
            before = partitions.get(name, Held((), (), ()))
            sizes, dirs = [], []
            for place, broker in enumerate(entry.replicas):
                stays = broker in before.replicas
                at = before.replicas.index(broker) if stays else -1
                sizes.append(before.sizes[at] if stays else before.size if before.sizes else 0)
                named = entry.log_dirs[place] if entry.log_dirs is not None else "any"
                only = next(iter(self.hosts[broker].disks), None)
                dirs.append(named if named != "any" else before.log_dirs[at] if stays else only)
            internal = before.internal or any(h.internal for n, h in partitions.items() if n.topic == name.topic)
            partitions[name] = Held(entry.replicas, tuple(sizes), tuple(dirs), internal)
        return replace(self, partitions=dict(sorted(partitions.items())))

    def snapshot(self) -> Snapshot:
        on_disk = self.bytes_by_disk()
        brokers = [
            {
                "broker": id_,
                "rack": host.rack,
                "host": f"b{id_}",
                "port": 9092,
                "alive": host.alive,
                "log_dirs": [
                    {
                        "path": path,
                        "total_bytes": size,
                        "usable_bytes": None if size is None else size - on_disk[id_, path] - host.other_data,
                        "cordoned": None if host.cordoned is None else path in host.cordoned,
                    }
                    for path, size in host.disks.items()
                ],
                "cordoned": None if host.cordoned is None else set(host.disks) <= set(host.cordoned),
            }
            for id_, host in self.hosts.items()
            if host.registered
        ]
        snapshot = Snapshot(
            "c",
            "2026-01-01T00:00:00+00:00",
            pa.Table.from_pylist(brokers, BROKERS),
            pa.Table.from_pylist([row for name, held in self.partitions.items() for row in rows(name, held)], REPLICAS),
        )
        return BrokerSets.from_dict(self.sets).apply(snapshot)


def rows(name: TopicPartition, held: Held) -> list[dict[str, object]]:
    sizes, dirs = (*held.sizes, *[None] * len(held.adding)), (*held.log_dirs, *[None] * len(held.adding))
    return [
        {
            "topic": name.topic,
            "partition": name.partition,
            "position": position,
            "broker": broker,
            "leader": position == 0,
            "in_sync": broker not in (*held.adding, *held.lagging),
            "adding": broker in held.adding,
            "removing": False,
            "internal": held.internal,
            "size_bytes": size,
            "log_dir": path,
        }
        for position, (broker, size, path) in enumerate(zip((*held.replicas, *held.adding), sizes, dirs, strict=True))
    ]


def total(pairs) -> Counter:
    """Values summed by key."""
    summed: Counter = Counter()
    for key, value in pairs:
        summed[key] += value
    return summed


def cluster(
    hosts: Mapping[int, Host | str | None] | Sequence[int],
    partitions: Mapping[str, tuple[Sequence[int], int | None]] | None = None,
    *,
    internal: Sequence[str] = (),
) -> Cluster:
    """Brokers by id with a rack or as hosts; partitions such as ``{"orders-0": ([1, 2], 5)}``, on their first disks."""
    named = dict.fromkeys(hosts) if not hasattr(hosts, "items") else dict(hosts)
    made = {id_: host if isinstance(host, Host) else Host(host) for id_, host in named.items()}
    held = {}
    for name, (replicas, size) in (partitions or {}).items():
        topic, _, number = name.rpartition("-")
        disks = tuple(next(iter(made[broker].disks), None) for broker in replicas)
        held[TopicPartition(topic, int(number))] = Held(
            tuple(replicas), (size,) * len(replicas), disks, topic in internal
        )
    return Cluster(made, dict(sorted(held.items())))


def topic(name: str, lists: Sequence[Sequence[int]], size: int | Sequence[int] = 1) -> dict[str, tuple]:
    """The partitions of a topic, all of one size or each of its own."""
    sizes = [size] * len(lists) if isinstance(size, int) else size
    return {f"{name}-{n}": (replicas, s) for n, (replicas, s) in enumerate(zip(lists, sizes, strict=True))}


def choices(before: Cluster, request: Request) -> list[Candidate]:
    return candidates(ClusterModel.of(before.snapshot()), request)


def planned(before: Cluster, request: Request) -> Candidate:
    """The first candidate, which is the whole plan."""
    return choices(before, request)[0]


SIZES = st.one_of(st.just(0), st.integers(1, 20), st.integers(1, 1000), st.just(1 << 40), st.just(1 << 60), st.none())


@st.composite
def odd_clusters(
    draw: st.DrawFn,
    *,
    most_brokers: int = 7,
    most_partitions: int = 12,
    sizes: st.SearchStrategy = SIZES,
    dead: bool = True,
    disks: bool = True,
    alike: bool = False,
) -> Cluster:
    """Any cluster that could be: racks of any size or missing, dead and forgotten brokers, full and several disks."""
    ids = draw(st.lists(st.integers(0, 60), min_size=1, max_size=most_brokers, unique=True))
    names = draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c"), ("a", "a", "a", "b"), (None,), ("a", None)]))
    huge_left = 2
    hosts = {}
    for number, id_ in enumerate(ids):
        lives = number == 0 or not dead or draw(st.sampled_from([True, True, True, True, False]))
        registered = lives or draw(st.booleans())
        paths = ("/d0", "/d1", "/d2")[: draw(st.integers(1, 3))] if disks else ("/d0",)
        hosts[id_] = Host(
            draw(st.sampled_from(names)) if registered else None,
            lives,
            dict.fromkeys(paths) if registered else {},
            0,
            registered,
        )
    partitions = {}
    widths = draw(st.lists(st.integers(1, 5), max_size=4)) if draw(st.integers(0, 9)) else []
    for number, width in enumerate(widths):
        factor = draw(st.integers(1, min(4, len(ids))))
        internal = draw(st.sampled_from([False, False, False, True]))
        same_size = alike or draw(st.booleans())
        for p in range(min(width, most_partitions - len(partitions))):
            replicas = draw(st.permutations(ids))[:factor]
            size = draw(sizes)
            if size == 1 << 60:
                huge_left -= factor
                size = size if huge_left >= 0 else 7
            held = [size if same_size or draw(st.booleans()) else draw(st.sampled_from([None, 0, 3])) for _ in replicas]
            dirs = [draw(st.sampled_from([*hosts[b].disks, None])) if hosts[b].disks else None for b in replicas]
            name = TopicPartition(f"{'__' if internal else ''}t{number}", p)
            partitions[name] = Held(tuple(replicas), tuple(held), tuple(dirs), internal)
    made = Cluster(hosts, dict(sorted(partitions.items())))
    return draw(with_capacities(made)) if draw(st.booleans()) else made


@st.composite
def with_capacities(draw: st.DrawFn, made: Cluster) -> Cluster:
    """Disks of the same or different capacity, some of them nearly full."""
    on_disk = made.bytes_by_disk()
    unit = max(1, *on_disk.values()) if on_disk else 1
    hosts = {}
    for id_, host in made.hosts.items():
        sizes = {
            path: min(
                on_disk[id_, path] + unit * draw(st.sampled_from([4, 4, 2, 1])) // draw(st.sampled_from([1, 1, 3])),
                1 << 61,
            )
            for path in host.disks
        }
        hosts[id_] = replace(host, disks=sizes, other_data=draw(st.sampled_from([0, 0, unit // 8])))
    return replace(made, hosts=hosts)
