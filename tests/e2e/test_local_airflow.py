"""Real brokers, scheduler, triggerer and spark-submit, with the review answered through Airflow's REST API.

A run is struck in every way that the way out must survive; after each, the throttles are what stood before it.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import psutil
import pytest

from demo.api import FINISHED
from rebalance_lib.execution import Status
from rebalance_lib.execution.saved_throttles import SAVED
from rebalance_lib.execution.throttle import FOLLOWER_RATE, LEADER_RATE
from tests import waiting
from tests.e2e.conftest import (
    SECRET,
    SPARK_JOB,
    TASK,
    answer,
    end,
    give_answer,
    wait_for,
    wait_for_review,
    wait_until_moving,
)
from tests.everywhere import set_broker, wait_for_lists, wait_for_rates, wait_for_replicas
from tests.leaks import leaks

pytestmark = pytest.mark.timeout(1800)
AFTER_REVIEW = {"arm", "apply_throttle", "execute_plan", "verify_plan", "remove_throttle", "finalize"}
FAST, SLOW = 100_000_000, 1000  # bytes/s; at the slow one a move of some megabytes takes ten minutes or more
THROTTLE = "kafka_rebalance_throttle_kafka_default"
wishes = count()
STRIPED = {"mode": "kafka", "allowed_brokers": ["3", "4"], "check_interval": 1}


@pytest.fixture
def stood(cluster, kafka):
    """Throttle rates that stood before; they must stand after, whatever happened."""
    before = {LEADER_RATE: "77000001", FOLLOWER_RATE: "77000002"}
    set_broker(cluster, 3, before)
    yield
    try:
        wait_for_rates(cluster, {**{broker: {} for broker in kafka.broker_ids}, 3: before})
    finally:
        set_broker(cluster, 3, dict.fromkeys(before))


def faster(api):
    """Raise the throttle of moves under way; each time to another rate, since one that stood before is no new wish."""
    api.set_variable(THROTTLE, str(FAST + next(wishes)))


def no_throttle(cluster, name):
    wait_for_lists(cluster, name, {})


def all_done(run, cluster):
    waiting.wait_for(lambda: set(run.status(cluster).by_partition.values()), {Status.DONE})


def test_a_rejected_review_ends_the_run_as_skipped(api, cluster, topic, stood):
    name = topic("e2e-rejected", [[1, 2]])
    run_id = answer(api, {**STRIPED, "topics": [name]}, "Reject")
    state, run = end(api, run_id)
    states = api.task_states(run_id)
    assert state == "success"
    assert {task for task, ended in states.items() if ended == "skipped"} == {*AFTER_REVIEW, "remind_reviewers"}
    wait_for_replicas(cluster, name, {0: (1, 2)})
    no_throttle(cluster, name)
    assert not run.artifacts.exists(SAVED)
    assert run.artifacts.read_json("review.json")["chosen_options"] == ["Reject"]
    assert api.standing(run_id) == "rejected"


def test_a_review_that_nobody_answers_is_rejected_when_its_time_is_up(api, cluster, topic, stood):
    name = topic("e2e-timeout", [[1, 2]])
    run_id = api.trigger({**STRIPED, "topics": [name], "timeout_hours": 0.003})
    state, run = end(api, run_id)
    assert (state, api.task_states(run_id)["arm"]) == ("success", "skipped")
    assert run.artifacts.read_json("review.json")["responded_by"] == "nobody: the time is up"
    wait_for_replicas(cluster, name, {0: (1, 2)})


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
    wait_for(lambda: api.run_state(second) in FINISHED, lambda: api.task_states(second))
    assert api.task_states(second)["claim_cluster"] == "failed"
    assert f"the run {run_id} of kafka_rebalance has the cluster" in api.task_log(second, "claim_cluster")
    faster(api)
    state, run = end(api, run_id)
    assert state == "success"
    assert {task for task, ended in api.task_states(run_id).items() if ended != "success"} == {"remind_reviewers"}
    assert api.standing(run_id) == "done"
    chosen = run.artifacts.read_json("review.json")
    assert (chosen["candidate"], chosen["responded_by"]) == ("half", "admin")
    all_done(run, cluster)
    no_throttle(cluster, name)
    assert "MB copied" in api.task_log(run_id, "verify_plan")
    changed_to = [event["rate"] for event in run.artifacts.read_json("audit.json")["throttles"] if "rate" in event]
    assert changed_to[0] == SLOW
    assert changed_to[-1] >= FAST


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
    no_throttle(cluster, name)
    state, _ = end(api, run_id)
    assert state == "failed"
    api.clear(run_id, ["arm"])
    wait_for(lambda: api.task_states(run_id)["verify_plan"] == "deferred", lambda: api.task_states(run_id))
    faster(api)
    state, run = end(api, run_id)
    assert state == "success"
    all_done(run, cluster)
    no_throttle(cluster, name)


def test_a_run_survives_the_death_of_its_worker_and_of_the_scheduler(api, airflow, cluster, topic, stood):
    name = topic("e2e-killed", [[1, 2], [2, 1]], size=12_000_000)
    run_id = answer(api, {**STRIPED, "topics": [name], "throttle": SLOW}, "Approve")
    instance = api.task_instance_id(run_id, "execute_plan")

    def killed():
        return api.task_states(run_id)["execute_plan"] == "running" and kill_task(airflow, instance)

    wait_for(killed, lambda: api.task_states(run_id), pause=0)
    wait_until_moving(api, run_id)
    assert tries(api, run_id, "execute_plan") > 1
    airflow.kill_component("scheduler")
    airflow.start_component("scheduler")
    faster(api)
    state, run = end(api, run_id)
    assert state == "success"
    all_done(run, cluster)
    no_throttle(cluster, name)


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
    no_throttle(cluster, name)
    waiting.wait_for(
        lambda: {frozenset(state.replicas) for state in cluster.partitions([name]).values()}, {frozenset({1, 2})}
    )


def test_no_secret_is_anywhere(api, airflow, command_lines):
    """After all the runs above: logs, the database with XComs and rendered templates, artifacts, all command lines."""
    artifacts = airflow.directory.parent / "artifacts"
    assert list(artifacts.rglob("snapshot/*.parquet")), "no run left anything: run the tests above first"
    seen = [line for line in command_lines.kept if "LocalExecutor" not in line]  # one that waits for a task
    for what in (SPARK_JOB, TASK):
        assert any(what in line for line in seen), f"no command line with {what} was seen"
    assert leaks(SECRET, [airflow.directory, artifacts]) == []
    assert command_lines.leaks == set()


def tries(api, run_id, task):
    """How often a task was tried."""
    return api._call("GET", f"{api._run(run_id)}/taskInstances/{task}")["try_number"]


def kill_task(airflow, instance):
    """Kill the process that runs a task, and the one that supervises it: both have its instance in their title."""
    found = []
    for process in airflow.processes():
        with suppress(psutil.Error):
            if any(instance in word for word in process.cmdline()):
                found += [process, *process.children(recursive=True)]
    for process in found:
        with suppress(psutil.Error):
            process.kill()
    return bool(found)
