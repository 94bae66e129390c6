"""The throttle of a run while it is under way: for what moves alone, set again where others remove it, never theirs."""

from __future__ import annotations

from collections import Counter

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, Replica
from rebalance_lib.execution import Kind, RunState, clean_up, make_request, restore_stale_throttles
from rebalance_lib.execution.messages import ignore
from rebalance_lib.execution.plan_status import read_status
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.stalls import Cause
from rebalance_lib.execution.throttles import maintain
from rebalance_lib.execution.throttles.apply import apply_throttle
from rebalance_lib.execution.throttles.config import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    RATES,
    REPLICA_LISTS,
    dynamic_rates,
)
from rebalance_lib.execution.throttles.maintain import Rates, ThrottleMaintainer
from rebalance_lib.execution.throttles.restore import restore_throttles
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.plan import Plan, PlanEntry
from rebalance_lib.topology import TopicPartition
from tests.everywhere import set_broker, set_topic, wait_for_lists
from tests.execution.running import FAST, SLOW, settings
from tests.kafka_data import delete_topics
from tests.waiting import wait_for


def lower(cluster, broker):
    cluster.alter_broker_config(broker, {FOLLOWER_RATE: "1"})
    wait_for(lambda: dynamic_rates(cluster, [broker], RATES)[broker][FOLLOWER_RATE] == "1")


@pytest.mark.usefixtures("stalls_at_once")
def test_a_throttle_lowered_by_somebody_else_is_named_and_left_without_a_ceiling(cluster, topic, make_job, started):
    name = topic("lowered-logged", [[1]], size=1_000_000)
    job, logged = make_job(cluster, name, [[2]]), []
    executor = started(job, settings(throttle=SLOW, stall_checks=2), log=logged.append)
    executor.check()
    lower(cluster, 2)
    report = executor.check()
    assert "Somebody else set the throttle to 1 on broker 2" in str(report).replace(" bytes/s", "")
    wait_for(lambda: [stall.cause for stall in executor.check().stalls], [Cause.THROTTLE])
    assert any("somebody else has set the throttle of broker 2 to 1 bytes/s" in line for line in logged)
    assert any("no ceiling was given" in line for line in logged)
    assert dynamic_rates(cluster, [2], RATES)[2][FOLLOWER_RATE] == "1"
    cluster.alter_broker_config(2, {FOLLOWER_RATE: str(SLOW)})
    wait_for(lambda: dynamic_rates(cluster, [2], RATES)[2][FOLLOWER_RATE] == str(SLOW))


@pytest.mark.usefixtures("stalls_at_once")
def test_within_the_ceiling_the_runs_own_is_set_again(cluster, topic, make_job, started):
    name = topic("lowered-remedied", [[1]], size=1_000_000)
    job, logged = make_job(cluster, name, [[2]]), []
    chosen = settings(throttle=SLOW, stall_checks=2, throttle_ceiling=SLOW)
    executor = started(job, chosen, log=logged.append)
    executor.check()
    lower(cluster, 2)
    wait_for(lambda: executor.check() and any("again where somebody else" in line for line in logged))
    wait_for(lambda: dynamic_rates(cluster, [2], RATES)[2][FOLLOWER_RATE] == str(SLOW))
    assert executor.check().foreign_throttles == {}


def test_a_rate_that_somebody_else_set_is_not_reported_as_restored(cluster, topic, make_job):
    name = topic("others-rate", [[1]])
    job = make_job(cluster, name, [[2]])
    apply_throttle(cluster, job.plan, read_status(cluster, job.plan, job.before), 1_000_000, job.artifacts)
    cluster.alter_broker_config(2, {LEADER_RATE: "777", FOLLOWER_RATE: "777"})
    wait_for(lambda: dynamic_rates(cluster, [2], RATES)[2] == dict.fromkeys(RATES, "777"))
    restored = restore_throttles(cluster, job.artifacts)
    assert (restored.brokers, restored.foreign, restored.left) == ([1], [2], {})
    assert "brokers [2] keep a rate that somebody else set" in str(restored)
    assert stale_throttles(job.artifacts) == []
    cluster.alter_broker_config(2, dict.fromkeys(RATES))


def test_what_a_dead_run_saved_is_kept_while_another_run_uses_its_brokers(cluster, topic, make_job, started):
    name, other = topic("others-dead", [[1]]), topic("others-live", [[1]], size=1_000_000)
    dead = make_job(cluster, name, [[2]], name="dead")
    apply_throttle(cluster, dead.plan, read_status(cluster, dead.plan, dead.before), 1_000_000, dead.artifacts)
    live, chosen = make_job(cluster, other, [[2]], name="live"), settings(throttle=SLOW)
    executor = started(live, chosen)  # finds the dead run's rate, and puts it back in the end
    executor.check()
    wait_for(cluster.reassignments)
    restored = restore_stale_throttles(cluster, dead.artifacts)[dead.artifacts.uri]
    assert "another rate" in restored.left["broker 2"]
    clean_up(cluster, live, chosen)
    assert dynamic_rates(cluster, [2], RATES)[2] == dict.fromkeys(RATES, "1000000")
    assert restore_stale_throttles(cluster, dead.artifacts)[dead.artifacts.uri].left == {}
    assert dynamic_rates(cluster, [2], RATES)[2] == {}


