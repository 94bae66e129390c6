"""What is played: a small schedule of `simulator.schedule`, and the faults that strike it, each at its moment.

A scene is drawn from a seed. Its cluster, plan and settings are those of a generated schedule that is small enough for
a sandbox: seeds are tried until one has as many brokers as the sandbox, and few partitions. Then what a sandbox cannot
bear is replaced: sizes are some hundred kilobytes, no two alike, so that both sides order moves alike; nobody writes;
disks are large; the throttle holds every move until it is lifted.

Faults are those that can be made on a real cluster, at most two. Each has the moments at which its outcome does not
depend on a race, see `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from simulator.schedule import COMMAND_LINE, Schedule, generate
from simulator.shape import BrokerShape, Planned, Prior, Shape, TopicShape

BROKERS = (1, 2, 3, 4, 5)
MOST_PARTITIONS = 8
BEFORE, MOVING, PAUSED, AFTER = "before", "moving", "paused", "after"
MOMENTS = (BEFORE, MOVING, PAUSED, AFTER)
HOLD = 1_000  # bytes/s: Kafka lets a fetch through every ten seconds, so that `SMALLEST` is held for a minute or more
FETCH = 20_000  # replica.fetch.max.bytes of the sandbox
SMALLEST, STEP = 200_000, 60_000  # bytes of the smallest partition, and from one to the next larger
DISK = 10**12
INTERVAL = 0.5
PATIENT_SECONDS = 240.0  # until what waits is set aside: longer than anything here takes
# Where others delete lists while moves are under way, these run free, and may end before the executor adds its entries
# again or after. One that was there before the run then stays or not, by chance: there is none.
LISTS_DELETED = ("foreign_verify", "foreign_throttle_deleted")
GIVE_UP_SECONDS = 20.0  # the same where something never comes: longer than moves are held at a moment


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault, and its moment."""

    moment: str
    kind: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{name} {value}" for name, value in self.args.items())
        return f"{self.moment}: {self.kind.replace('_', ' ')}" + (f" ({words})" if words else "")


@dataclass(frozen=True, slots=True)
class Scene:
    """What is played: a schedule without faults, and the strikes in their order."""

    schedule: Schedule
    strikes: tuple[Strike, ...]

    @property
    def seed(self) -> int:
        """Where it was drawn from."""
        return self.schedule.seed

    def at(self, moment: str) -> list[Strike]:
        """The strikes of a moment."""
        return [strike for strike in self.strikes if strike.moment == moment]

    def __str__(self) -> str:
        return "; ".join(map(str, self.strikes)) or "no fault"


def draw_scene(seed: int) -> Scene:
    """The scene of a seed."""
    rng = Random(f"fidelity {seed}")
    schedule = _small(rng, seed)
    count = rng.choice((0, 1, 1, 1, 1, 2, 2))
    strikes = sorted((_strike(rng, schedule) for _ in range(count)), key=lambda one: MOMENTS.index(one.moment))
    if len(strikes) == 2 and not _together(*strikes):
        strikes = strikes[:1]
    settings = dict(schedule.settings)
    if any(strike.moment == PAUSED for strike in strikes):
        settings["moves_in_cluster"] = rng.choice((1, 1, 2))  # so that something is left for after the pause
    if any(_lasts(strike) for strike in strikes):
        settings["give_up_after"] = GIVE_UP_SECONDS
    prior = schedule.prior
    if any(strike.moment == MOVING and strike.kind in LISTS_DELETED for strike in strikes):
        prior = replace(prior, lists={})
    return Scene(replace(schedule, settings=settings, prior=prior), tuple(strikes))


def _lasts(strike: Strike) -> bool:
    """Whether something may wait for ever."""
    return strike.args.get("returns") == "late" or strike.kind == "min_isr_changed"


# The schedule


