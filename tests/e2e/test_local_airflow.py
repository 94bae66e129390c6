"""Real brokers, scheduler, triggerer and spark-submit, with the review answered through Airflow's REST API.

Runs are struck in every way that the clean-up must survive; after each, the throttles are what was set before it.
Only the first is planned on Spark: the rollback of a run goes through the same steps from the review on.
"""

from __future__ import annotations

import signal
from contextlib import suppress

import psutil
import pytest

from demo.airflow import USER
from rebalance_lib.artifacts import RUN
from rebalance_lib.cluster import take_snapshot
from rebalance_lib.execution import Run
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.throttles.config import FOLLOWER_RATE, LEADER_RATE
from rebalance_lib.execution.throttles.saved import SAVED
from rebalance_lib.plan import Plan
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import TopicPartition
from tests import waiting
from tests.e2e.conftest import (
    SPARK_JOB,
    TASK,
    answer_review,
    run_of,
    wait_for,
    wait_for_end,
    wait_for_review,
    wait_for_task,
    wait_until_moving,
)
from tests.everywhere import set_broker, wait_for_lists, wait_for_rates, wait_for_replicas

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("no_leaks", "prior_throttles")]
AFTER_REVIEW = {"arm", "apply_throttle", "execute_plan", "verify_plan", "remove_throttle", "finalize"}
FAST, SLOW = 100_000_000, 1000  # bytes/s; at the slow one a move of some megabytes takes ten minutes or more


@pytest.fixture
def prior_throttles(cluster, kafka):
    """Throttle rates that were set before; they must be set after, whatever happened."""
    before = {LEADER_RATE: "77000001", FOLLOWER_RATE: "77000002"}
    set_broker(cluster, 3, before)
    yield
    try:
        wait_for_rates(cluster, {**{broker: {} for broker in kafka.broker_ids}, 3: before})
    finally:
        set_broker(cluster, 3, dict.fromkeys(before))


@pytest.fixture
def finished_run(artifacts, cluster, topic, monkeypatch):
    """Put a topic from brokers 1 and 2 on 3 and 4, as a run that has ended; returns its id and the topic."""
    from kafka_rebalance_airflow.config import run_uri

    def make(name, size=0):
        monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", artifacts.as_uri())
        topic(name, [[1, 2], [2, 1]], size=size)
        run_id = f"manual__{name}"
        run = Run(run_uri("kafka_rebalance", run_id))
        run.artifacts.write_json(RUN, {"dag_id": "kafka_rebalance", "run_id": run_id, "kafka_conn_id": "kafka_default"})
        snapshot = take_snapshot(cluster)
        run.write_snapshot(snapshot)
        target = {TopicPartition(name, 0): [3, 4], TopicPartition(name, 1): [4, 3]}
        publish_plan(run.artifacts / "plan", Plan.from_assignment(target), snapshot)
        cluster.reassign(target)
        waiting.wait_for(cluster.reassignments, {})
        wait_until_put(cluster, name)
        return run_id

    return make


def wait_until_put(cluster, name):
    """Wait until a topic is where a finished run put it."""
    wait_for_replicas(cluster, name, {0: (3, 4), 1: (4, 3)})


def no_throttle(cluster, name):
    wait_for_lists(cluster, name, {})


def refused_while_busy(api, conf, holder):
    """A run that shall not wait fails, and names the run that holds the cluster lock."""
    run_id = api.trigger({**conf, "on_busy": "fail"})
    assert wait_for_end(api, run_id) == "failed"
    assert api.task_states(run_id)["claim_cluster"] == "failed"
    assert f"the run {holder} of kafka_rebalance holds the cluster lock" in api.task_log(run_id, "claim_cluster")


