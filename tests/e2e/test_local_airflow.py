"""Real brokers, scheduler, triggerer and spark-submit, with the review answered through Airflow's REST API."""

from __future__ import annotations

import time

import pytest

from demo.airflow import USER, LocalAirflow
from demo.api import FINISHED, AirflowApi
from rebalance_lib.execution import Run, Status
from rebalance_lib.execution.throttle import RATES, REPLICA_LISTS, SAVED
from rebalance_lib.topology import TopicPartition
from tests.e2e.processes import processes_below

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def airflow(kafka, tmp_path_factory):
    directory = tmp_path_factory.mktemp("e2e")
    local = LocalAirflow(
        directory / "airflow", bootstrap_servers=kafka.bootstrap_servers, artifacts=directory / "artifacts"
    )
    try:
        yield local.start()
    finally:
        local.stop()
    assert list(local.processes()) == []
    assert processes_below(local.directory) == []


@pytest.fixture(scope="module")
def api(airflow):
    client = AirflowApi(airflow.url, USER, airflow.password)
    client.wait_for_dag()
    return client


def wait_for(what, seconds=240):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


def answer(api, conf, option):
    """Trigger a run and answer its review; returns the run's id."""
    run_id = api.trigger(conf)
    review = wait_for(lambda: api.pending_review(run_id))
    assert "Exactly this plan is executed" in review["body"]
    time.sleep(5)  # an answer in the moment the task parks can cost it a try
    api.answer_review(run_id, option)
    return run_id


def end(api, run_id):
    """Wait for the end of a run; returns its state and its artifacts."""
    wait_for(lambda: api.run_state(run_id) in FINISHED)
    return api.run_state(run_id), Run(api.xcom(run_id, "snapshot_topology")["run"])


def test_a_rejected_review_ends_the_run_as_skipped_and_leaves_no_throttle(api, cluster, topic):
    name = topic("e2e-rejected", [[1, 2]])
    run_id = answer(api, {"topics": [name], "brokers": ["3", "4"]}, "Reject")
    state, run = end(api, run_id)
    states = api.task_states(run_id)
    assert state == "success"
    assert {task for task, ended in states.items() if ended == "skipped"} == {
        "arm",
        "apply_throttle",
        "execute_plan",
        "verify_plan",
        "remove_throttle",
        "finalize",
    }
    assert cluster.partitions([name])[TopicPartition(name, 0)].replicas == (1, 2)
    assert cluster.topic_config(name, REPLICA_LISTS) == {}
    assert not run.artifacts.exists(SAVED)
    assert run.artifacts.read_json("review.json")["chosen_options"] == ["Reject"]


def test_an_approved_plan_is_reached_while_the_sensor_waits_in_the_triggerer(api, cluster, topic):
    name = topic("e2e-approved", [[1, 2], [2, 1]], size=3_000_000)
    conf = {"topics": [name], "brokers": [3, 4], "throttle": 1000, "check_interval": 1}
    run_id = answer(api, conf, "Approve")
    wait_for(lambda: api.xcom(run_id, "verify_plan", "progress"))
    assert api.task_states(run_id)["verify_plan"] == "deferred"
    for broker in (1, 2, 3, 4):
        cluster.alter_broker_config(broker, dict.fromkeys(RATES, "100000000"))
    state, run = end(api, run_id)
    assert state == "success"
    assert set(api.task_states(run_id).values()) == {"success"}
    assert run.status(cluster).having(Status.DONE) == [TopicPartition(name, 0), TopicPartition(name, 1)]
    assert cluster.topic_config(name, REPLICA_LISTS) == {}
    assert "MB under way is copied" in api.task_log(run_id, "verify_plan")
    assert "approved by admin" in run.artifacts.read_text("report.html")
