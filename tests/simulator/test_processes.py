from __future__ import annotations

import threading
from datetime import timedelta
from random import Random

import pytest

from simulator.clock import EPOCH, SimulatedClock
from simulator.processes import Killed, Scheduler


def spawn(scheduler, function, name="p"):
    """Start a process whose function is given the process itself."""
    process = scheduler.spawn(name, lambda: function(process))
    return process


def test_events_happen_in_the_order_of_their_time_and_then_of_their_making():
    scheduler, order = Scheduler(), []
    for time, name in ((2.0, "c"), (1.0, "a"), (1.0, "b")):
        scheduler.at(time, lambda name=name: order.append((scheduler.now, name)))
    scheduler.run(until=10.0)
    assert order == [(1.0, "a"), (1.0, "b"), (2.0, "c")]


def test_time_advances_no_further_than_it_should_and_whoever_wants_to_know_is_told():
    scheduler, advances, events = Scheduler(), [], []
    scheduler.on_advance.append(lambda start, end: advances.append((start, end)))
    scheduler.on_event.append(lambda: events.append(scheduler.now))
    scheduler.at(3.0, lambda: None)
    scheduler.at(30.0, lambda: None)
    scheduler.run(until=10.0)
    assert (advances, events, scheduler.now) == ([(0.0, 3.0), (3.0, 10.0)], [3.0], 10.0)


def test_a_process_keeps_its_result_or_its_error():
    scheduler = Scheduler()
    good = scheduler.spawn("good", lambda: 42)
    bad = scheduler.spawn("bad", lambda: 1 // 0)
    scheduler.run(until=1.0)
    assert (good.finished, good.result, good.error) == (True, 42, None)
    assert bad.finished
    assert isinstance(bad.error, ZeroDivisionError)


def test_clean_up_code_of_a_killed_process_achieves_nothing():
    scheduler, achieved = Scheduler(), []

    def main(process):
        try:
            process.call(10.0, lambda: achieved.append("request"))
        except BaseException:
            process.call(0.0, lambda: achieved.append("clean-up"))
            raise

    process = spawn(scheduler, main)
    scheduler.at(5.0, process.kill)
    scheduler.run(until=100.0)
    assert (achieved, process.alive, process.finished, process.error) == ([], False, False, None)


@pytest.mark.parametrize(("after", "applied"), [(False, [1]), (True, [1, 2])])
def test_a_process_is_killed_at_a_call_before_or_after_the_request_is_applied(after, applied):
    scheduler, requests = Scheduler(), []

    def main(process):
        for number in (1, 2, 3):
            process.call(1.0, lambda number=number: requests.append(number))

    process = spawn(scheduler, main)
    process.kill_at_call(2, after=after)
    scheduler.run(until=100.0)
    assert (requests, process.alive, process.calls) == (applied, False, 2)


def test_a_process_that_hangs_wakes_up_late():
    scheduler = Scheduler()
    process = spawn(scheduler, lambda process: (process.call(1.0, lambda: None), scheduler.now))
    scheduler.at(0.5, lambda: process.hang(until=60.0))
    scheduler.run(until=100.0)
    assert process.result == (None, 60.0)


def test_a_process_may_start_another():
    scheduler, order = Scheduler(), []

    def parent(process):
        spawn(scheduler, lambda child: (child.sleep(1.0), order.append("child")), "child")
        process.sleep(2.0)
        order.append("parent")

    spawn(scheduler, parent)
    scheduler.run(until=10.0)
    assert order == ["child", "parent"]


def test_processes_that_are_left_end_when_the_scheduler_is_closed():
    scheduler, ended = Scheduler(), []

    def main(process):
        try:
            process.sleep(1000.0)
        except Killed:
            ended.append(process.name)
            raise

    spawn(scheduler, main)
    scheduler.run(until=1.0)
    scheduler.close()
    assert ended == ["p"]


def test_wall_clocks_differ_and_are_stepped_while_monotonic_time_goes_on():
    scheduler = Scheduler()

    def main(process):
        clock = SimulatedClock(process, Random(1), offset=-30.0)
        seen = [clock.now(), clock.monotonic()]
        clock.offset += 3600.0
        clock.sleep(5.0)
        return *seen, clock.now(), clock.monotonic()

    process = spawn(scheduler, main)
    scheduler.run(until=10.0)
    first, started, second, ended = process.result
    assert (first, second) == (EPOCH - timedelta(seconds=30), EPOCH + timedelta(seconds=3575))
    assert ended - started == 5.0


def test_a_wait_ends_at_once_if_the_event_is_set_and_else_after_its_time():
    scheduler = Scheduler()

    def main(process):
        clock, event = SimulatedClock(process, Random(1)), threading.Event()
        waited = clock.wait(event, 5.0), scheduler.now
        event.set()
        return *waited, clock.wait(event, 5.0), scheduler.now

    process = spawn(scheduler, main)
    scheduler.run(until=100.0)
    assert process.result == (False, 5.0, True, 5.0)


def test_names_come_from_the_seed():
    process = Scheduler().spawn("p", lambda: None)
    one, same, other = (SimulatedClock(process, Random(seed)).unique_id() for seed in (1, 1, 2))
    assert len(one) == 32
    assert one == same != other
