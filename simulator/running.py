"""Run a schedule: build its world, let it happen, judge it.

The run begins at second 10, when all brokers know the cluster, and each fault strikes at its time after that. When the
supervisor has nothing left to do, or time is up, the end is judged. Time is up some while after the last fault has
ceased: the executor may wait ``give_up_after`` seconds for what does not come, its supervisor tries again a few times,
and the longest run takes some minutes. A run that is slow, because somebody else set a low throttle, has more time as
long as it advances.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from simulator import faults
from simulator.ending import bytes_lacking, judge_end
from simulator.invariants import Invariants, Violation
from simulator.schedule import WRITTEN_SECONDS, Schedule
from simulator.world import BEGIN, World

GIVE_UP_SECONDS = 600.0  # what the executor waits where the settings do not say
MARGIN_SECONDS = 1200.0
MOST_SECONDS = 86_400.0


@dataclass(slots=True)
class Outcome:
    """What came of a schedule.

    Attributes:
        violations: The invariants that did not hold, one of each name, in order.
        faults: How many faults struck, by kind.
        seconds: How much simulated time it took.
        events: How many events happened.
        trace: What happened in words, if it was asked for.
    """

    violations: list[Violation]
    faults: Counter[str]
    seconds: float
    events: int
    trace: list[str] = field(default_factory=list)


def run_schedule(schedule: Schedule, *, traced: bool = False, reads: bool = False) -> Outcome:
    """Run a schedule to its end.

    Args:
        schedule: What happens.
        traced: Whether to say it in words.
        reads: Whether to say in words what was only read, too.
    """
    world = World(schedule, traced=traced, reads=reads)
    invariants = Invariants(world)
    scheduler = world.scheduler
    scheduler.on_event += [world.supervisor.poll, invariants.on_event]
    scheduler.at(BEGIN, lambda: world.supervisor.start(world.job))
    scheduler.at(BEGIN + WRITTEN_SECONDS, world.stop_producers)
    struck: Counter[str] = Counter()
    for fault in schedule.faults:
        scheduler.at(BEGIN + fault.at, lambda fault=fault: faults.strike(world, fault, struck))  # type: ignore[misc]
    give_up = float(schedule.settings.get("give_up_after") or GIVE_UP_SECONDS)
    scheduler.run(until=world.calm_at + 2 * give_up + MARGIN_SECONDS)
    _wait_while_it_advances(world, give_up + MARGIN_SECONDS)
    for error in world.crashes:
        invariants.violate("unexpected_error", f"{type(error).__name__}: {error}")
    judge_end(world, invariants)
    scheduler.close()
    lines = [] if world.trace is None else world.trace.lines
    return Outcome(invariants.violations, struck, scheduler.now, scheduler.events, lines)


def _wait_while_it_advances(world: World, seconds: float) -> None:
    """Give a run that is slow more time, as long as it has fewer bytes to copy after each of these periods."""
    supervisor, scheduler = world.supervisor, world.scheduler
    while not supervisor.done and scheduler.now < MOST_SECONDS:
        run, before = supervisor.run, bytes_lacking(world, supervisor.run)
        scheduler.run(until=scheduler.now + seconds)
        if supervisor.run is run and bytes_lacking(world, run) >= before:
            return
