"""The engine on a live cluster: what it begins, what it waits for, and what it does about moves that stall."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import pytest

from rebalance_lib.cluster import Replica
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution import Executor, State, leave, metadata_lag, preflight, run_plan, set_throttles
from rebalance_lib.execution.records.audit import AUDIT
from rebalance_lib.execution.records.journal import read_journal
from rebalance_lib.execution.settings import OnStall
from rebalance_lib.execution.stalls import Cause
from rebalance_lib.execution.throttles.apply import LOG_DIR_RATE, RATES, dynamic_rates, request_rate
from rebalance_lib.plan import Plan, PlanEntry
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_leaders, wait_for_rates
from tests.execution.running import FAST, SLOW, TOTAL_BYTES, begun, run_to_end, settings, with_free
from tests.kafka_data import delete_topics, write_records
from tests.waiting import wait_for


@pytest.fixture
def write(kafka):
    """``write(name, size)`` writes that many bytes to partition 0 of a topic."""
    return lambda name, size: write_records(kafka.bootstrap_servers, name, [0], size)


def test_caps_are_kept_full_and_never_exceeded(cluster, topic, make_job, started):
    name = topic("engine-caps", [[1]] * 4, size=600_000)
    job = make_job(cluster, name, [[2]] * 4)
    engine = started(job, settings(throttle=SLOW, moves_in_cluster=2))
    for _ in range(2):
        engine.check()
        wait_for(lambda: len(cluster.reassignments()), 2)
    request_rate(job.artifacts, FAST, "a test")
    together = []

    def has_ended():
        ended = engine.check().ended
        together.append(len(cluster.reassignments()))
        return ended

    wait_for(has_ended)
    assert max(together) == 2
    assert begun(job) == {f"{name}-{number}": 1 for number in range(4)}


def test_a_throttle_below_the_write_rate_is_refused_with_the_rate_it_takes(
    cluster, topic, make_job, write, monkeypatch
):
    name = topic("engine-refused", [[1]], size=100_000)
    job = make_job(cluster, name, [[2]])

    def write_and_sleep(_):
        write(name, 500_000)
        time.sleep(0.5)  # so that it is a megabyte a second at most

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=write_and_sleep)
    monkeypatch.setattr(sys.modules[preflight.__module__], "time", clock)
    with pytest.raises(ClusterError, match=r"throttle of 1000 bytes/s is too low.* it would take \d+ or more"):
        preflight(cluster, job, settings(throttle=1_000))
    preflight(cluster, job, settings(throttle=5_000_000))
    assert dynamic_rates(cluster, 1, RATES) == {}


def test_a_throttle_that_falls_below_the_write_rate_is_noticed_and_raised(cluster, topic, make_job, started, write):
    name = topic("engine-stalled", [[1]], size=2_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=50_000, throttle_ceiling=20_000_000)
    engine = started(job, chosen)
    assert engine.check().state is State.MOVING
    request_rate(job.artifacts, SLOW, "a person who does not know better")
    assert engine.check().throttle == SLOW
    wait_for_rates(cluster, dict.fromkeys((1, 2), dict.fromkeys(RATES, str(SLOW))))
    wait_for(lambda: write(name, 300_000) or [stall.cause for stall in engine.check().stalls], [Cause.THROTTLE])
    assert SLOW < engine.check().throttle <= 20_000_000
    wait_for(
        lambda: write(name, 300_000) or engine.check().state is State.REACHED
    )  # though as much is written as before
    assert {event["cause"] for event in read_journal(job.artifacts) if event["event"] == "remedied"} == {"throttle"}


def test_without_a_ceiling_a_stall_is_told_and_may_pause_the_run(cluster, topic, make_job, started, write):
    name = topic("engine-paused", [[1], [1]], size=600_000)
    job = make_job(cluster, name, [[2], [2]])
    chosen = settings(throttle=SLOW, on_stall=OnStall.PAUSE, moves_in_cluster=1)
    engine = started(job, chosen)
    engine.check()
    wait_for(lambda: write(name, 300_000) or engine.check().stalls)
    assert "moves have stalled" in engine.check().holds[0]
    wait_for_rates(cluster, {1: dict.fromkeys(RATES, str(SLOW))})


@pytest.fixture
def soon_settled(monkeypatch):
    """What all brokers tell counts after a second."""
    monkeypatch.setattr(metadata_lag, "SETTLE_SECONDS", 1.0)


@pytest.mark.usefixtures("soon_settled")
def test_a_move_that_somebody_cancels_is_not_begun_again(cluster, topic, make_job, started):
    name = topic("engine-cancelled", [[1]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    engine = started(job, chosen)
    engine.check()
    cluster.reassign({TopicPartition(name, 0): None})
    wait_for(lambda: engine.check().state is State.CANCELLED)
    assert begun(job) == {f"{name}-0": 1}


def test_reassignments_of_others_hold_new_moves_back(cluster, topic, make_job, started):
    own, other = topic("engine-own", [[1]]), topic("engine-other", [[1]], size=1_000_000)
    job, foreign = make_job(cluster, own, [[2]]), make_job(cluster, other, [[2]], name="foreign")
    slow = settings(throttle=SLOW)
    started(foreign, slow).check()
    report = Executor(cluster, job, settings()).check()
    assert report.state is State.WAITING
    assert "reassignments of somebody else are under way: engine-other-0" in report.holds[0]
    leave(cluster, foreign, slow)
    assert run_to_end(cluster, job, settings()).state is State.REACHED


def test_log_dirs_are_moved_with_their_own_throttle_and_coming_replicas_go_where_planned(cluster, topic, make_job):
    name = topic("engine-log-dirs", [[1], [1]], size=500_000)
    held = {number: cluster.replica_log_dirs([1])[Replica(name, number, 1)].current for number in (0, 1)}
    every = {broker: sorted(log_dir.path for log_dir in cluster.log_dirs(broker)) for broker in (1, 2)}
    other = next(path for path in every[1] if path != held[0])
    job = make_job(cluster, name, [[1], [2]])
    plan = Plan.from_entries([PlanEntry(name, 0, (1,), (other,)), PlanEntry(name, 1, (2,), (every[2][1],))])
    job = type(job)(plan, job.before, job.cluster_id, job.artifacts)
    chosen = settings(throttle=5_000_000, log_dir_throttle=4_000_000)
    set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
    wait_for_rates(cluster, {1: {LOG_DIR_RATE: "4000000"}}, [LOG_DIR_RATE])
    assert run_to_end(cluster, job, chosen).state is State.REACHED
    leave(cluster, job, chosen)
    now = cluster.replica_log_dirs([1, 2])
    assert now[Replica(name, 0, 1)].current == other
    assert now[Replica(name, 1, 2)].current == every[2][1]
    wait_for(lambda: dynamic_rates(cluster, 1), {})


def test_a_log_dir_that_is_not_there_is_refused(cluster, topic, make_job):
    name = topic("engine-no-log-dir", [[1]])
    job = make_job(cluster, name, [[1]])
    plan = Plan.from_entries([PlanEntry(name, 0, (1,), ("/nowhere",))])
    with pytest.raises(ClusterError, match="engine-no-log-dir-0-1 is planned for /nowhere"):
        preflight(cluster, type(job)(plan, job.before, job.cluster_id, job.artifacts))


def test_the_record_tells_who_approved_what_and_every_move(cluster, topic, make_job):
    name = topic("engine-record", [[1, 2], [1, 2]], size=100_000)
    job = make_job(cluster, name, [[3, 1], [2, 1]])
    ending = run_plan(cluster, job, settings(throttle=9_000_000), interval=0.3, approved_by="alice", approved_at="now")
    assert ending.reached
    wait_for_leaders(cluster, name, {0: 3, 1: 2})
    record = job.artifacts.read_json(AUDIT)
    assert (record["approved_by"], record["approved_at"], record["digest"]) == ("alice", "now", job.plan.digest)
    by_partition = {move["partition"]: move for move in record["moves"]}
    data = by_partition[f"{name}-0"]
    assert (data["from"], data["to"]) == ([1, 2], [3, 1])
    assert data["bytes"] >= 100_000
    assert data["began"] < data["ended"]
    assert by_partition[f"{name}-1"]["bytes"] == 0
    assert [event["event"] for event in record["throttles"]] == ["throttle set", "throttle restored"]
    assert record["settings"]["throttle"] == 9_000_000


def test_a_rate_that_cannot_be_read_is_passed_over(cluster, topic, make_job, started):
    name = topic("engine-wish", [[1]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    engine = started(job, chosen)
    job.artifacts.write_text("throttle.json", "not a number")
    assert engine.check().throttle == SLOW
    request_rate(job.artifacts, FAST, "a test")
    assert run_to_end(cluster, job, chosen).state is State.REACHED


def test_moves_that_begin_after_the_throttle_was_taken_off_are_throttled_again(cluster, topic, make_job, started):
    name = topic("engine-uncovered", [[1]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    started(job, chosen)
    leave(cluster, job, chosen)  # as the clean-up of a failed run does, before one of its steps is cleared
    wait_for(lambda: dynamic_rates(cluster, 1, RATES), {})
    assert Executor(cluster, job, chosen).check().state is State.MOVING
    wait_for(lambda: dynamic_rates(cluster, 1, RATES) == dict.fromkeys(RATES, str(SLOW)))


def test_what_has_no_room_does_not_keep_others_from_beginning(cluster, topic, make_job, monkeypatch):
    name = topic("engine-crowded", [[1], [1]], size=300_000)
    other = topic("engine-large", [[1]], size=3_000_000)
    job = make_job(cluster, name, [[2], [2]])
    large = make_job(cluster, other, [[2]], name="large")
    both = Plan.from_assignment(job.plan.as_dict() | large.plan.as_dict())
    before = Plan.from_assignment(job.before.as_dict() | large.before.as_dict())
    job = type(job)(both, before, job.cluster_id, job.artifacts)
    with monkeypatch.context() as patched:
        with_free(patched, cluster, lambda *_: TOTAL_BYTES // 2 + 1_500_000)  # room for the small ones alone
        report = Executor(cluster, job, settings(moves_in_cluster=1, disk_reserve=0.5)).check()
    assert "moves wait for room: engine-large-0" in report.holds[0]
    assert begun(job) == {f"{name}-0": 1}
    assert run_to_end(cluster, job, settings()).state is State.REACHED


@pytest.mark.usefixtures("soon_settled")
def test_a_topic_that_is_deleted_while_it_moves_is_left_out(cluster, kafka, topic, make_job, started):
    name = topic("engine-deleted", [[1]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    engine = started(job, chosen)
    engine.check()
    with kafka.admin() as admin:
        delete_topics(admin, [name])
    wait_for(lambda: engine.check().state is State.REACHED)
    assert engine.check().progress.missing == 1


def test_a_plan_that_adds_partitions_is_refused(cluster, topic, make_job):
    name = topic("engine-adds", [[1]])
    job = make_job(cluster, name, [[1]])
    plan = Plan.from_assignment({TopicPartition(name, 1): [2]})
    with pytest.raises(ClusterError, match=r"not there and never were \(engine-adds-1\): .* add-partitions"):
        preflight(cluster, type(job)(plan, job.before, job.cluster_id, job.artifacts))
