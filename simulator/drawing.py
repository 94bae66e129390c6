"""Which faults strike when: drawn for one cluster and one plan, so that most of them hit something that matters.

Each kind has a weight and a function that draws its arguments; `simulator.faults` has a function of the same name that
strikes. Most schedules have one to four faults, one in ten has none, few have up to eight: what breaks an executor is
seldom one fault, and with many it is seldom seen which. Faults that last do so for at most a minute; time-outs are
fifteen seconds, and `replica.lag.time.max.ms` is thirty.

Half of the faults strike in the first seconds, while the run sets throttles and begins moves, since that is where most
is written; the others any time until the run would have ended by itself, and a while after. What is rare, and worst, is
several faults that hit the same partition, or at the same time: so four of ten schedules are about one partition, and
in four of ten all faults strike within a few seconds. What chance would hardly put together is drawn as a story, in few
schedules: `simulator.stories`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.shape import Fault, Planned, Shape
from simulator.stories import draw_story, foreign_target

COUNTS = (0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 8)
SAVED_FILES = (
    "throttles.json",
    "throttles.json",
    "throttles.",
    "throttles.",
    "requests",
    "journal",
    "execution.json",
    "owner.json",
)
STORIES = 0.12  # the part of schedules that tell a story


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a fault is drawn for."""

    rng: random.Random
    shape: Shape
    plan: tuple[Planned, ...]
    focus: Planned | None

    def planned(self) -> Planned:
        """A partition of the plan; the one that the schedule is about, if it is about one."""
        return self.focus or self.rng.choice(self.plan)

    def broker(self) -> int:
        """A broker, mostly one that the plan moves something to or from."""
        if self.rng.random() < 0.8:
            one = self.planned()
            before = self.shape.partition(one.topic, one.partition).replicas
            return self.rng.choice((*one.replicas, *before))
        return self.rng.choice(self.shape.brokers).id

    def partition(self) -> tuple[str, int]:
        """A partition, mostly one of the plan."""
        if self.rng.random() < 0.8:
            one = self.planned()
            return one.topic, one.partition
        topic = self.rng.choice(self.shape.topics)
        return topic.name, self.rng.randrange(len(topic.partitions))

    def topic(self) -> str:
        """A topic, mostly one of the plan."""
        return self.partition()[0]

    def seconds(self, *choices: float) -> float:
        """A duration near one of these."""
        return round(self.rng.choice(choices) * self.rng.uniform(0.5, 1.5), 1)


Draw = Callable[[Drawing], dict[str, Any]]


def _nothing(_: Drawing) -> dict[str, Any]:
    return {}


def _broker_for(*choices: float) -> Draw:
    def draw(d: Drawing) -> dict[str, Any]:
        return {"broker": d.broker(), "seconds": d.seconds(*choices)}

    return draw


def _for(*choices: float) -> Draw:
    def draw(d: Drawing) -> dict[str, Any]:
        return {"seconds": d.seconds(*choices)}

    return draw


def _broker_dies(d: Drawing) -> dict[str, Any]:
    return {"broker": d.broker(), "seconds": d.seconds(2, 10, 30), "clean": d.rng.random() < 0.5}


def _broker_never_returns(d: Drawing) -> dict[str, Any]:
    return {"broker": d.broker(), "unregistered": d.rng.random() < 0.3}


def _log_dir_fails(d: Drawing) -> dict[str, Any]:
    broker = d.broker()
    return {"broker": broker, "log_dir": f"/d{d.rng.randrange(len(d.shape.broker(broker).log_dirs))}"}


def _log_dirs_slow(d: Drawing) -> dict[str, Any]:
    return {"broker": d.broker(), "seconds": d.seconds(20, 40), "delay": d.seconds(1, 5, 9)}


def _message_lost(d: Drawing) -> dict[str, Any]:
    what = ("reassign", "reassign", "alter_topic_configs", "alter_broker_configs", "any")
    return {"what": d.rng.choice(what), "reset": d.rng.random() < 0.5}


