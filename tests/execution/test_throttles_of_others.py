"""Rates that somebody else sets while a run has its own: told, remedied within the ceiling, and never lost track of."""

from __future__ import annotations

from collections import Counter

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, Replica
from rebalance_lib.execution import (
    State,
    apply_throttle,
    leave,
    read_status,
    restore_stale_throttles,
    restore_throttles,
    stale_throttles,
)
from rebalance_lib.execution.stalls import Cause
from rebalance_lib.execution.throttles.apply import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIR_RATE,
    RATES,
    REPLICA_LISTS,
    apply_log_dir_throttle,
    dynamic_rates,
    hold_rates,
    request_rate,
)
from rebalance_lib.plan import Plan, PlanEntry
from rebalance_lib.topology import TopicPartition
from tests.execution.running import FAST, SLOW, settings
from tests.kafka_data import delete_topics
from tests.waiting import wait_for


def lower(cluster, broker):
    cluster.alter_broker_config(broker, {FOLLOWER_RATE: "1"})
    wait_for(lambda: dynamic_rates(cluster, broker, RATES)[FOLLOWER_RATE] == "1")


def test_a_throttle_lowered_by_somebody_else_is_named_and_left_without_a_ceiling(cluster, topic, make_job, started):
    name = topic("lowered-told", [[1]], size=1_000_000)
    job, told = make_job(cluster, name, [[2]]), []
    engine = started(job, settings(throttle=SLOW, stall_checks=2), tell=told.append)
    engine.check()
    lower(cluster, 2)
    report = engine.check()
    assert "Somebody else set the throttle to 1 on broker 2" in str(report).replace(" bytes/s", "")
    wait_for(lambda: [stall.cause for stall in engine.check().stalls], [Cause.THROTTLE])
    assert any("somebody else has set the throttle of broker 2 to 1 bytes/s" in line for line in told)
    assert any("no ceiling was given" in line for line in told)
    assert dynamic_rates(cluster, 2, RATES)[FOLLOWER_RATE] == "1"
    cluster.alter_broker_config(2, {FOLLOWER_RATE: str(SLOW)})
    wait_for(lambda: dynamic_rates(cluster, 2, RATES)[FOLLOWER_RATE] == str(SLOW))


def test_within_the_ceiling_the_runs_own_is_set_again(cluster, topic, make_job, started):
    name = topic("lowered-remedied", [[1]], size=1_000_000)
    job, told = make_job(cluster, name, [[2]]), []
    chosen = settings(throttle=SLOW, stall_checks=2, throttle_ceiling=SLOW)
    engine = started(job, chosen, tell=told.append)
    engine.check()
    lower(cluster, 2)
    wait_for(lambda: engine.check() and any("again where somebody else" in line for line in told))
    wait_for(lambda: dynamic_rates(cluster, 2, RATES)[FOLLOWER_RATE] == str(SLOW))
    assert engine.check().throttles_of_others == {}


def test_a_rate_that_somebody_else_set_is_not_told_as_put_back(cluster, topic, make_job):
    name = topic("others-rate", [[1]])
    job = make_job(cluster, name, [[2]])
    apply_throttle(cluster, job.plan, read_status(cluster, job.plan, job.before), 1_000_000, job.artifacts)
    cluster.alter_broker_config(2, {LEADER_RATE: "777", FOLLOWER_RATE: "777"})
    wait_for(lambda: dynamic_rates(cluster, 2, RATES) == dict.fromkeys(RATES, "777"))
    restored = restore_throttles(cluster, job.artifacts)
    assert (restored.brokers, restored.theirs, restored.left) == ([1], [2], {})
    assert "brokers [2] keep a rate that somebody else set" in str(restored)
    assert stale_throttles(job.artifacts) == []
    cluster.alter_broker_config(2, dict.fromkeys(RATES))


def test_what_a_dead_run_saved_is_kept_while_another_run_uses_its_brokers(cluster, topic, make_job, started):
    name, other = topic("others-dead", [[1]]), topic("others-live", [[1]], size=1_000_000)
    dead = make_job(cluster, name, [[2]], name="dead")
    apply_throttle(cluster, dead.plan, read_status(cluster, dead.plan, dead.before), 1_000_000, dead.artifacts)
    live, chosen = make_job(cluster, other, [[2]], name="live"), settings(throttle=SLOW)
    engine = started(live, chosen)  # finds the dead run's rate, and puts it back in the end
    engine.check()
    wait_for(cluster.reassignments)
    restored = restore_stale_throttles(cluster, dead.artifacts)[dead.artifacts.uri]
    assert "another rate" in restored.left["broker 2"]
    leave(cluster, live, chosen)
    assert dynamic_rates(cluster, 2, RATES) == dict.fromkeys(RATES, "1000000")
    assert restore_stale_throttles(cluster, dead.artifacts)[dead.artifacts.uri].left == {}
    assert dynamic_rates(cluster, 2, RATES) == {}


def test_lists_of_many_topics_are_put_back_together(kafka, cluster, topic, tmp_path):
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
        assert (
            requests["alter_configs"] == 4
        )  # one for each broker, one for the entries of all topics, one for their lists
        # Brokers are asked one by one, before and after; topics all at once: one by one, it would be these eight more.
        assert requests["describe_configs"] + requests["describe_topics"] <= 10
    assert not any(cluster.topic_configs(names, REPLICA_LISTS).values())


def test_the_rate_of_log_dirs_is_put_back_where_another_tool_deleted_it(cluster, tmp_path):
    run = Artifacts.at(tmp_path)
    assert apply_log_dir_throttle(cluster, [1], SLOW, run) == [1]
    cluster.alter_broker_config(1, {LOG_DIR_RATE: None})  # as other tools do when their own moves end
    wait_for(lambda: dynamic_rates(cluster, 1) == {})
    assert hold_rates(cluster, run, {LOG_DIR_RATE: SLOW}, {1}).changed == [1]
    wait_for(lambda: dynamic_rates(cluster, 1) == {LOG_DIR_RATE: str(SLOW)})
    restore_throttles(cluster, run)
    assert dynamic_rates(cluster, 1) == {}


def test_the_rate_of_log_dirs_can_be_changed_while_they_move(cluster, topic, make_job, started):
    name = topic("log-dir-rate", [[1]], size=1_000_000)
    held = cluster.replica_log_dirs([1])[Replica(name, 0, 1)].current
    other = next(log_dir.path for log_dir in cluster.log_dirs(1) if log_dir.path != held)
    job = make_job(cluster, name, [[1]])
    plan = Plan.from_entries([PlanEntry(name, 0, (1,), (other,))])
    job = type(job)(plan, job.before, job.cluster_id, job.artifacts)
    engine = started(job, settings(log_dir_throttle=SLOW))
    assert engine.check().state is State.MOVING
    request_rate(job.artifacts, FAST, "a test")
    engine.check()
    wait_for(lambda: dynamic_rates(cluster, 1, [LOG_DIR_RATE]) == {LOG_DIR_RATE: str(FAST)})
    wait_for(lambda: engine.check().state is State.REACHED)
