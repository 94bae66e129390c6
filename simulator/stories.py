"""Faults that belong together, and that chance would hardly put together: each story is a known way to harm a cluster.

    originals_die            one new replica does not come, others are in sync, originals die, and somebody cancels
    recreated_as_planned     a topic is created again where the plan wants it, and its preferred leader restarts
    sizes_unknown            only one broker answers DescribeLogDirs when an executor is started again
    clocks_differ_and_asked  somebody whose clock is ahead asks something of the run
    foreign_move_at_the_end  somebody else moves a partition of the plan, and then the run is cancelled
    follower_leads           a replica that was down when throttles were set is back, and becomes the leader

Times and partitions are drawn, so that many schedules of one story differ.
"""

from __future__ import annotations

import random

from simulator.shape import Fault, Planned, Shape

Story = tuple[Fault, ...]


def draw_story(rng: random.Random, shape: Shape, plan: tuple[Planned, ...], around: float) -> Story:
    """The faults of a story, by time; none if the plan does not suit it."""
    story = rng.choice(STORIES)
    return tuple(sorted(story(rng, shape, plan, around), key=lambda fault: fault.at))


def _fault(at: float, kind: str, **args: object) -> Fault:
    return Fault(round(at, 3), kind, args)


def originals_die(rng: random.Random, shape: Shape, plan: tuple[Planned, ...], around: float) -> list[Fault]:
    """Whoever goes back to the originals takes the partition below its min ISR, or leaves it without a leader."""
    found = []
    for one in plan:
        before = shape.partition(one.topic, one.partition).replicas
        new = [broker for broker in one.replicas if broker not in before]
        if len(new) > 1:
            found.append((before, new))
    if not found:
        return []
    before, new = rng.choice(found)
    late = rng.uniform(0.6, 1.2) * around + 8.0
    dead = rng.sample(before, rng.randint(max(1, len(before) - 1), len(before)))
    return [
        _fault(rng.uniform(0.0, 4.0), "broker_hangs", broker=new[0], seconds=late + 60.0),
        *(_fault(late + rng.uniform(0.0, 3.0), "broker_dies", broker=one, seconds=60.0, clean=True) for one in dead),
        _fault(late + rng.uniform(10.0, 25.0), "request_cancel"),
    ]


def recreated_as_planned(rng: random.Random, _: Shape, plan: tuple[Planned, ...], around: float) -> list[Fault]:
    """Its partitions look as if the run had moved them."""
    one, at = rng.choice(plan), rng.uniform(3.0, 0.5 * around + 5.0)
    return [
        _fault(at, "topic_recreated", topic=one.topic, seconds=1.0, same=True, planned=True),
        _fault(at + 8.0, "broker_dies", broker=one.replicas[0], seconds=rng.uniform(2.0, 8.0), clean=True),
    ]


def sizes_unknown(rng: random.Random, shape: Shape, plan: tuple[Planned, ...], _: float) -> list[Fault]:
    """An executor that counts what it does not know as nothing begins too much: only its receiver answers."""
    coming: dict[int, int] = {}
    for one in plan:
        for broker in set(one.replicas) - set(shape.partition(one.topic, one.partition).replicas):
            coming[broker] = coming.get(broker, 0) + 1
    if not coming:
        return []
    receiver = max(sorted(coming), key=lambda broker: coming[broker])
    at = rng.uniform(0.0, 6.0)
    return [
        *(
            _fault(at, "log_dirs_silent", broker=broker.id, seconds=60.0)
            for broker in shape.brokers
            if broker.id != receiver
        ),
        _fault(at + rng.uniform(0.0, 2.0), "process_killed", after_calls=1, applied=True, restart_after=2.0),
    ]


def clocks_differ_and_asked(rng: random.Random, _: Shape, plan: tuple[Planned, ...], around: float) -> list[Fault]:
    """No clock is to be compared with another."""
    asked = rng.choice(("request_cancel", "request_pause", "request_exclude_topics"))
    args: dict[str, dict[str, object]] = {
        "request_pause": {"seconds": around + 60.0},
        "request_exclude_topics": {"topic": rng.choice(plan).topic},
    }
    return [
        _fault(rng.uniform(0.5, 2.0), "clocks_differ", by=rng.choice((60.0, 7200.0))),
        _fault(rng.uniform(2.5, 6.0), asked, **args.get(asked, {})),
    ]


def foreign_move_at_the_end(rng: random.Random, shape: Shape, plan: tuple[Planned, ...], around: float) -> list[Fault]:
    """What the run did not begin it must not cancel."""
    one, at = rng.choice(plan), rng.uniform(3.0, around)
    target = foreign_target(rng, shape, plan, one.topic, one.partition)
    moved = {"topic": one.topic, "partition": one.partition, "replicas": target, "throttled": True}
    return [_fault(at, "foreign_reassignment", **moved), _fault(at + rng.uniform(7.0, 12.0), "request_cancel")]


def follower_leads(rng: random.Random, shape: Shape, plan: tuple[Planned, ...], around: float) -> list[Fault]:
    """It sends what nobody throttles, unless it is given its rate when it is back."""
    found = [(shape.partition(one.topic, one.partition), one.replicas) for one in plan]
    # A follower that stays is waited for before the move begins, and leads before one that leaves.
    leaving = [one for one, target in found if len(one.replicas) > 1 and set(one.replicas).isdisjoint(target)]
    if not leaving:
        return []
    leader, follower = max(leaving, key=lambda one: one.size).replicas[:2]
    late = rng.uniform(10.0, 0.1 * around + 12.0)
    return [
        _fault(rng.uniform(0.0, 2.5), "broker_dies", broker=follower, seconds=rng.uniform(5.0, 9.0), clean=True),
        _fault(late, "broker_dies", broker=leader, seconds=around + 60.0, clean=True),
    ]


def foreign_target(
    rng: random.Random, shape: Shape, plan: tuple[Planned, ...], topic: str, partition: int
) -> list[int]:
    """Where somebody else would move a partition: neither where it is nor where the plan wants it, if there is such."""
    before = shape.partition(topic, partition).replicas
    planned = next((one.replicas for one in plan if (one.topic, one.partition) == (topic, partition)), ())
    ids = [broker.id for broker in shape.brokers]
    target = list(before)
    for _ in range(20):
        target = rng.sample(ids, len(before))
        if set(target) not in (set(before), set(planned)):
            break
    return target


STORIES = (
    originals_die,
    recreated_as_planned,
    sizes_unknown,
    clocks_differ_and_asked,
    foreign_move_at_the_end,
    follower_leads,
)