def _small(rng: Random, seed: int) -> Schedule:
    while True:
        drawn = generate(rng.randrange(10**9))
        partitions = sum(len(topic.partitions) for topic in drawn.shape.topics)
        if len(drawn.shape.brokers) == len(BROKERS) and partitions <= MOST_PARTITIONS:
            break
    prefix = f"f{seed}-"
    shape = _shape(drawn.shape, prefix)
    plan = tuple(Planned(f"{prefix}{one.topic}", one.partition, one.replicas, None) for one in drawn.plan)
    plan = tuple(one for one in plan if one.replicas != shape.partition(one.topic, one.partition).replicas)
    if not plan:
        return _small(rng, seed)
    lists = {f"{prefix}{topic}": value for topic, value in drawn.prior.lists.items()}
    kept = ("one_replica_at_a_time", "order", "pause_under_min_isr")
    settings = {name: value for name, value in drawn.settings.items() if name in kept}
    settings |= {"throttle": HOLD, "disk_reserve": 0.0, "on_stall": "report", "give_up_after": PATIENT_SECONDS}
    if rng.random() < 0.6:
        settings["moves_in_cluster"] = rng.choice((1, 2, 3))
    elif rng.random() < 0.3:
        settings["bytes_in_flight"] = rng.choice((500_000, 900_000))
    prior = Prior(rates=drawn.prior.rates, lists=lists)  # those of properties files and defaults would stay for others
    return Schedule(seed, shape, plan, settings, INTERVAL, COMMAND_LINE, prior)


def _shape(drawn: Shape, prefix: str) -> Shape:
    sizes = sorted(
        (partition.size, topic.name, number)
        for topic in drawn.topics
        for number, partition in enumerate(topic.partitions)
    )
    rank = {(name, number): place for place, (_, name, number) in enumerate(sizes)}
    topics = tuple(
        TopicShape(
            f"{prefix}{topic.name}",
            topic.min_isr,
            tuple(
                replace(one, size=SMALLEST + STEP * rank[topic.name, number], write_rate=0)
                for number, one in enumerate(topic.partitions)
            ),
        )
        for topic in drawn.topics
    )
    return Shape(tuple(BrokerShape(broker, "", (DISK, DISK)) for broker in BROKERS), topics)


# The faults


def _planned(rng: Random, schedule: Schedule) -> Planned:
    return rng.choice(schedule.plan)


def _any_topic(rng: Random, schedule: Schedule) -> str:
    return rng.choice([_planned(rng, schedule).topic, rng.choice(schedule.shape.topics).name])


def _broker(rng: Random, schedule: Schedule) -> int:
    """Mostly one that takes part."""
    one = _planned(rng, schedule)
    replicas = schedule.shape.partition(one.topic, one.partition).replicas
    return rng.choice([*one.replicas, *replicas, *BROKERS])


def _dies(rng: Random, schedule: Schedule) -> dict[str, Any]:
    return {"broker": _broker(rng, schedule), "returns": rng.choice(("soon", "soon", "late"))}


def _hangs(rng: Random, schedule: Schedule) -> dict[str, Any]:
    return {"broker": _broker(rng, schedule), "fenced": rng.random() < 0.5}


def _topic(rng: Random, schedule: Schedule) -> dict[str, Any]:
    return {"topic": _any_topic(rng, schedule)}


def _recreated(rng: Random, schedule: Schedule) -> dict[str, Any]:
    return {"topic": _any_topic(rng, schedule), "same": rng.random() < 0.5}


def _min_isr(rng: Random, schedule: Schedule) -> dict[str, Any]:
    return {"topic": _any_topic(rng, schedule), "min_isr": rng.choice((1, 2, 3))}


def _foreign_move(rng: Random, schedule: Schedule) -> dict[str, Any]:
    topic = schedule.shape.topic(_any_topic(rng, schedule))
    number = rng.randrange(len(topic.partitions))
    factor = len(topic.partitions[number].replicas)
    return {"topic": topic.name, "partition": number, "replicas": rng.sample(BROKERS, factor)}


def _partition(rng: Random, schedule: Schedule) -> dict[str, Any]:
    one = _planned(rng, schedule)
    return {"topic": one.topic, "partition": one.partition}


