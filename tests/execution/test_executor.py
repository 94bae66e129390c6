"""The executor on a live cluster: what it begins, what it waits for, and what it does about moves that stall."""

from __future__ import annotations

import time

import pytest

from rebalance_lib.clock import Clock
from rebalance_lib.cluster import Replica
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution import (
    Executor,
    Kind,
    RunState,
    clean_up,
    make_request,
    preflight,
    run_plan,
    set_throttles,
    stalls,
)
from rebalance_lib.execution.records.audit import AUDIT
from rebalance_lib.execution.records.journal import read_journal
from rebalance_lib.execution.settings import OnStall
from rebalance_lib.execution.stalls import Cause
from rebalance_lib.execution.throttles.config import LOG_DIR_RATE, RATES, dynamic_rates
from rebalance_lib.plan import Plan, PlanEntry
from rebalance_lib.topology import TopicPartition
from tests.conftest import SMALL_FETCHES
from tests.everywhere import wait_for_leaders, wait_for_rates
from tests.execution.running import FAST, FAST_SECONDS, SLOW, TOTAL_BYTES, begun, run_to_end, settings, with_free
from tests.kafka_data import write_records
from tests.waiting import wait_for


@pytest.fixture
def write(kafka):
    """``write(name, size)`` writes that many bytes to partition 0 of a topic."""
    return lambda name, size: write_records(kafka.bootstrap_servers, name, [0], size)


def test_caps_are_kept_full_and_never_exceeded(cluster, topic, make_job, started):
    name = topic("executor-caps", [[1]] * 4, size=600_000)
    job = make_job(cluster, name, [[2]] * 4)
    executor = started(job, settings(throttle=SLOW, moves_in_cluster=2))
    for _ in range(2):
        executor.check()
        wait_for(lambda: len(cluster.reassignments()), 2)
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="a test")
    together = []

    def has_ended():
        ended = executor.check().ended
        together.append(len(cluster.reassignments()))
        return ended

    wait_for(has_ended)
    assert max(together) == 2
    assert begun(job) == {f"{name}-{number}": 1 for number in range(4)}


def test_a_throttle_below_the_write_rate_is_refused_with_the_rate_it_takes(
    cluster, topic, make_job, write, monkeypatch
):
    name = topic("executor-refused", [[1]], size=100_000)
    job = make_job(cluster, name, [[2]])

    class Writing(Clock):
        def sleep(self, _):
            write(name, 500_000)
            time.sleep(0.5)  # so that it is a megabyte a second at most

    monkeypatch.setattr(cluster, "clock", Writing())
    with pytest.raises(ClusterError, match=r"throttle of 1000 bytes/s is too low.* it would take \d+ or more"):
        preflight(cluster, job, settings(throttle=1_000))
    preflight(cluster, job, settings(throttle=5_000_000))
    assert dynamic_rates(cluster, [1], RATES)[1] == {}


@pytest.mark.usefixtures("stalls_at_once")
def test_a_throttle_that_falls_below_the_write_rate_is_noticed_and_raised(cluster, topic, make_job, started, write):
    name = topic("executor-stalled", [[1]], size=2_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=50_000, throttle_ceiling=20_000_000)
    executor = started(job, chosen)
    assert executor.check().state is RunState.MOVING
    make_request(job.artifacts, Kind.THROTTLE, SLOW, by="a person who does not know better")
    assert executor.check().throttle == SLOW
    wait_for_rates(cluster, dict.fromkeys((1, 2), dict.fromkeys(RATES, str(SLOW))))
    wait_for(lambda: write(name, 300_000) or [stall.cause for stall in executor.check().stalls], [Cause.THROTTLE])
    assert SLOW < executor.check().throttle <= 20_000_000
    # It ends though as much is written as before.
    wait_for(lambda: write(name, 300_000) or executor.check().state is RunState.COMPLETED)
    assert {event["cause"] for event in read_journal(job.artifacts) if event["event"] == "remedied"} == {"throttle"}


@pytest.mark.usefixtures("stalls_at_once")
def test_without_a_ceiling_a_stall_is_reported_and_may_pause_the_run(cluster, topic, make_job, started, write):
    name = topic("executor-paused", [[1], [1]], size=600_000)
    job = make_job(cluster, name, [[2], [2]])
    chosen = settings(throttle=SLOW, on_stall=OnStall.PAUSE, moves_in_cluster=1)
    executor = started(job, chosen)
    executor.check()
    wait_for(lambda: write(name, 300_000) or executor.check().stalls)
    assert "moves have stalled" in executor.check().holds[0]
    wait_for_rates(cluster, {1: dict.fromkeys(RATES, str(SLOW))})


