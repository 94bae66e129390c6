"""Make a failing schedule as small as it gets, so that a person can read what happens in it.

Goal: the fewest faults, the fewest partitions, the plainest settings and the roundest times with which the same
invariant is still violated. Which invariant it is matters, not when or where it is violated: another failure would be
another story.

Algorithm, delta debugging (Zeller): take out halves, then quarters, then single faults, as long as the schedule still
fails without them; then the same with the partitions of the plan. Then one simplification after the other: a setting
left out, the throttles from before left out, nothing written, plenty of disk, a time rounded. Each is kept if the
schedule still fails. When none helps any more, or the budget of runs is spent, that is the answer.

A run takes some tens of milliseconds, so that a budget of 300 runs is some ten seconds.

Example: of five faults only "broker 2 hangs" and "request cancel" matter. Without the first half (two of five) it still
fails, three are left; without the first of these it does not, without the second it does; two are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from simulator.schedule import Schedule
from simulator.shape import Fault, Prior

Item = TypeVar("Item")
BUDGET = 300


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool], *, budget: int = BUDGET) -> Schedule:
    """The smallest schedule found that still fails.

    Args:
        schedule: One that fails.
        fails: Runs a schedule, and returns whether it violates the same invariant.
        budget: How many runs it may take.
    """
    tries = _Tries(fails, budget)
    schedule = _without_faults(schedule, tries)
    schedule = _without_partitions(schedule, tries)
    while not tries.spent:
        simpler = next((one for one in _simpler(schedule) if tries(one)), None)
        if simpler is None:
            break
        schedule = simpler
    return _without_faults(schedule, tries)


class _Tries:
    """Runs schedules until the budget is spent; then nothing fails any more."""

    def __init__(self, fails: Callable[[Schedule], bool], budget: int) -> None:
        self._fails = fails
        self._left = budget

    def __call__(self, schedule: Schedule) -> bool:
        if self.spent:
            return False
        self._left -= 1
        return self._fails(schedule)

    @property
    def spent(self) -> bool:
        return self._left <= 0


def _without_faults(schedule: Schedule, tries: _Tries) -> Schedule:
    kept = fewest(schedule.faults, lambda faults: tries(replace(schedule, faults=tuple(faults))))
    return replace(schedule, faults=tuple(kept))


def _without_partitions(schedule: Schedule, tries: _Tries) -> Schedule:
    kept = fewest(schedule.plan, lambda plan: bool(plan) and tries(replace(schedule, plan=tuple(plan))))
    return replace(schedule, plan=tuple(kept))


def fewest(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """The fewest items with which it still fails, as far as taking out parts of them finds it."""
    size = len(items)
    while size >= 1 and items:
        start, found = 0, False
        while start < len(items):
            without = [*items[:start], *items[start + size :]]
            if fails(without):
                items, found = without, True
            else:
                start += size
        if size == 1 and not found:
            break
        size = max(1, size // 2) if size > 1 or not found else 1
    return items


def _simpler(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules that are a little simpler than this one."""
    if schedule.prior != Prior():
        yield replace(schedule, prior=Prior())
    for name in schedule.settings:
        if name not in ("throttle", "give_up_after"):
            yield replace(schedule, settings={key: value for key, value in schedule.settings.items() if key != name})
    shape = schedule.shape
    quiet = tuple(
        replace(topic, partitions=tuple(replace(one, write_rate=0) for one in topic.partitions))
        for topic in shape.topics
    )
    if quiet != shape.topics:
        yield replace(schedule, shape=replace(shape, topics=quiet))
    roomy = tuple(replace(one, log_dirs=tuple(10**11 for _ in one.log_dirs)) for one in shape.brokers)
    if roomy != shape.brokers:
        yield replace(schedule, shape=replace(shape, brokers=roomy))
    named = {one.topic for one in schedule.plan} | {str(fault.args.get("topic")) for fault in schedule.faults}
    named |= {topic for fault in schedule.faults for topic in fault.args.get("topics", ())}
    topics = tuple(topic for topic in shape.topics if topic.name in named)
    if topics and topics != shape.topics:
        yield replace(schedule, shape=replace(shape, topics=topics))
    for place, fault in enumerate(schedule.faults):
        for simpler in _simpler_fault(fault):
            faults = (*schedule.faults[:place], simpler, *schedule.faults[place + 1 :])
            yield replace(schedule, faults=tuple(sorted(faults, key=lambda one: one.at)))


def _simpler_fault(fault: Fault) -> Iterator[Fault]:
    if fault.at != round(fault.at):
        yield replace(fault, at=float(round(fault.at)))
    for name in ("seconds", "restart_after"):
        value = fault.args.get(name)
        if isinstance(value, float) and value != round(value):
            yield replace(fault, args={**fault.args, name: float(round(value))})
