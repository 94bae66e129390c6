"""Shrinking: what is left is what matters."""

from dataclasses import replace

from simulator.schedule import generate
from simulator.shape import Fault, Prior
from simulator.shrink import fewest, shrink


def test_only_what_it_takes_is_left():
    assert list(fewest(range(20), lambda items: {3, 17} <= set(items))) == [3, 17]


def test_nothing_is_left_where_it_takes_nothing():
    assert list(fewest(range(20), lambda _: True)) == []


def test_everything_stays_where_it_takes_everything():
    assert list(fewest(range(5), lambda items: len(items) == 5)) == [0, 1, 2, 3, 4]


def test_a_schedule_keeps_the_faults_and_partitions_that_it_fails_with():
    schedule = replace(
        generate(7), faults=tuple(Fault(float(at) + 0.25, "second_executor") for at in range(6)), prior=Prior()
    )
    last = schedule.plan[-1]

    def fails(one):
        return last in one.plan and any(3 < fault.at < 4 or 4.9 < fault.at < 6 for fault in one.faults)

    found = shrink(schedule, fails)
    assert found.plan == (last,)
    assert len(found.faults) == 1
    assert fails(found)


def test_settings_and_times_become_plain():
    schedule = replace(generate(7), faults=(Fault(3.25, "broker_hangs", {"broker": 1, "seconds": 2.5}),))
    found = shrink(schedule, lambda one: bool(one.faults))
    assert found.faults == (Fault(3.0, "broker_hangs", {"broker": 1, "seconds": 2.0}),)
    assert found.settings.keys() <= {"throttle", "give_up_after"}
    assert {one.topic for one in found.plan} == {topic.name for topic in found.shape.topics}


def test_the_budget_bounds_the_runs():
    runs = []

    def fails(one):
        runs.append(one)
        return True

    shrink(generate(7), fails, budget=5)
    assert len(runs) == 5
