"""The way out is taken whatever else goes wrong: words that cannot be told, notes that cannot be written, signals."""

from __future__ import annotations

import os

import pytest

from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution import leave, preflight, run_plan, runner, set_throttles
from rebalance_lib.execution.records.audit import AUDIT
from rebalance_lib.execution.throttles.apply import RATES, REPLICA_LISTS, dynamic_rates
from rebalance_lib.topology import TopicPartition
from tests.execution.running import SLOW, settings


def throttles(cluster, topic):
    return cluster.topic_config(topic, REPLICA_LISTS), {b: dynamic_rates(cluster, b, RATES) for b in (1, 2)}


NONE = ({}, {1: {}, 2: {}})


def test_a_closed_pipe_ends_no_run_and_keeps_no_throttle(cluster, topic, make_job):
    name = topic("out-pipe", [[1]], size=200_000)
    job = make_job(cluster, name, [[2]])
    reading, writing = os.pipe()
    os.close(reading)

    def tell(text):
        os.write(writing, str(text).encode())

    with pytest.raises(BrokenPipeError):
        tell("nobody reads")
    chosen = settings(throttle=3_000_000)
    ending = run_plan(cluster, job, chosen, interval=0.2, approved_by="a test", tell=tell, on_report=tell)
    os.close(writing)
    assert ending.reached
    assert throttles(cluster, name) == NONE


def test_an_interrupt_with_nobody_listening_takes_the_way_out(cluster, topic, make_job):
    name = topic("out-interrupt", [[1]], size=1_000_000)
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
            tell=gone,
            on_report=interrupt,
        )
    assert (cluster.reassignments(), throttles(cluster, name)) == ({}, NONE)
    assert job.artifacts.read_json(AUDIT)["verdict"] == "ended early: KeyboardInterrupt"


def test_a_signal_in_the_way_out_does_not_cut_it_short(cluster, topic, make_job, monkeypatch):
    name = topic("out-signal", [[1]], size=100_000)
    job = make_job(cluster, name, [[2]])
    restore, calls = runner.restore_throttles, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return restore(*arguments)

    monkeypatch.setattr(runner, "restore_throttles", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_plan(cluster, job, settings(throttle=3_000_000), interval=0.2, approved_by="a test")
    assert (len(calls), throttles(cluster, name)) == (2, NONE)


def test_notes_that_cannot_be_written_do_not_keep_throttles_from_being_put_back(cluster, topic, make_job, monkeypatch):
    name = topic("out-read-only", [[1]], size=1_000_000)
    job, chosen, told = make_job(cluster, name, [[2]]), settings(throttle=SLOW), []
    set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)

    def full(self, name, _):
        raise RebalanceError(f"{self.uri}/{name} cannot be written: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(job.artifacts), "write_bytes", full)
        restored = leave(cluster, job, chosen, tell=told.append)
    assert throttles(cluster, name) == NONE
    assert restored.brokers == [1, 2]
    assert "could not be struck off" in restored.left["broker 1"]
    assert any("No space left" in line for line in told)
    assert leave(cluster, job, chosen).left == {}  # again, when there is room: nothing but the notes changes


def test_a_way_out_that_fails_hides_neither_the_reason_nor_the_record(cluster, topic, make_job, monkeypatch):
    name = topic("out-fails", [[1]], size=100_000)
    job, told = make_job(cluster, name, [[2]]), []

    def fail(*_, **__):
        raise ClusterError("on purpose")

    def unreachable(*_, **__):
        raise ClusterError("out of reach")

    with monkeypatch.context() as patched:
        patched.setattr(runner, "add_partitions", fail)
        patched.setattr(runner, "restore_throttles", unreachable)
        with pytest.raises(ClusterError, match="on purpose"):
            run_plan(cluster, job, settings(throttle=SLOW), interval=0.2, approved_by="a test", tell=told.append)
    assert "on purpose" in job.artifacts.read_json(AUDIT)["verdict"]
    assert any(line.startswith("the way out could not be taken (out of reach)") for line in told)
    leave(cluster, job, settings())
    assert throttles(cluster, name) == NONE


def test_the_way_out_of_a_plan_that_was_never_begun_cancels_nothing(cluster, topic, make_job):
    name = topic("out-foreign", [[1]], size=1_000_000)
    job = make_job(cluster, name, [[2]])
    other = make_job(cluster, name, [[2]], name="other")
    chosen = settings(throttle=SLOW)
    set_throttles(cluster, other, preflight(cluster, other, chosen).status, chosen)
    cluster.reassign({TopicPartition(name, 0): [2]})
    with pytest.raises(ClusterError, match="reassignments of somebody else are under way"):
        preflight(cluster, job, chosen)
    leave(cluster, job, chosen)
    assert list(cluster.reassignments()) == [TopicPartition(name, 0)]
    leave(cluster, other, chosen)
    assert cluster.reassignments() == {}