def test_lists_of_many_topics_are_restored_together(kafka, cluster, topic, tmp_path):
    names = [topic(f"many-{number}", [[1]]) for number in range(8)]
    plan = Plan.from_assignment({TopicPartition(name, 0): [2] for name in names})
    before = Plan.from_assignment({TopicPartition(name, 0): [1] for name in names})
    run = Artifacts.at(tmp_path / "run")
    apply_throttle(cluster, plan, read_status(cluster, plan, before), 1_000_000, run)
    with kafka.admin() as admin:
        delete_topics(admin, names[7:])

    requests = Counter()

    class Counting(Cluster):
        def _ask(self, what, request, *arguments, **options):
            requests[request] += 1
            return super()._ask(what, request, *arguments, **options)

    with Counting({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as counting:
        restored = restore_throttles(counting, run)
        assert (restored.topics, restored.left) == (names, {})
        assert requests["alter_configs"] == 2  # the entries of all topics, then the lists that are empty
        # Topics are described all at once: one by one, it would be these eight, twice.
        assert requests["describe_configs"] + requests["describe_topics"] <= 8
    assert not any(cluster.topic_configs(names, REPLICA_LISTS).values())


def test_lists_name_only_what_is_under_way_and_come_back_where_somebody_deletes_them(
    cluster, topic, make_job, started, monkeypatch
):
    monkeypatch.setattr(maintain, "LAG_SECONDS", 0.0)  # else brokers may just not show the entries yet
    name, logged = topic("maintained-lists", [[1], [1], [2]], size=400_000), []
    set_topic(cluster, name, {LEADER_REPLICAS: "7:9"})  # somebody else's, of a partition that does not move
    job = make_job(cluster, name, [[3], [3], [3]])
    executor = started(job, settings(throttle=SLOW, moves_in_cluster=1, order="smallest-first"), log=logged.append)
    executor.check()
    [first] = cluster.reassignments()
    sender = {0: 1, 1: 1, 2: 2}
    listed = {
        LEADER_REPLICAS: f"7:9,{first.partition}:{sender[first.partition]}",
        FOLLOWER_REPLICAS: f"{first.partition}:3",
    }
    wait_for_lists(cluster, name, listed)
    set_topic(cluster, name, {FOLLOWER_REPLICAS: None})  # as Kafka's --verify does; the leader still throttles it
    executor.check()
    wait_for_lists(cluster, name, listed)
    assert f"somebody removed throttled replicas of {name}: they are set again" in logged
    make_request(job.artifacts, Kind.THROTTLE, FAST, by="a test")
    wait_for(lambda: executor.check().progress.done == 3)
    executor.check()
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "7:9"})


def test_the_rate_of_log_dirs_is_set_again_where_another_tool_deleted_it(cluster, topic, make_job):
    job = make_job(cluster, topic("log-dir-rate-deleted", [[1]]), [[1]])
    rates, journal = Rates(None, SLOW), Journal(job.artifacts)
    throttles = ThrottleMaintainer(cluster, job, journal, ignore)
    assert throttles.set_rates(rates, (), [1]) == [1]
    wait_for(lambda: dynamic_rates(cluster, [1])[1], {LOG_DIR_RATE: str(SLOW)})
    set_broker(cluster, 1, {LOG_DIR_RATE: None})  # as other tools do when their own moves end
    throttles.maintain([], [1], rates, {1})
    wait_for(lambda: dynamic_rates(cluster, [1])[1], {LOG_DIR_RATE: str(SLOW)}, seconds=10)
    restore_throttles(cluster, job.artifacts)
    assert dynamic_rates(cluster, [1])[1] == {}


def test_the_rate_of_log_dirs_can_be_changed_while_they_move(cluster, topic, make_job, started):
    name = topic("log-dir-rate", [[1]], size=1_000_000)
    held = cluster.replica_log_dirs([1])[Replica(name, 0, 1)].current
    other = next(log_dir.path for log_dir in cluster.log_dirs(1) if log_dir.path != held)
    job = make_job(cluster, name, [[1]])
    plan = Plan.from_entries([PlanEntry(name, 0, (1,), (other,))])
    job = type(job)(plan, job.before, job.cluster_id, job.artifacts)
    executor = started(job, settings(log_dir_throttle=SLOW))
    assert executor.check().state is RunState.MOVING
    make_request(job.artifacts, Kind.LOG_DIR_THROTTLE, FAST, by="a test")
    executor.check()
    wait_for(lambda: dynamic_rates(cluster, [1], [LOG_DIR_RATE])[1] == {LOG_DIR_RATE: str(FAST)})
    wait_for(lambda: executor.check().state is RunState.COMPLETED)
