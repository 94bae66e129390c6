"""A schedule: a cluster, a plan, how it is carried out, and the faults that strike while it is.

Everything that happens in a simulation follows from this one value, so that a failure is reported, shortened, kept and
repeated as one. It is plain data and goes through JSON unchanged.

    brokers     4 to 7, in 2 or 3 racks, with 1 or 2 log dirs each; disks are sometimes tight
    topics      2 to 6, with 4 to 16 partitions altogether, replication factor 1 to 3
    plan        new replicas for some of them; some only change their order, their replication factor or a log dir
    settings    as `rebalance_lib.execution.Settings.from_dict` reads them
    throttles   rates and lists that somebody else set before the run
    faults      0 to 8, mostly 1 to 4, each at its time

`generate` draws a schedule from a seed. Sizes follow from the throttle, so that a run without faults takes some ten to
sixty seconds of simulated time, and one with faults seldom more than four hundred.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from simulator.drawing import draw_faults
from simulator.shape import BrokerShape, Fault, PartitionShape, Planned, Prior, Shape, TopicShape

MEGABYTE = 1_000_000
WRITTEN_SECONDS = 300  # producers stop then: there is no retention, and disks shall not fill by themselves
COMMAND_LINE, AIRFLOW = "command line", "airflow"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One simulation, before it runs.

    Args:
        seed: Where it was drawn from; what is random while it runs (latencies, metadata lag) follows from it too.
        shape: The cluster before the run.
        plan: What is to change.
        settings: How it is carried out.
        interval: Seconds between two checks.
        way: `COMMAND_LINE` or `AIRFLOW`.
        prior: Throttles that were there before.
        faults: What strikes, by time.
    """

    seed: int
    shape: Shape
    plan: tuple[Planned, ...]
    settings: Mapping[str, Any]
    interval: float = 5.0
    way: str = COMMAND_LINE
    prior: Prior = field(default_factory=Prior)
    faults: tuple[Fault, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Schedule:
        """Read back what `as_dict` gave."""
        return cls(
            seed=given["seed"],
            shape=Shape.from_dict(given["shape"]),
            plan=tuple(Planned.from_dict(one) for one in given["plan"]),
            settings=dict(given["settings"]),
            interval=given["interval"],
            way=given["way"],
            prior=Prior.from_dict(given["prior"]),
            faults=tuple(Fault(one["at"], one["kind"], dict(one["args"])) for one in given["faults"]),
        )

    @property
    def calm_at(self) -> float:
        """When the last fault has ceased; those without an end cease when the run has ended."""
        return max((fault.at + float(fault.args.get("seconds", 0.0)) for fault in self.faults), default=0.0)


def generate(seed: int) -> Schedule:
    """The schedule of a seed."""
    rng = random.Random(seed)
    shape = _shape(rng)
    plan = _plan(rng, shape)
    seconds = rng.choice((5.0, 10.0, 20.0, 40.0, 80.0))
    throttle = _throttle(shape, plan, seconds)
    settings = _settings(rng, throttle)
    shape = _written(rng, shape, throttle)
    shape = _disks(rng, shape, plan, settings["disk_reserve"])
    way = rng.choice((COMMAND_LINE, COMMAND_LINE, AIRFLOW))
    prior = _prior(rng, shape)
    faults = draw_faults(rng, shape, plan, around=seconds)
    return Schedule(seed, shape, plan, settings, rng.choice((2.0, 5.0, 5.0, 10.0)), way, prior, faults)


def _shape(rng: random.Random) -> Shape:
    racks = rng.choice((2, 3))
    brokers = tuple(
        BrokerShape(broker, f"rack{broker % racks}", (0,) * rng.choice((1, 1, 2)))
        for broker in range(1, rng.randint(4, 7) + 1)
    )
    if rng.random() < 0.2:  # a slow network: what nobody throttles takes its time, too
        brokers = tuple(replace(broker, nic=10 * MEGABYTE) for broker in brokers)
    ids = [broker.id for broker in brokers]
    total, topics = rng.randint(4, 16), rng.randint(2, 6)
    topics = min(topics, total)
    counts = [1] * topics
    for _ in range(total - topics):
        counts[rng.randrange(topics)] += 1
    return Shape(brokers, tuple(_topic(rng, f"t{number}", count, ids) for number, count in enumerate(counts)))


def _topic(rng: random.Random, name: str, count: int, ids: list[int]) -> TopicShape:
    factor = rng.choice((1, 2, 2, 3, 3, 3))
    small = rng.random() < 0.3
    partitions = []
    for _ in range(count):
        size = rng.randint(1, 90) * 100_000 if small else rng.randint(10, 200) * MEGABYTE
        partitions.append(PartitionShape(tuple(rng.sample(ids, factor)), size, 0))
    return TopicShape(name, rng.randint(1, max(1, factor - 1)), tuple(partitions))


def _plan(rng: random.Random, shape: Shape) -> tuple[Planned, ...]:
    """New replicas for some partitions; one at least."""
    ids = [broker.id for broker in shape.brokers]
    everything = [(topic.name, number) for topic in shape.topics for number in range(len(topic.partitions))]
    chosen = sorted(rng.sample(everything, rng.randint(max(1, len(everything) // 2), len(everything))))
    planned = []
    for topic, number in chosen:
        before = shape.partition(topic, number).replicas
        target = _target(rng, before, ids)
        log_dirs = None
        if rng.random() < 0.15:
            log_dirs = tuple(
                f"/d{rng.randrange(len(shape.broker(broker).log_dirs))}" if rng.random() < 0.7 else "any"
                for broker in target
            )
        if target != before or log_dirs is not None:
            planned.append(Planned(topic, number, target, log_dirs))
    if not planned:
        topic, number = chosen[0]
        before = shape.partition(topic, number).replicas
        planned.append(Planned(topic, number, (*before[:-1], next(one for one in ids if one not in before)), None))
    return tuple(planned)


def _target(rng: random.Random, before: tuple[int, ...], ids: list[int]) -> tuple[int, ...]:
    """Another list of replicas: mostly one or two others, sometimes all, an order, or another number of them."""
    others = [one for one in ids if one not in before]
    rng.shuffle(others)
    kind = rng.random()
    if kind < 0.08 and len(before) > 1:
        return tuple(rng.sample(before, len(before)))
    if kind < 0.14 and others:
        return (*before, others[0])
    if kind < 0.18 and len(before) > 2:
        return before[: len(before) - 1]
    target = list(before)
    number = len(before) if kind > 0.75 else rng.choice((1, 1, 2))
    for place in rng.sample(range(len(before)), min(number, len(before), len(others))):
        target[place] = others.pop()
    return tuple(target)


def _throttle(shape: Shape, plan: tuple[Planned, ...], seconds: float) -> int:
    """A rate at which the busiest broker is done in that time."""
    incoming: dict[int, int] = {}
    outgoing: dict[int, int] = {}
    for one in plan:
        partition = shape.partition(one.topic, one.partition)
        new = [broker for broker in one.replicas if broker not in partition.replicas]
        # A replica that only changes its log dir is copied within its broker, at a rate of the same size.
        for broker in one.replicas if one.log_dirs else new:
            incoming[broker] = incoming.get(broker, 0) + partition.size
        sender = partition.replicas[0]
        outgoing[sender] = outgoing.get(sender, 0) + partition.size * len(new)
    busiest = max([1_000_000, *incoming.values(), *outgoing.values()])
    return max(100_000, int(busiest / seconds))


def _settings(rng: random.Random, throttle: int) -> dict[str, Any]:
    """Settings: each of these with its chance, and one of its values."""
    throttled = rng.random() < 0.85
    choices: dict[str, tuple[float, tuple[Any, ...]]] = {
        "throttle": (throttled, (throttle,)),
        "throttle_ceiling": (0.2 * throttled, (4 * throttle,)),
        "log_dir_throttle": (0.5 * throttled, (throttle,)),
        "moves_in": (0.5, (1, 1, 2, 3)),
        "moves_out": (0.5, (1, 2, 3)),
        "moves_in_cluster": (0.25, (1, 2, 4)),
        "bytes_in_flight": (0.15, (50 * MEGABYTE, 200 * MEGABYTE, 600 * MEGABYTE)),
        "one_replica_at_a_time": (0.25, (True,)),
        "order": (0.3, ("smallest-first",)),
        "on_stall": (0.2, ("pause", "report")),
        "pause_under_min_isr": (0.2, (False,)),
    }
    drawn = {name: rng.choice(values) for name, (chance, values) in choices.items() if rng.random() < chance}
    return {"disk_reserve": rng.choice((0.0, 0.05, 0.05, 0.1)), "give_up_after": 240, **drawn}


def _written(rng: random.Random, shape: Shape, throttle: int) -> Shape:
    """What is written to partitions: nothing to most, and together well below the throttle."""
    total = sum(len(topic.partitions) for topic in shape.topics)
    share = throttle * 0.3 / total
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(one, write_rate=int(share * rng.random()) if rng.random() < 0.4 else 0)
                for one in topic.partitions
            ),
        )
        for topic in shape.topics
    )
    return replace(shape, topics=topics)


def _disks(rng: random.Random, shape: Shape, plan: tuple[Planned, ...], reserve: float) -> Shape:
    """Log dirs with space for old and new copies: plenty mostly, in one of four schedules just enough.

    Just enough is what the plan needs if moves wait for others to leave, the reserve kept, and more or less to spare.
    """
    held = dict.fromkeys((broker.id for broker in shape.brokers), 0)
    coming, leaving, largest = dict(held), dict(held), dict(held)
    for topic in shape.topics:
        for partition in topic.partitions:
            for replica in partition.replicas:
                held[replica] += partition.size + partition.write_rate * WRITTEN_SECONDS
    for one in plan:
        partition = shape.partition(one.topic, one.partition)
        size = partition.size + partition.write_rate * WRITTEN_SECONDS
        for replica in one.replicas:
            if one.log_dirs or replica not in partition.replicas:
                coming[replica] += size
                largest[replica] = max(largest[replica], size)
        for replica in partition.replicas:
            leaving[replica] += size if replica not in one.replicas else 0
    tight = rng.random() < 0.25
    brokers = []
    for broker in shape.brokers:
        side_by_side = held[broker.id] + coming[broker.id]
        if tight:
            spared = leaving[broker.id] * rng.uniform(0.4, 1.0)
            needed = max(side_by_side - spared, held[broker.id] + largest[broker.id]) + 2 * MEGABYTE
            # Any of the log dirs may get everything; where there are two, each gets its part, and some to spare.
            each = needed * rng.uniform(1.0, 1.05) / (1 - reserve) / len(broker.log_dirs) ** 0.5
        else:
            each = (side_by_side + 50 * MEGABYTE) * rng.uniform(2.0, 6.0)
        brokers.append(replace(broker, log_dirs=tuple(int(each) for _ in broker.log_dirs)))
    return replace(shape, brokers=tuple(brokers))


def _prior(rng: random.Random, shape: Shape) -> Prior:
    """Throttles that somebody else set before: on few brokers and topics, if any."""
    rates: dict[str, dict[str, str]] = {}
    static: dict[str, dict[str, str]] = {}
    lists: dict[str, dict[str, str]] = {}
    keys = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    if rng.random() < 0.2:
        for broker in rng.sample(shape.brokers, 2):
            rates[str(broker.id)] = dict.fromkeys(keys, "900000007")
    if rng.random() < 0.1:
        static[str(rng.choice(shape.brokers).id)] = dict.fromkeys(keys, "800000009")
    default = dict.fromkeys(keys, "700000001") if rng.random() < 0.05 else {}
    if rng.random() < 0.2:
        topic = rng.choice(shape.topics)
        value = "*" if rng.random() < 0.2 else f"0:{topic.partitions[0].replicas[0]}"
        lists[topic.name] = {
            "leader.replication.throttled.replicas": value,
            **({"follower.replication.throttled.replicas": value} if rng.random() < 0.5 else {}),
        }
    return Prior(rates, static, default, lists)
