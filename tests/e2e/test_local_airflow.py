"""Real brokers, scheduler, triggerer and spark-submit, with the review answered through Airflow's REST API.

A run is struck in every way that the way out must survive; after each, the throttles are what stood before it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count

import psutil
import pytest

from demo.api import FINISHED
from rebalance_lib.execution import Status
from rebalance_lib.execution.saved_throttles import SAVED
from rebalance_lib.execution.throttle import FOLLOWER_RATE, LEADER_RATE, RATES, REPLICA_LISTS
from rebalance_lib.topology import TopicPartition
from tests.e2e.conftest import SECRET, answer, end, give_answer, wait_for, wait_for_review, wait_until_moving
from tests.leaks import leaks

pytestmark = pytest.mark.timeout(900)
AFTER_REVIEW = {"arm", "apply_throttle", "execute_plan", "verify_plan", "remove_throttle", "finalize"}
FAST, SLOW = 100_000_000, 1000  # bytes/s; at the slow one a move of some megabytes takes hours
THROTTLE = "kafka_rebalance_throttle_kafka_default"
wishes = count()
STRIPED = {"mode": "kafka", "allowed_brokers": ["3", "4"], "check_interval": 1}


@pytest.fixture
def stood(cluster, kafka):
    """Throttle rates that stood before; they must stand after, whatever happened."""
    before = {LEADER_RATE: "77000001", FOLLOWER_RATE: "77000002"}
    cluster.alter_broker_config(3, before)
    yield
    rates = {broker: cluster.broker_config(broker, RATES) for broker in kafka.broker_ids}
    cluster.alter_broker_config(3, dict.fromkeys(before))
    assert {broker: {key: value.value for key, value in found.items()} for broker, found in rates.items()} == {
        **{broker: {} for broker in kafka.broker_ids},
        3: before,
    }


def faster(api):
    """Raise the throttle of moves under way; each time to another rate, since one that stood before is no new wish."""
    api.set_variable(THROTTLE, str(FAST + next(wishes)))


def no_throttle(cluster, name):
    return cluster.topic_config(name, REPLICA_LISTS) == {}


def test_a_rejected_review_ends_the_run_as_skipped(api, cluster, topic, stood):
    name = topic("e2e-rejected", [[1, 2]])
    run_id = answer(api, {**STRIPED, "topics": [name]}, "Reject")
    state, run = end(api, run_id)
    states = api.task_states(run_id)
    assert state == "success"
    assert {task for task, ended in states.items() if ended == "skipped"} == {*AFTER_REVIEW, "remind_reviewers"}
    assert cluster.partitions([name])[TopicPartition(name, 0)].replicas == (1, 2)
    assert no_throttle(cluster, name)
    assert not run.artifacts.exists(SAVED)
    assert run.artifacts.read_json("review.json")["chosen_options"] == ["Reject"]
    assert api.standing(run_id) == "rejected"


def test_a_review_that_nobody_answers_is_rejected_when_its_time_is_up(api, cluster, topic, stood):
    name = topic("e2e-timeout", [[1, 2]])
    run_id = api.trigger({**STRIPED, "topics": [name], "timeout_hours": 0.003})
    state, run = end(api, run_id)
    assert (state, api.task_states(run_id)["arm"]) == ("success", "skipped")
    assert run.artifacts.read_json("review.json")["responded_by"] == "nobody: the time is up"
    assert cluster.partitions([name])[TopicPartition(name, 0)].replicas == (1, 2)


def test_the_second_candidate_is_reached_though_the_triggerer_dies(api, airflow, cluster, topic, stood):
    name = topic("e2e-second", [[1, 2]] * 8, size=6_000_000)
    run_id = api.trigger({"topics": [name], "throttle": FAST, "check_interval": 1})
    review = wait_for_review(api, run_id)
    assert review["options"][:2] == ["Approve full", "Approve half"]
    assert "/plugin/kafka-rebalance-run" in review["body"]
    changed = {"throttle": SLOW, "moves_per_broker": 10, "bytes_in_flight": 0}
    give_answer(api, run_id, review["options"][1], changed)
    wait_until_moving(api, run_id)
    assert api.standing(run_id).startswith("moving ")
    airflow.kill_component("triggerer")
    airflow.start_component("triggerer")
    second = api.trigger({**STRIPED, "topics": [name], "on_busy": "fail"})
    faster(api)
    state, run = end(api, run_id)
    assert state == "success"
    assert {task for task, ended in api.task_states(run_id).items() if ended != "success"} == {"remind_reviewers"}
    assert api.standing(run_id) == "done"
    chosen = run.artifacts.read_json("review.json")
    assert (chosen["candidate"], chosen["responded_by"]) == ("half", "admin")
    assert set(run.status(cluster).by_partition.values()) == {Status.DONE}
    assert no_throttle(cluster, name)
    assert "MB copied" in api.task_log(run_id, "verify_plan")
    changed_to = [event["rate"] for event in run.artifacts.read_json("audit.json")["throttles"] if "rate" in event]
    assert changed_to[0] == SLOW
    assert changed_to[-1] >= FAST
    wait_for(lambda: api.run_state(second) in FINISHED, lambda: api.task_states(second))
    assert api.task_states(second)["claim_cluster"] == "failed"
    assert f"the run {run_id} of kafka_rebalance has the cluster" in api.task_log(second, "claim_cluster")


def test_a_run_that_is_marked_failed_cleans_up_and_goes_on_when_it_is_cleared(api, cluster, topic, stood):
    name = topic("e2e-marked", [[1, 2], [2, 1]], size=12_000_000)
    run_id = answer(api, {**STRIPED, "topics": [name], "throttle": SLOW}, "Approve")
    wait_until_moving(api, run_id)
    busy = api.of("kafka_rebalance_rollback")
    refused = busy.trigger({"run_id": run_id, "on_busy": "fail"})
    wait_for(lambda: busy.run_state(refused) in FINISHED, lambda: busy.task_states(refused))
    assert busy.task_states(refused)["claim_cluster"] == "failed"
    assert f"the run {run_id} of kafka_rebalance has the cluster" in busy.task_log(refused, "claim_cluster")
    api.mark_failed(run_id)
    wait_for(lambda: api.task_states(run_id)["finalize"] in ("failed", "success"), lambda: api.task_states(run_id))
    assert cluster.reassignments() == {}
    assert no_throttle(cluster, name)
    state, _ = end(api, run_id)
    assert state == "failed"
    api.clear(run_id, ["arm"])
    wait_for(lambda: api.task_states(run_id)["verify_plan"] == "deferred", lambda: api.task_states(run_id))
    faster(api)
    state, run = end(api, run_id)
    assert state == "success"
    assert set(run.status(cluster).by_partition.values()) == {Status.DONE}
    assert no_throttle(cluster, name)


def test_a_run_survives_the_death_of_its_worker_and_of_the_scheduler(api, airflow, cluster, topic, stood):
    name = topic("e2e-killed", [[1, 2], [2, 1]], size=12_000_000)
    run_id = answer(api, {**STRIPED, "topics": [name], "throttle": SLOW}, "Approve")
    wait_for(lambda: api.task_states(run_id)["execute_plan"] == "running", lambda: api.task_states(run_id))
    time.sleep(1)
    assert kill_task(airflow, api.task_instance_id(run_id, "execute_plan"))
    wait_until_moving(api, run_id)
    airflow.kill_component("scheduler")
    airflow.start_component("scheduler")
    faster(api)
    state, run = end(api, run_id)
    assert state == "success"
    assert set(run.status(cluster).by_partition.values()) == {Status.DONE}
    assert no_throttle(cluster, name)


def test_a_run_is_cancelled_by_its_id(api, cluster, topic, stood):
    name = topic("e2e-cancelled", [[1, 2], [2, 1]], size=12_000_000)
    run_id = answer(api, {**STRIPED, "topics": [name], "throttle": SLOW}, "Approve")
    wait_until_moving(api, run_id)
    cancel = api.of("kafka_rebalance_cancel")
    cancelling = cancel.trigger({"run_id": run_id})
    wait_for(lambda: cancel.run_state(cancelling) in FINISHED, lambda: cancel.task_states(cancelling))
    assert cancel.run_state(cancelling) == "success"
    state, _ = end(api, run_id)
    assert state == "failed"
    assert "asked to cancel the run" in api.task_log(run_id, "verify_plan")
    assert cluster.reassignments() == {}
    assert no_throttle(cluster, name)
    live = cluster.partitions([name])
    assert {frozenset(state.replicas) for state in live.values()} == {frozenset({1, 2})}


def test_no_secret_is_anywhere(api, airflow):
    """After all the runs above: logs, the database with XComs and rendered templates, artifacts, live processes."""
    assert leaks(SECRET, [airflow.directory, airflow.directory.parent / "artifacts"]) == []


def kill_task(airflow, instance):
    """Kill the process that runs a task, and the one that supervises it: both have its instance in their title."""
    killed = False
    for process in airflow.processes():
        with suppress(psutil.Error):
            if any(instance in word for word in process.cmdline()):
                process.kill()
                killed = True
    return killed
