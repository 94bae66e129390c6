"""What users of other tools ask for, point by point: the number in a test's name is that in docs/execution.md.

All on real clusters, but for what the planner alone decides (11, 13, 15). What takes brokers that are down (7, 8, 14)
is in test_degraded, what takes rates of all kinds (5) in test_chaos.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Replica, ReplicaLogDir
from rebalance_lib.errors import ClusterError, DriftError
from rebalance_lib.execution import (
    Executor,
    Kind,
    Run,
    RunState,
    Settings,
    clean_up,
    make_request,
    preflight,
    set_throttles,
)
from rebalance_lib.execution.plan_status import read_status
from rebalance_lib.execution.records.audit import moves
from rebalance_lib.execution.records.journal import read_journal
from rebalance_lib.execution.throttles.apply import apply_throttle
from rebalance_lib.execution.throttles.config import FOLLOWER_REPLICAS, LEADER_REPLICAS, RATES, dynamic_rates
from rebalance_lib.execution.throttles.restore import restore_throttles
from rebalance_lib.plan import format_plan
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Mode, Request
from rebalance_lib.topology import TopicPartition
from rebalance_lib.window import Window
from tests.everywhere import (
    rates,
    set_topic,
    wait_for_rates,
    wait_for_replicas,
)
from tests.execution.running import (
    FAST,
    FAST_SECONDS,
    SLOW,
    TOTAL_BYTES,
    begun,
    count_requests,
    run_to_end,
    settings,
    with_free,
)
from tests.planner.clusters import GB, Host, planned
from tests.planner.clusters import cluster as synthetic
from tests.planner.clusters import topic as topic_of
from tests.waiting import wait_for

SHOWN_SECONDS = 10.0  # until a broker shows a rate that it took


def test_01_exactly_the_approved_bytes_are_executed_and_drift_is_refused(cluster, topic, make_job, tmp_path):
    name = topic("field-01", [[1, 2], [1, 2]])
    job = make_job(cluster, name, [[3, 2], [3, 2]])
    with pytest.raises(DriftError, match="approved was sha256:0"):
        _run_of(tmp_path, job).approved_plan("sha256:0")
    cluster.reassign({TopicPartition(name, 1): [2, 4]})
    wait_for(cluster.reassignments, {})
    wait_for_replicas(cluster, name, {0: (1, 2), 1: (2, 4)})
    with pytest.raises(DriftError, match=r"no longer where the snapshot saw them \(field-01-1\)"):
        preflight(cluster, job)
    wait_for_replicas(cluster, name, {0: (1, 2), 1: (2, 4)})


def _run_of(tmp_path, job) -> Run:
    (Artifacts.at(tmp_path) / "plan").write_text("plan.json", format_plan(job.plan))
    return Run(Artifacts.at(tmp_path).uri)


def test_02_a_new_executor_goes_on_where_the_last_one_stopped(cluster, topic, make_job, monkeypatch):
    requested = count_requests(monkeypatch, cluster)
    name = topic("field-02", [[1], [1], [1]], size=600_000)
    job, chosen = make_job(cluster, name, [[2], [2], [2]]), settings(throttle=2_000_000, moves_in_cluster=1)
    set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
    _until_one_is_done(Executor(cluster, job, chosen))  # and with it, all that it knew is gone
    assert run_to_end(cluster, job, chosen, FAST_SECONDS).state is RunState.COMPLETED
    assert requested == {f"{name}-0": 1, f"{name}-1": 1, f"{name}-2": 1}
    clean_up(cluster, job, chosen)


def _until_one_is_done(executor):
    wait_for(lambda: executor.check().progress.done >= 1, seconds=FAST_SECONDS)


def test_03_every_retry_re_attaches_and_submits_nothing_twice(cluster, topic, make_job, monkeypatch):
    requested = count_requests(monkeypatch, cluster)
    name = topic("field-03", [[1], [2]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[3], [3]]), settings(throttle=SLOW)
    for _ in range(3):  # as often as somebody clears the tasks
        set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
        report = Executor(cluster, job, chosen).check()
    assert report.progress.moving == 2
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="a test")
    assert run_to_end(cluster, job, chosen, FAST_SECONDS).state is RunState.COMPLETED
    assert requested == begun(job) == {f"{name}-0": 1, f"{name}-1": 1}
    clean_up(cluster, job, chosen)


def test_04_the_throttle_changes_while_it_runs(cluster, topic, make_job):
    name = topic("field-04", [[1]], size=2_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
    executor = Executor(cluster, job, chosen)
    assert executor.check().throttle == SLOW
    make_request(job.artifacts, Kind.THROTTLE, 50_000_000, by="a test")
    assert executor.check().throttle == 50_000_000
    wait_for_rates(cluster, dict.fromkeys((1, 2), dict.fromkeys(RATES, "50000000")), seconds=SHOWN_SECONDS)
    assert run_to_end(cluster, job, chosen, FAST_SECONDS).state is RunState.COMPLETED
    clean_up(cluster, job, chosen)
    assert dynamic_rates(cluster, (1, 2), RATES) == {1: {}, 2: {}}


def test_04_a_rate_that_another_tool_deleted_is_set_again(cluster, topic, make_job):
    name = topic("field-04b", [[1]], size=1_000_000)
    job, chosen = make_job(cluster, name, [[2]]), settings(throttle=SLOW)
    set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
    executor = Executor(cluster, job, chosen)
    executor.check()
    cluster.alter_broker_config(2, dict.fromkeys(RATES))  # the sender's still holds
    wait_for_rates(cluster, {2: {}})
    executor.check()
    wait_for_rates(cluster, {2: dict.fromkeys(RATES, str(SLOW))}, seconds=SHOWN_SECONDS)
    clean_up(cluster, job, chosen)


def test_06_a_broker_that_others_still_use_keeps_its_rate(cluster, topic, make_job):
    own, other = topic("field-06", [[1]], size=10_000), topic("field-06-other", [[1]], size=1_000_000)
    job = make_job(cluster, own, [[2]])
    apply_throttle(cluster, job.plan, read_status(cluster, job.plan, job.before), SLOW, job.artifacts)
    wait_for_rates(cluster, dict.fromkeys((1, 2), dict.fromkeys(RATES, str(SLOW))))
    # Another tool begins a throttled move meanwhile, and finds the rates that it wants set already.
    set_topic(cluster, other, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    cluster.reassign({TopicPartition(other, 0): [2]})
    restored = restore_throttles(cluster, job.artifacts)
    assert sorted(restored.left) == ["broker 1", "broker 2"]
    assert "others use it" in restored.left["broker 1"]
    assert rates(cluster, (1, 2)) == dict.fromkeys((1, 2), dict.fromkeys(RATES, str(SLOW)))
    cluster.reassign({TopicPartition(other, 0): None})
    wait_for(cluster.reassignments, {})
    assert restore_throttles(cluster, job.artifacts).brokers == [1, 2]
    wait_for_rates(cluster, {1: {}, 2: {}})


def test_09_one_new_replica_per_partition_at_a_time(cluster, topic, make_job, started):
    name = topic("field-09", [[1, 2], [2, 1]], size=600_000)
    job = make_job(cluster, name, [[3, 4], [4, 3]])
    executor = started(job, settings(throttle=SLOW, one_replica_at_a_time=True))
    seen = []

    def has_ended():
        ended = executor.check().ended
        seen.extend(cluster.reassignments().values())
        return ended

    assert not has_ended()
    wait_for(lambda: has_ended() or len(cluster.reassignments()) == 2)
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="a test")
    wait_for(has_ended, seconds=FAST_SECONDS)
    assert max(len(entry.adding) for entry in seen) == 1
    assert max(len(entry.replicas) for entry in seen) == 3
    assert begun(job) == {f"{name}-0": 2, f"{name}-1": 2}
    wait_for_replicas(cluster, name, {0: (3, 4), 1: (4, 3)})


def test_10_nothing_begins_after_the_end_of_the_window(cluster, topic, make_job):
    name = topic("field-10", [[1], [1]], size=400_000)
    job = make_job(cluster, name, [[2], [2]])
    now = datetime.now(UTC)
    open_window, closed = _window(now - timedelta(hours=1)), _window(now + timedelta(hours=2))
    pace = Pace(throttle=1_000_000, moves_in_cluster=1)
    first = Settings(pace=pace, window=open_window)
    set_throttles(cluster, job, preflight(cluster, job, first).status, first)
    assert Executor(cluster, job, first).check().state is RunState.MOVING
    later = Executor(cluster, job, Settings(pace=pace, window=closed))
    wait_for(lambda: later.check().progress.done == 1, seconds=FAST_SECONDS)  # what is under way goes on
    report = later.check()
    assert (report.state, report.progress.pending) == (RunState.HELD, 1)
    assert "is closed" in report.holds[0]
    assert run_to_end(cluster, job, first, FAST_SECONDS).state is RunState.COMPLETED
    clean_up(cluster, job, first)


def _window(begin: datetime) -> Window:
    end = begin + timedelta(hours=2)
    return Window.parse(f"{begin:%H:%M}-{end:%H:%M}")


def test_11_a_light_plan_stays_within_its_budget():
    before = synthetic(
        {b: Host(disks={"/d": 100 * GB}) for b in (1, 2, 3)}, topic_of("orders", [[1]] * 30 + [[2]] * 5, [3 * GB] * 35)
    )
    plan = planned(before, Request(Mode.LIGHT, fill_level=0.5, byte_budget=10 * GB))
    assert 0 < plan.figures.bytes_moved <= 10 * GB


def test_12_disk_space_is_checked_before_and_again_before_each_move(cluster, topic, make_job, monkeypatch):
    name = topic("field-12", [[1], [1]], size=1_000_000)
    job = make_job(cluster, name, [[2], [2]])
    half = settings(disk_reserve=0.5)
    with monkeypatch.context() as patched:
        with_free(patched, cluster, lambda *_: TOTAL_BYTES // 2 + 200_000)  # less than one copy above the reserve
        with pytest.raises(ClusterError, match=r"not enough disk space .*field-12-\d: \d+ bytes do not fit into"):
            preflight(cluster, job, half)
        report = Executor(cluster, job, half).check()
        assert (report.state, report.progress.pending) == (RunState.MOVING, 2)
        assert "waits: " in report.holds[0]
        assert "do not fit into" in report.holds[0]
    assert run_to_end(cluster, job, settings(), FAST_SECONDS).state is RunState.COMPLETED


def test_12_a_new_replica_goes_to_the_log_dir_with_the_most_space_not_the_fewest_replicas(
    cluster, topic, make_job, monkeypatch
):
    name, others = topic("field-12b", [[1]], size=10_000), topic("field-12b-others", [[2]] * 3)

    def replicas():
        return {log_dir.path: len(log_dir.replicas) for log_dir in cluster.log_dirs(2)}

    full, empty = sorted(replicas(), key=replicas().get, reverse=True)
    cluster.alter_replica_log_dirs({Replica(others, number, 2): full for number in range(3)})
    wait_for(
        lambda: {cluster.replica_log_dirs([2])[Replica(others, number, 2)] for number in range(3)},
        {ReplicaLogDir(full, None)},
    )
    assert replicas()[full] > replicas()[empty]  # where Kafka, left to itself, would put the next
    job = make_job(cluster, name, [[2]])
    with monkeypatch.context() as patched:
        with_free(patched, cluster, lambda _, path: TOTAL_BYTES // (2 if path == full else 4))
        assert run_to_end(cluster, job, settings(), FAST_SECONDS).state is RunState.COMPLETED
    assert moves(read_journal(job.artifacts))[0]["log_dirs"] == {f"{name}-0-2": full}
    assert cluster.replica_log_dirs([2])[Replica(name, 0, 2)].current == full


def test_13_every_replica_counts_with_its_own_size():
    held = topic_of("orders", [[1, 2], [1, 2]], [10 * GB, 10 * GB])
    before = synthetic({b: Host(disks={"/a": None, "/b": None}) for b in (1, 2, 3)}, held)
    first = TopicPartition("orders", 0)
    behind = replace(before.partitions[first], sizes=(10 * GB, 4 * GB))
    smaller = replace(before, partitions={**before.partitions, first: behind})
    plan = planned(smaller, Request(Mode.DRAIN, brokers=(2,)))
    freed = smaller.bytes_by_broker()[2]
    assert freed == 14 * GB
    assert plan.figures.bytes_moved == 20 * GB  # a new replica is copied from the leader, which is whole


def test_15_topics_are_chosen_by_patterns_that_include():
    topics = [topic_of(name, [[1]] * 6) for name in ("orders-eu", "orders-us", "logs")]
    before = synthetic([1, 2, 3], {name: held for one in topics for name, held in one.items()})
    plan = planned(before, Request(Mode.TOPICS, topics=("orders-*",), excluded_topics=("*-us",)))
    assert {entry.topic for entry in plan.plan} == {"orders-eu"}
