"""A clean-up is done whatever else goes wrong, and whoever still executes the plan notices and begins nothing more."""

from __future__ import annotations

import os
import sys

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution import (
    Executor,
    Kind,
    RunState,
    clean_up,
    make_request,
    preflight,
    run_plan,
    runner,
    set_throttles,
)
from rebalance_lib.execution.clean_up import CleanUpWatch, mark_clean_up
from rebalance_lib.execution.records.audit import AUDIT
from rebalance_lib.execution.throttles.config import RATES, REPLICA_LISTS, dynamic_rates
from rebalance_lib.execution.throttles.maintain import ThrottleMaintainer
from rebalance_lib.topology import TopicPartition
from tests.everywhere import lists_everywhere, replicas_everywhere, same, set_topic
from tests.execution.running import SLOW, begun, settings

MODULE = sys.modules[clean_up.__module__]
NO_RATES = {1: {}, 2: {}}


def assert_unchanged(cluster, topic, replicas):
    """No throttle, no reassignment, these replicas: brokers apply changes in order, so all show what came before."""
    set_topic(cluster, topic, {"retention.ms": "86400000"})
    assert same({})(lists_everywhere(cluster, topic))
    assert same({number: list(held) for number, held in replicas.items()})(replicas_everywhere(cluster, topic))
    assert dynamic_rates(cluster, (1, 2, 3, 4), RATES) == {broker: {} for broker in (1, 2, 3, 4)}
    assert cluster.reassignments() == {}


def assert_no_throttle(cluster, topic):
    assert cluster.topic_config(topic, REPLICA_LISTS) == {}
    assert dynamic_rates(cluster, (1, 2), RATES) == NO_RATES


def test_a_clean_up_is_noticed_by_those_who_began_before_it(tmp_path):
    run = Artifacts(tmp_path.as_uri())
    before = CleanUpWatch(run)
    assert not before.started()
    mark_clean_up(run, "ada")
    assert before.started()
    assert before.by.startswith(" by ada at ")
    assert not CleanUpWatch(run).started(), "who begins afterwards goes on"


def test_a_mark_that_cannot_be_read_counts_as_no_clean_up_unless_somebody_must_know(tmp_path, monkeypatch):
    watch = CleanUpWatch(Artifacts(tmp_path.as_uri()))

    def unreachable(self, name):
        raise RebalanceError(f"{self.uri}/{name} cannot be read: Stale file handle")

    monkeypatch.setattr(Artifacts, "exists", unreachable)
    assert not watch.started()
    with pytest.raises(RebalanceError, match="Stale file handle"):
        watch.started(strict=True)


def test_an_executor_elsewhere_neither_begins_nor_throttles_after_a_clean_up(cluster, topic, make_job):
    name = topic("clean-up-elsewhere", [[1, 2], [2, 1]], size=100_000)
    job, chosen = make_job(cluster, name, [[3, 4], [4, 3]]), settings(throttle=1_000_000)
    elsewhere = Executor(cluster, job, chosen)
    clean_up(cluster, job, chosen, by="ada")
    report = elsewhere.check()
    assert report.state is RunState.CANCELLED
    assert report.holds[0].startswith("the run was cleaned up elsewhere by ada at ")
    assert_unchanged(cluster, name, {0: (1, 2), 1: (2, 1)})
    assert begun(job) == {}


def test_a_request_to_cancel_ends_the_run_at_its_next_check(cluster, topic, make_job):
    name = topic("clean-up-requested", [[1, 2]])
    job = make_job(cluster, name, [[3, 4]])
    executor = Executor(cluster, job, settings())
    make_request(job.artifacts, Kind.CANCEL, by="ada")
    report = executor.check()
    assert report.state is RunState.CANCELLED
    assert report.holds[0].startswith("cancel requested by ada at ")
    assert_unchanged(cluster, name, {0: (1, 2)})


def test_nothing_begins_if_the_run_is_cleaned_up_while_throttles_are_set(cluster, topic, make_job, monkeypatch):
    name = topic("clean-up-meanwhile", [[1, 2]], size=100_000)
    job, chosen = make_job(cluster, name, [[3, 4]]), settings(throttle=SLOW)
    prepare = ThrottleMaintainer.prepare

    def cleaned_up_meanwhile(self, *arguments):
        failed = prepare(self, *arguments)
        clean_up(cluster, job, chosen, by="ada")
        return failed

    with monkeypatch.context() as patched:
        patched.setattr(ThrottleMaintainer, "prepare", cleaned_up_meanwhile)
        report = Executor(cluster, job, chosen).check()
    assert report.state is RunState.CANCELLED
    assert_unchanged(cluster, name, {0: (1, 2)})