def test_the_second_candidate_is_reached_though_worker_triggerer_and_scheduler_die_and_the_run_is_marked_failed(
    api, airflow, command_lines, cluster, topic
):
    name = topic("e2e-second", [[1, 2]] * 4, size=6_000_000)
    run_id = api.trigger({"topics": [name], "throttle": FAST, "check_interval": 1})
    review = wait_for_review(airflow, api, run_id)
    assert review["options"][:2] == ["Approve full", "Approve half"]
    assert "/plugin/kafka-rebalance-run" in review["body"]
    changed = {"throttle": SLOW, "moves_per_broker": 10, "bytes_in_flight": 0}
    answer_review(airflow, api, run_id, review["options"][1], changed)

    kill_task(airflow, api, run_id, "execute_plan")
    refused_while_busy(api, {"topics": [name]}, run_id)
    refused_while_busy(api.of("kafka_rebalance_rollback"), {"run_id": run_id}, run_id)
    wait_until_moving(api, run_id)
    assert api.try_number(run_id, "execute_plan") > 1
    assert api.run_status(run_id).startswith("moving ")

    api.mark_failed(run_id)
    wait_for_task(api, run_id, "finalize", "failed", "success")
    assert cluster.reassignments() == {}
    no_throttle(cluster, name)
    assert wait_for_end(api, run_id) == "failed"

    api.clear(run_id, ["arm"])
    wait_until_moving(api, run_id)
    for component in ("triggerer", "scheduler"):
        airflow.kill_component(component)
        airflow.start_component(component)
    adjust = api.of("kafka_rebalance_adjust")
    for conf in ({"action": "pause"}, {"throttle": FAST}, {"action": "resume"}):
        assert wait_for_end(adjust, adjust.trigger({"run_id": run_id, **conf})) == "success"

    assert wait_for_end(api, run_id) == "success"
    assert {task for task, state in api.task_states(run_id).items() if state != "success"} == {"remind_reviewers"}
    assert api.run_status(run_id) == "done"
    run = run_of(api, run_id)
    chosen = run.artifacts.read_json("review.json")
    assert (chosen["candidate"], chosen["responded_by"]) == ("half", "admin")
    waiting.wait_for(lambda: set(run.status(cluster).by_partition.values()), {Status.DONE})
    no_throttle(cluster, name)
    assert "MB copied" in api.task_log(run_id, "verify_plan")
    changed_to = [event["rate"] for event in run.artifacts.read_json("audit.json")["throttles"] if "rate" in event]
    assert changed_to[0] == SLOW
    assert changed_to[-1] == FAST
    asked = [(one["kind"], one["value"], one["by"]) for one in run.artifacts.read_json("audit.json")["requests"]]
    assert ("throttle", FAST, "admin") in asked
    seen = [line for line in command_lines.kept if "LocalExecutor" not in line]  # one that waits for a task
    for what in (SPARK_JOB, TASK):
        assert any(what in line for line in seen), f"no command line with {what} was seen, to look for the secret in"


def test_a_run_is_rejected_then_cleared_approved_and_cancelled(api, airflow, cluster, finished_run):
    name = "e2e-cancelled"
    rollback, cancel = api.of("kafka_rebalance_rollback"), api.of("kafka_rebalance_cancel")
    undone = finished_run(name, size=6_000_000)
    run_id = rollback.trigger({"run_id": undone, "throttle": SLOW, "check_interval": 1})
    answer_review(airflow, rollback, run_id, "Reject")
    assert wait_for_end(rollback, run_id) == "success"
    skipped = {task for task, state in rollback.task_states(run_id).items() if state == "skipped"}
    assert skipped == {*AFTER_REVIEW, "remind_reviewers"}
    run = run_of(rollback, run_id, "prepare_rollback")
    assert not run.artifacts.exists(SAVED)
    assert run.artifacts.read_json("review.json")["chosen_options"] == ["Reject"]
    assert rollback.run_status(run_id) == "rejected"
    wait_until_put(cluster, name)
    no_throttle(cluster, name)

    rollback.clear(run_id, ["review_plan"])
    answer_review(airflow, rollback, run_id, "Approve")
    wait_until_moving(rollback, run_id)
    waiting.wait_for(cluster.reassignments)
    cancelling = cancel.trigger({"dag_id": rollback.dag_id, "run_id": run_id})
    assert wait_for_end(cancel, cancelling) == "success"
    assert wait_for_end(rollback, run_id) == "failed"
    assert "cancel requested by admin" in rollback.task_log(run_id, "verify_plan")
    assert cluster.reassignments() == {}
    no_throttle(cluster, name)
    waiting.wait_for(  # in any order: Kafka's own after a move was cancelled
        lambda: {frozenset(state.replicas) for state in cluster.partitions([name]).values()}, {frozenset({3, 4})}
    )