def _partition_refused(d: Drawing) -> dict[str, Any]:
    topic, partition = d.partition()
    return {"topic": topic, "partition": partition, "seconds": d.seconds(5, 30, 150)}


def _always_refused(d: Drawing) -> dict[str, Any]:
    topic, partition = d.partition()
    return {"topic": topic, "partition": partition}


def _storage_fails(d: Drawing) -> dict[str, Any]:
    return {"seconds": d.seconds(1, 10, 40), "what": d.rng.choice(("reads", "writes", "both"))}


def _storage_fails_forever(d: Drawing) -> dict[str, Any]:
    return {"what": d.rng.choice(("writes", "both"))}


def _file_torn(d: Drawing) -> dict[str, Any]:
    return {"name": d.rng.choice(SAVED_FILES), "how": d.rng.choice(("cut", "emptied"))}


def _process_killed(d: Drawing) -> dict[str, Any]:
    return {
        "after_calls": d.rng.choice((1, 1, 2, 3, 5, 8, 13, 21)),
        "applied": d.rng.random() < 0.5,
        "restart_after": d.seconds(2, 8, 20),
    }


def _machine_crashes(d: Drawing) -> dict[str, Any]:
    return {"restart_after": d.seconds(5, 20)}


def _process_hangs(d: Drawing) -> dict[str, Any]:
    return {"seconds": d.seconds(5, 20, 45)}


def _clock_steps(d: Drawing) -> dict[str, Any]:
    return {"by": d.rng.choice((-7200.0, -60.0, -5.0, 5.0, 60.0, 7200.0))}


def _topic(d: Drawing) -> dict[str, Any]:
    return {"topic": d.topic()}


def _topic_recreated(d: Drawing) -> dict[str, Any]:
    return {"topic": d.topic(), "seconds": d.rng.choice((0.0, 1.0, 12.0)), "same": d.rng.random() < 0.5}


def _partitions_added(d: Drawing) -> dict[str, Any]:
    return {"topic": d.topic(), "count": d.rng.randint(1, 2)}


def _topic_config_changed(d: Drawing) -> dict[str, Any]:
    return {"topic": d.topic(), "min_isr": d.rng.randint(1, 3)}


def _foreign_reassignment(d: Drawing) -> dict[str, Any]:
    topic, partition = d.partition()
    target = foreign_target(d.rng, d.shape, d.plan, topic, partition)
    return {"topic": topic, "partition": partition, "replicas": target, "throttled": d.rng.random() < 0.4}


def _foreign_partition(d: Drawing) -> dict[str, Any]:
    topic, partition = d.partition()
    return {"topic": topic, "partition": partition}


def _foreign_verify(d: Drawing) -> dict[str, Any]:
    return {"topics": sorted({d.topic(), d.topic()})}


def _foreign_throttle(d: Drawing) -> dict[str, Any]:
    if d.rng.random() < 0.6:
        return {"broker": d.broker(), "rate": d.rng.choice((600_000_011, 555_013, 5_000_011))}
    topic, partition = d.partition()
    return {"topic": topic, "entry": f"{partition}:{d.broker()}"}


def _foreign_throttle_deleted(d: Drawing) -> dict[str, Any]:
    return {"broker": d.broker()} if d.rng.random() < 0.6 else {"topic": d.topic()}


def _request_throttle(d: Drawing) -> dict[str, Any]:
    return {"part": d.rng.choice((0.5, 1.5, 2.0, 4.0))}


def _request_caps(d: Drawing) -> dict[str, Any]:
    kind = d.rng.choice(("moves_in", "moves_out", "moves_in_cluster", "bytes_in_flight"))
    return {
        "cap": kind,
        "value": d.rng.choice((50, 300)) * 1_000_000 if kind == "bytes_in_flight" else d.rng.randint(1, 5),
    }


def _request_window(d: Drawing) -> dict[str, Any]:
    return {"open": d.rng.random() < 0.5, "seconds": d.seconds(20, 40)}


