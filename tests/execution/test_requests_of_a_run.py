"""What people ask of a run on a live cluster is done at its next check, and by the executor that comes after it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from rebalance_lib.execution import Executor, Kind, RunState, make_request
from rebalance_lib.execution.records.journal import REQUEST, read_journal
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_replicas
from tests.execution.running import FAST, FAST_SECONDS, SLOW, run_to_end, settings
from tests.kafka_data import delete_topics
from tests.waiting import wait_for


@pytest.fixture
def of_two(make_job):
    """``of_two(cluster, {"foo": [[2]], "bar": [[3]]})`` is a job for partitions of two topics."""

    def make(cluster, targets):
        first, second = (make_job(cluster, topic, wanted) for topic, wanted in targets.items())
        plan = Plan.from_assignment(first.plan.as_dict() | second.plan.as_dict())
        return replace(first, plan=plan, before=Plan.from_assignment(first.before.as_dict() | second.before.as_dict()))

    return make


def test_pause_caps_resume_excluded_topics_and_a_maximum_run_time(cluster, topic, of_two, started):
    name, other = topic("requests-many", [[1]] * 4, size=600_000), topic("requests-excluded", [[1]], size=10_000)
    job = of_two(cluster, {name: [[2]] * 4, other: [[2]]})  # the largest begin first
    chosen = settings(throttle=SLOW, moves_in_cluster=1)
    executor = started(job, chosen)

    def under_way():
        return len(cluster.reassignments())

    executor.check()
    assert under_way() == 1
    pause = make_request(job.artifacts, Kind.PAUSE, by="ada")
    make_request(job.artifacts, Kind.MOVES_IN_CLUSTER, 2, by="ada")
    report = executor.check()
    assert (report.state, report.holds, under_way()) == (RunState.MOVING, (str(pause),), 1)  # what is under way goes on
    executor = Executor(cluster, job, chosen)  # another process, which knows nothing
    assert (executor.check().holds, under_way()) == ((str(pause),), 1)
    make_request(job.artifacts, Kind.RESUME, by="bob")
    exclude = make_request(job.artifacts, Kind.EXCLUDE_TOPICS, ["requests-ex*"], by="ada")
    report = executor.check()
    assert under_way() == 2
    assert dict(report.set_aside) == {TopicPartition(other, 0): str(exclude)}
    make_request(job.artifacts, Kind.MAX_RUN_TIME, 0.1, by="ada")
    report = executor.check()
    assert (report.state, under_way()) == (RunState.ENDING, 2)
    late = {tp for tp, reason in report.set_aside.items() if "maximum run time" in reason}
    assert len(late) == 2
    assert late.isdisjoint(cluster.reassignments())
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="ada")
    report = wait_for(executor.check, lambda found: found.ended, seconds=FAST_SECONDS)
    assert (report.state, report.progress.done) == (RunState.INCOMPLETE, 2)
    assert report.set_aside.keys() == {*late, TopicPartition(other, 0)}
    noted = {(event["kind"], event["by"]) for event in read_journal(job.artifacts) if event["event"] == REQUEST}
    assert noted >= {("pause", "ada"), ("moves_in_cluster", "ada"), ("resume", "bob"), ("exclude_topics", "ada")}


def test_a_run_that_is_paused_waits_and_ends_nothing(cluster, topic, make_job, started):
    name = topic("requests-paused", [[1]], size=100_000)
    job = make_job(cluster, name, [[2]])
    executor = started(job, settings(give_up_after=0.1))
    make_request(job.artifacts, Kind.PAUSE, by="ada")
    for _ in range(3):  # for longer than anything else may wait
        assert executor.check().state is RunState.PAUSED
        time.sleep(0.1)
    make_request(job.artifacts, Kind.RESUME, by="ada")
    assert run_to_end(cluster, job, settings(), FAST_SECONDS).state is RunState.COMPLETED


@pytest.mark.usefixtures("short_lag")
def test_one_partition_whose_topic_was_created_again_is_set_aside_and_the_rest_completes(
    cluster, kafka, topic, of_two, started
):
    name, bad = topic("recreated-not", [[1], [1]], size=600_000), topic("recreated", [[1]], size=600_000)
    job = of_two(cluster, {name: [[2], [2]], bad: [[2]]})
    executor = started(job, settings(throttle=SLOW))
    executor.check()
    assert len(cluster.reassignments()) == 3
    with kafka.admin() as admin:
        delete_topics(admin, [bad])
    topic(bad, [[1]], size=10_000)
    wait_for(lambda: executor.check().set_aside, {TopicPartition(bad, 0): "its topic was deleted and created again"})
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="a test")
    report = wait_for(executor.check, lambda found: found.ended, seconds=FAST_SECONDS)
    assert (report.state, report.progress.done) == (RunState.INCOMPLETE, 2)
    wait_for_replicas(cluster, name, {0: (2,), 1: (2,)})
    wait_for_replicas(cluster, bad, {0: (1,)})