def test_two_users_approve_a_run_of_a_third(api_of, airflow, cluster, finished_run, policy):
    """The task asks again after each answer, and Airflow lets everybody answer: the policy names nobody."""
    name, rollback = "e2e-approved", api_of(USER).of("kafka_rebalance_rollback")
    policy(f"approval: {{clusters: {{'{cluster.cluster_id()}': {{approvals: 2, reason_required: true}}}}}}\n")
    run_id = rollback.trigger({"run_id": finished_run(name), "throttle": FAST, "check_interval": 1})
    wait_for_review(airflow, rollback, run_id)
    run = run_of(rollback, run_id, "prepare_rollback")

    def answers():
        return len(run.artifacts.read_json("approvals.json")["answers"])

    tries = [(USER, "mine"), ("anna", ""), ("anna", "full"), ("anna", "twice"), ("ben", "too")]
    for number, (user, reason) in enumerate(tries):
        wait_for_review(airflow, rollback, run_id, asked=number + 1)
        assert (answers(), run.review(), cluster.reassignments()) == (number, {}, {})
        changed = {"throttle": FAST, "moves_per_broker": 10, "bytes_in_flight": 0, "reason": reason}
        api_of(user).of(rollback.dag_id).answer_review(run_id, "Approve", changed)
        wait_for(rollback, run_id, answers, number + 1)
    assert wait_for_end(rollback, run_id) == "success"
    review = run.review()
    assert (review["responded_by"], review["requested_by"]) == ("anna, ben", USER)
    counted = [(one["person"]["id"], one["counts"]) for one in review["answers"]]
    assert counted == [(USER, False), ("anna", False), ("anna", True), ("anna", False), ("ben", True)]
    wait_for_replicas(cluster, name, {0: (1, 2), 1: (2, 1)})


def test_a_review_that_nobody_answers_is_rejected_when_its_time_is_up(api, cluster, finished_run):
    rollback, name = api.of("kafka_rebalance_rollback"), "e2e-timeout"
    run_id = rollback.trigger({"run_id": finished_run(name), "timeout_hours": 0.003})
    assert wait_for_end(rollback, run_id) == "success"
    assert rollback.task_states(run_id)["arm"] == "skipped"
    run = run_of(rollback, run_id, "prepare_rollback")
    assert run.artifacts.read_json("review.json")["responded_by"] == "nobody: the time is up"
    wait_until_put(cluster, name)


def kill_task(airflow, api, run_id, task_id):
    """Kill the process that runs a task, and the one that supervises it: both have its instance in their title.

    They are stopped first, so that the task cannot end before it is killed.
    """
    instance = api.task_instance_id(run_id, task_id)

    def killed():
        found = []
        for process in airflow.processes():
            with suppress(psutil.Error):
                if any(instance in word for word in process.cmdline()):
                    found += [process, *process.children(recursive=True)]
        send(found, signal.SIGSTOP)
        running = bool(found) and api.task_states(run_id)[task_id] == "running"
        send(found, signal.SIGKILL if running else signal.SIGCONT)
        return running

    wait_for(api, run_id, killed, pause=0)


def send(processes, number):
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)