def test_a_closed_pipe_ends_no_run_and_keeps_no_throttle(cluster, topic, make_job):
    name = topic("clean-up-pipe", [[1]], size=200_000)
    job = make_job(cluster, name, [[2]])
    reading, writing = os.pipe()
    os.close(reading)

    def log(text):
        os.write(writing, str(text).encode())

    with pytest.raises(BrokenPipeError):
        log("nobody reads")
    chosen = settings(throttle=3_000_000)
    ending = run_plan(cluster, job, chosen, interval=0.2, approved_by="a test", log=log, on_report=log)
    os.close(writing)
    assert ending.completed
    assert_no_throttle(cluster, name)


def test_an_interrupt_with_nobody_reading_the_log_cleans_up(cluster, topic, make_job):
    name = topic("clean-up-interrupt", [[1]], size=1_000_000)
    job = make_job(cluster, name, [[2]])

    def interrupt(_):
        raise KeyboardInterrupt

    def gone(_):
        raise BrokenPipeError

    with pytest.raises(KeyboardInterrupt):
        run_plan(
            cluster,
            job,
            settings(throttle=SLOW),
            interval=0.2,
            approved_by="a test",
            log=gone,
            on_report=interrupt,
        )
    assert cluster.reassignments() == {}
    assert_no_throttle(cluster, name)
    assert job.artifacts.read_json(AUDIT)["verdict"] == "ended early: KeyboardInterrupt"


def test_a_signal_in_the_clean_up_does_not_cut_it_short(cluster, topic, make_job, monkeypatch):
    name = topic("clean-up-signal", [[1]], size=100_000)
    job = make_job(cluster, name, [[2]])
    restore, calls = MODULE.restore_throttles, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return restore(*arguments)

    monkeypatch.setattr(MODULE, "restore_throttles", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_plan(cluster, job, settings(throttle=3_000_000), interval=0.2, approved_by="a test")
    assert len(calls) == 2
    assert_no_throttle(cluster, name)


def test_throttles_are_restored_though_records_cannot_be_written(cluster, topic, make_job, monkeypatch):
    name = topic("clean-up-read-only", [[1]], size=1_000_000)
    job, chosen, logged = make_job(cluster, name, [[2]]), settings(throttle=SLOW), []
    set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)

    def full(self, name, *_, **__):
        raise RebalanceError(f"{self.uri}/{name} cannot be written: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(job.artifacts), "write_bytes", full)
        restored = clean_up(cluster, job, chosen, log=logged.append)
    assert_no_throttle(cluster, name)
    assert restored.brokers == [1, 2]
    assert "it was restored, but that could not be recorded" in restored.left["broker 1"]
    assert any("No space left" in line for line in logged)
    assert clean_up(cluster, job, chosen).left == {}  # again, when there is space: only the records change


def test_a_clean_up_that_fails_hides_neither_the_reason_nor_the_record(cluster, topic, make_job, monkeypatch):
    name = topic("clean-up-fails", [[1]], size=100_000)
    job, logged = make_job(cluster, name, [[2]]), []

    def fail(*_, **__):
        raise ClusterError("on purpose")

    def unreachable(*_, **__):
        raise ClusterError("unreachable")

    with monkeypatch.context() as patched:
        patched.setattr(runner, "add_partitions", fail)
        patched.setattr(MODULE, "restore_throttles", unreachable)
        with pytest.raises(ClusterError, match="on purpose"):
            run_plan(cluster, job, settings(throttle=SLOW), interval=0.2, approved_by="a test", log=logged.append)
    assert "on purpose" in job.artifacts.read_json(AUDIT)["verdict"]
    assert any(line.startswith("the run could not be cleaned up (unreachable)") for line in logged)
    clean_up(cluster, job, settings())
    assert_no_throttle(cluster, name)


def test_a_clean_up_of_a_plan_that_was_never_begun_cancels_nothing(cluster, topic, make_job):
    name = topic("clean-up-foreign", [[1]], size=1_000_000)
    job = make_job(cluster, name, [[2]])
    other = make_job(cluster, name, [[2]], name="other")
    chosen = settings(throttle=SLOW)
    executor = Executor(cluster, other, chosen)
    set_throttles(cluster, other, preflight(cluster, other, chosen).status, chosen)
    executor.check()
    with pytest.raises(ClusterError, match="reassignments of somebody else are under way"):
        preflight(cluster, job, chosen)
    clean_up(cluster, job, chosen)
    assert list(cluster.reassignments()) == [TopicPartition(name, 0)]
    clean_up(cluster, other, chosen)
    assert cluster.reassignments() == {}