def _verified(rng: Random, schedule: Schedule) -> dict[str, Any]:
    return {"topics": sorted({_any_topic(rng, schedule) for _ in range(2)})}


def _throttle_set(rng: Random, schedule: Schedule) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"broker": _broker(rng, schedule), "rate": rng.choice((500, 5_000_011, 900_000_007))}
    one = _planned(rng, schedule)
    return {"topic": one.topic, "entry": f"{one.partition}:{rng.choice(BROKERS)}"}


def _throttle_deleted(rng: Random, schedule: Schedule) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"broker": _broker(rng, schedule)}
    return {"topic": _any_topic(rng, schedule)}


def _nothing(_: Random, __: Schedule) -> dict[str, Any]:
    return {}


def _caps(rng: Random, _: Schedule) -> dict[str, Any]:
    return {"cap": "moves_in_cluster", "value": rng.choice((1, 2, 4))}


def _rate(rng: Random, _: Schedule) -> dict[str, Any]:
    return {"rate": rng.choice((HOLD // 2, 2 * HOLD))}


def _torn(rng: Random, _: Schedule) -> dict[str, Any]:
    return {"name": "throttles.json", "how": rng.choice(("cut", "empty"))}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: its arguments, how often it is drawn, and the moments at which it may strike."""

    draw: Callable[[Random, Schedule], dict[str, Any]]
    weight: int
    moments: Sequence[str] = MOMENTS


KINDS: dict[str, Kind] = {
    "broker_dies": Kind(_dies, 4, (BEFORE, MOVING, MOVING, PAUSED)),
    "broker_hangs": Kind(_hangs, 3, (MOVING, PAUSED)),
    "controller_dies": Kind(_nothing, 2, (MOVING, PAUSED)),
    "process_killed": Kind(_nothing, 4, (MOVING, MOVING, PAUSED)),
    "topic_deleted": Kind(_topic, 2, (BEFORE, MOVING, PAUSED, AFTER)),
    "topic_recreated": Kind(_recreated, 2, (BEFORE, MOVING, PAUSED)),
    "partitions_added": Kind(_topic, 1, (BEFORE, MOVING, PAUSED)),
    "min_isr_changed": Kind(_min_isr, 2, (BEFORE, MOVING, PAUSED)),
    "foreign_reassignment": Kind(_foreign_move, 4, (BEFORE, MOVING, MOVING, PAUSED, AFTER)),
    "foreign_cancel": Kind(_partition, 3, (MOVING,)),
    "foreign_verify": Kind(_verified, 2, (MOVING, PAUSED, AFTER)),
    "foreign_throttle_set": Kind(_throttle_set, 3, MOMENTS),
    "foreign_throttle_deleted": Kind(_throttle_deleted, 2, MOMENTS),
    "request_cancel": Kind(_nothing, 2, (BEFORE, MOVING, MOVING, PAUSED)),
    "request_pause": Kind(_nothing, 1, (MOVING, PAUSED)),
    "request_throttle": Kind(_rate, 2, (MOVING,)),
    "request_caps": Kind(_caps, 2, (MOVING, PAUSED)),
    "request_exclude_topics": Kind(_topic, 2, (BEFORE, MOVING, PAUSED)),
    "file_torn": Kind(_torn, 2, (MOVING, PAUSED, AFTER)),
}


def _strike(rng: Random, schedule: Schedule) -> Strike:
    [name] = rng.choices(list(KINDS), [kind.weight for kind in KINDS.values()])
    kind = KINDS[name]
    moment, args = rng.choice(kind.moments), kind.draw(rng, schedule)
    if moment == BEFORE and name == "broker_dies":
        args["returns"] = "late"
    return Strike(moment, name, args)


def _together(first: Strike, second: Strike) -> bool:
    """Whether two strikes leave an outcome that does not depend on a race."""
    lasting = [one for one in (first, second) if one.args.get("returns") == "late"]
    # What asks a dead broker, or needs it, depends on when it is given up; a cancelled run has no later moment.
    return not lasting and first.kind not in ("request_cancel", second.kind)