def _request_order(d: Drawing) -> dict[str, Any]:
    return {"order": d.rng.choice(("smallest-first", "largest-first"))}


def _request_max_run_time(d: Drawing) -> dict[str, Any]:
    return {"limit": d.rng.choice((5, 30, 600))}


KINDS: dict[str, tuple[float, Draw]] = {
    "broker_dies": (3, _broker_dies),
    "broker_never_returns": (1, _broker_never_returns),
    "broker_hangs": (2, _broker_for(3, 20, 45)),
    "log_dir_fails": (0.7, _log_dir_fails),
    "log_dirs_slow": (1, _log_dirs_slow),
    "log_dirs_silent": (1, _broker_for(10, 40)),
    "controller_fails_over": (2, _for(2, 8, 20)),
    "answer_lost": (3, _message_lost),
    "request_lost": (2, _message_lost),
    "partition_refused": (1.5, _partition_refused),
    "partition_always_refused": (0.4, _always_refused),
    "storage_fails": (2, _storage_fails),
    "storage_fails_forever": (0.5, _storage_fails_forever),
    "file_torn": (1.5, _file_torn),
    "process_killed": (5, _process_killed),
    "machine_crashes": (1, _machine_crashes),
    "process_hangs": (1, _process_hangs),
    "second_executor": (1.5, _nothing),
    "clock_steps": (1, _clock_steps),
    "clocks_differ": (1, _clock_steps),
    "topic_deleted": (1, _topic),
    "topic_recreated": (1.5, _topic_recreated),
    "partitions_added": (0.7, _partitions_added),
    "topic_config_changed": (1, _topic_config_changed),
    "foreign_reassignment": (2, _foreign_reassignment),
    "foreign_cancel": (1.5, _foreign_partition),
    "foreign_verify": (1.5, _foreign_verify),
    "foreign_throttle_set": (1.5, _foreign_throttle),
    "foreign_throttle_deleted": (1.5, _foreign_throttle_deleted),
    "request_cancel": (1.5, _nothing),
    "request_rollback": (1, _nothing),
    "request_throttle": (1.5, _request_throttle),
    "request_pause": (1, _for(10, 30)),
    "request_caps": (1, _request_caps),
    "request_window": (0.5, _request_window),
    "request_order": (0.3, _request_order),
    "request_exclude_topics": (0.7, _topic),
    "request_max_run_time": (0.5, _request_max_run_time),
    "credentials_expire": (1, _for(3, 20, 60)),
}
_NAMES = list(KINDS)
_WEIGHTS = [weight for weight, _ in KINDS.values()]
ONCE = frozenset(
    {"broker_never_returns", "storage_fails_forever", "request_rollback", "request_cancel", "log_dir_fails"}
)


def draw_faults(rng: random.Random, shape: Shape, plan: tuple[Planned, ...], *, around: float) -> tuple[Fault, ...]:
    """The faults of a schedule whose run takes ``around`` so many seconds, by time."""
    if rng.random() < STORIES and (story := draw_story(rng, shape, plan, around)):
        return story
    drawing = Drawing(rng, shape, plan, rng.choice(plan) if rng.random() < 0.4 else None)
    moment = rng.uniform(2.0, around + 5.0) if rng.random() < 0.4 else None
    faults: list[Fault] = []
    for _ in range(rng.choice(COUNTS)):
        kind = rng.choices(_NAMES, _WEIGHTS)[0]
        if kind in ONCE and any(fault.kind == kind for fault in faults):
            continue
        faults.append(Fault(round(_time(rng, around, moment), 3), kind, KINDS[kind][1](drawing)))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _time(rng: random.Random, around: float, moment: float | None) -> float:
    if moment is not None:
        return max(0.0, moment + rng.uniform(-3.0, 3.0))
    return rng.uniform(0.0, 6.0) if rng.random() < 0.5 else rng.uniform(0.0, 1.3 * around + 10.0)