@pytest.mark.usefixtures("short_lag")
def test_a_move_that_somebody_cancels_is_not_begun_again(cluster, topic, make_job, started):
    name = topic("executor-cancelled", [[1]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    executor = started(job, chosen)
    executor.check()
    cluster.reassign({TopicPartition(name, 0): None})
    report = wait_for(executor.check, lambda found: found.ended, seconds=FAST_SECONDS)
    assert (report.state, report.holds[0]) == (RunState.INCOMPLETE, f"somebody else cancelled {name}-0")
    assert "somebody else cancelled" in report.set_aside[TopicPartition(name, 0)]
    assert begun(job) == {f"{name}-0": 1}


def test_log_dirs_are_moved_with_their_own_throttle_and_coming_replicas_go_where_planned(cluster, topic, make_job):
    name = topic("executor-log-dirs", [[1], [1]], size=500_000)
    held = {number: cluster.replica_log_dirs([1])[Replica(name, number, 1)].current for number in (0, 1)}
    every = {broker: sorted(log_dir.path for log_dir in cluster.log_dirs(broker)) for broker in (1, 2)}
    other = next(path for path in every[1] if path != held[0])
    job = make_job(cluster, name, [[1], [2]])
    plan = Plan.from_entries([PlanEntry(name, 0, (1,), (other,)), PlanEntry(name, 1, (2,), (every[2][1],))])
    job = type(job)(plan, job.before, job.cluster_id, job.artifacts)
    chosen = settings(throttle=5_000_000, log_dir_throttle=4_000_000)
    set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
    wait_for_rates(cluster, {1: {LOG_DIR_RATE: "4000000"}}, [LOG_DIR_RATE])
    assert run_to_end(cluster, job, chosen).state is RunState.COMPLETED
    clean_up(cluster, job, chosen)
    now = cluster.replica_log_dirs([1, 2])
    assert now[Replica(name, 0, 1)].current == other
    assert now[Replica(name, 1, 2)].current == every[2][1]
    wait_for(lambda: dynamic_rates(cluster, [1])[1], {})


def test_a_log_dir_that_is_not_there_is_refused(cluster, topic, make_job):
    name = topic("executor-no-log-dir", [[1]])
    job = make_job(cluster, name, [[1]])
    plan = Plan.from_entries([PlanEntry(name, 0, (1,), ("/nowhere",))])
    with pytest.raises(ClusterError, match="executor-no-log-dir-0-1 is planned for /nowhere"):
        preflight(cluster, type(job)(plan, job.before, job.cluster_id, job.artifacts))


def test_the_record_says_who_approved_what_and_every_move(cluster, topic, make_job):
    name = topic("executor-record", [[1, 2], [1, 2]], size=100_000)
    job = make_job(cluster, name, [[3, 1], [2, 1]])
    ending = run_plan(cluster, job, settings(throttle=9_000_000), interval=0.3, approved_by="alice", approved_at="now")
    assert ending.completed
    wait_for_leaders(cluster, name, {0: 3, 1: 2})
    record = job.artifacts.read_json(AUDIT)
    assert (record["approved_by"], record["approved_at"], record["digest"]) == ("alice", "now", job.plan.digest)
    by_partition = {move["partition"]: move for move in record["moves"]}
    data = by_partition[f"{name}-0"]
    assert (data["from"], data["to"]) == ([1, 2], [3, 1])
    assert data["bytes"] >= 100_000
    assert data["began"] < data["ended"]
    assert by_partition[f"{name}-1"]["bytes"] == 0
    throttles = [event["event"] for event in record["throttles"]]
    assert (throttles[0], throttles[-1]) == ("throttle set", "throttle restored")
    assert record["settings"]["throttle"] == 9_000_000


def test_a_request_that_cannot_be_read_is_passed_over(cluster, topic, make_job, started):
    name = topic("executor-request", [[1]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    executor = started(job, chosen)
    (job.artifacts / "requests").write_text("000001-damaged.json", '{"kind": "throttle"')
    assert executor.check().throttle == SLOW
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="a test")
    assert run_to_end(cluster, job, chosen).state is RunState.COMPLETED


def test_what_has_no_disk_space_does_not_keep_others_from_beginning(cluster, topic, make_job, monkeypatch):
    name = topic("executor-crowded", [[1], [1]], size=300_000)
    other = topic("executor-large", [[1]], size=3_000_000)
    job = make_job(cluster, name, [[2], [2]])
    large = make_job(cluster, other, [[2]], name="large")
    both = Plan.from_assignment(job.plan.as_dict() | large.plan.as_dict())
    before = Plan.from_assignment(job.before.as_dict() | large.before.as_dict())
    job = type(job)(both, before, job.cluster_id, job.artifacts)
    with monkeypatch.context() as patched:
        with_free(patched, cluster, lambda *_: TOTAL_BYTES // 2 + 1_500_000)  # space for the small ones alone
        report = Executor(cluster, job, settings(moves_in_cluster=1, disk_reserve=0.5)).check()
    assert any(hold.startswith("executor-large-0 waits: 30") and "do not fit into" in hold for hold in report.holds)
    assert begun(job) == {f"{name}-0": 1}
    assert run_to_end(cluster, job, settings()).state is RunState.COMPLETED


def test_a_plan_that_adds_partitions_is_refused(cluster, topic, make_job):
    name = topic("executor-adds", [[1]])
    job = make_job(cluster, name, [[1]])
    plan = Plan.from_assignment({TopicPartition(name, 1): [2]})
    with pytest.raises(ClusterError, match=r"not there and never were \(executor-adds-1\): .* add-partitions"):
        preflight(cluster, type(job)(plan, job.before, job.cluster_id, job.artifacts))


def test_copies_that_pay_back_their_throttle_have_not_stalled(cluster, topic, make_job, started, monkeypatch):
    monkeypatch.setattr(stalls, "PARTITION_FETCH", int(SMALL_FETCHES["replica.fetch.max.bytes"]))
    name = topic("executor-resting", [[1]] * 10, size=400_000)
    job = make_job(cluster, name, [[2]] * 10)
    executor = started(job, settings(throttle=100_000, moves_in=0, moves_out=0))
    copied = []
    for _ in range(9):  # ten fetches of 100 kB are ten seconds of this throttle, in which nothing is copied
        report = executor.check()
        assert report.stalls == ()
        copied.append(report.progress.bytes_copied)
        time.sleep(1)
    rested = max(copied.count(value) for value in copied[1:])
    assert rested > settings().stall_checks, f"nothing rested for long enough to prove it: {copied}"
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="a test")
    wait_for(lambda: executor.check().state is RunState.COMPLETED, seconds=FAST_SECONDS)
