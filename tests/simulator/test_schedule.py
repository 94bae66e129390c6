"""Schedules: drawn from a seed alone, and plain data."""

import json
from collections import Counter

import pytest

from simulator.drawing import KINDS
from simulator.operator import job_of, supported_settings
from simulator.schedule import AIRFLOW, COMMAND_LINE, Schedule, generate

SEEDS = range(300)


@pytest.fixture(scope="module")
def schedules():
    return [generate(seed) for seed in SEEDS]


def test_the_same_seed_draws_the_same_schedule(schedules):
    assert [generate(seed) for seed in SEEDS] == schedules


def test_a_schedule_goes_through_json_unchanged(schedules):
    for schedule in schedules:
        assert Schedule.from_dict(json.loads(json.dumps(schedule.as_dict()))) == schedule


def test_a_plan_is_one_that_kafka_takes(schedules):
    for schedule in schedules:
        job = job_of(schedule.shape, schedule.plan, "id", {})
        ids = {broker.id for broker in schedule.shape.brokers}
        assert job.targets
        for tp, target in job.targets.items():
            assert ids.issuperset(target)
            assert tp in job.origins


def test_every_plan_changes_something_on_every_partition_it_names(schedules):
    for schedule in schedules:
        for one in schedule.plan:
            before = schedule.shape.partition(one.topic, one.partition).replicas
            assert one.log_dirs is not None or one.replicas != before


def test_settings_are_ones_that_the_executor_takes(schedules):
    for schedule in schedules:
        assert supported_settings(schedule.settings).pace.throttle == schedule.settings.get("throttle")


def test_log_dirs_hold_what_is_on_them(schedules):
    for schedule in schedules:
        for broker in schedule.shape.brokers:
            held = sum(
                partition.size
                for topic in schedule.shape.topics
                for partition in topic.partitions
                if broker.id in partition.replicas
            )
            assert held < sum(broker.log_dirs)


def test_most_schedules_have_one_to_four_faults_some_none_and_a_few_many(schedules):
    counts = Counter(len(schedule.faults) for schedule in schedules)
    assert counts[0] > 0
    assert sum(counts[number] for number in (1, 2, 3, 4)) > len(schedules) / 2
    assert max(counts) <= 8


def test_both_ways_to_run_occur_and_all_kinds_of_faults(schedules):
    assert {schedule.way for schedule in schedules} == {COMMAND_LINE, AIRFLOW}
    assert {fault.kind for schedule in schedules for fault in schedule.faults} == set(KINDS)


def test_faults_are_in_order_and_cease(schedules):
    for schedule in schedules:
        times = [fault.at for fault in schedule.faults]
        assert times == sorted(times)
        assert schedule.calm_at < 400
