"""One Airflow for all end-to-end tests: api-server, scheduler, dag processor and triggerer, on the shared cluster."""

from __future__ import annotations

import json
import time

import pytest

from demo.__main__ import ANSWER_AFTER
from demo.airflow import USER, LocalAirflow
from demo.api import FINISHED, AirflowApi
from rebalance_lib.execution import Run
from tests import waiting
from tests.e2e.processes import processes_below
from tests.leaks import CommandLines

IMPATIENT = {  # tests wait for what Airflow does next, and much of that is Airflow waiting for the next look
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",  # a killed worker is missed, a slow one is not
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",  # for so long, a task that has ended may keep its worker
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # no DAG file changes meanwhile
}
SECRET = "a-planted-secret-93c1f0"  # noqa: S105 - it is there to be looked for
SPARK_JOB, TASK = "compute_placement.py", "airflow worker"  # in the command lines of what works with the secret at hand


@pytest.fixture(scope="session")
def command_lines():
    """The command lines of all that runs, from before Airflow starts."""
    with CommandLines(SECRET, kept=[SPARK_JOB, TASK]) as watched:
        yield watched


@pytest.fixture(scope="session")
def airflow(kafka, command_lines, tmp_path_factory):
    """A real Airflow whose Kafka connection has a password, which must never be seen anywhere."""
    directory = tmp_path_factory.mktemp("e2e")
    connection = {
        "conn_type": "kafka",
        "login": "operator",
        "password": SECRET,
        "extra": {"bootstrap.servers": kafka.bootstrap_servers, "sasl.mechanism": "PLAIN"},
    }
    local = LocalAirflow(
        directory / "airflow",
        bootstrap_servers=kafka.bootstrap_servers,
        artifacts=directory / "artifacts",
        more={
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(connection),
            **IMPATIENT,
        },
    )
    try:
        yield local.start()
    finally:
        local.stop()
    assert list(local.processes()) == []
    assert processes_below(local.directory) == []


@pytest.fixture(scope="session")
def api(airflow):
    client = AirflowApi(airflow.url, USER, airflow.password)
    client.wait_for_dag()
    return client


def wait_for(what, states, expected=waiting.TRUE, *, pause=0.5):
    """Wait for what Airflow does next, which takes its time; ``states`` tells how far it was."""
    return waiting.wait_for(what, expected, seconds=600, pause=pause, tell=states)


def wait_for_review(api, run_id):
    """Wait until a plan waits for its review; returns the review."""
    return wait_for(lambda: api.pending_review(run_id), lambda: api.task_states(run_id))


def give_answer(api, run_id, option, changed=None):
    """Answer a review; an answer in the seconds after the task parks can cost it a try, and then it asks again."""

    def taken():
        if api.pending_review(run_id):
            time.sleep(ANSWER_AFTER)
            api.answer_review(run_id, option, changed)
        return api.task_states(run_id)["review_plan"] in ("success", "skipped", "failed")

    wait_for(taken, lambda: api.task_states(run_id))


def answer(api, conf, option, changed=None):
    """Trigger a run and answer its review; returns the run's id."""
    run_id = api.trigger(conf)
    wait_for_review(api, run_id)
    give_answer(api, run_id, option, changed)
    return run_id


def wait_until_moving(api, run_id):
    """Wait until the sensor waits in the triggerer, and has told how far the run is."""
    wait_for(lambda: api.xcom(run_id, "verify_plan", "progress"), lambda: api.task_states(run_id))
    wait_for(lambda: api.task_states(run_id)["verify_plan"], lambda: api.task_states(run_id), "deferred")


def end(api, run_id):
    """Wait for the end of a run; returns its state and its artifacts."""
    wait_for(lambda: api.run_state(run_id) in FINISHED, lambda: api.task_states(run_id))
    return api.run_state(run_id), Run(api.xcom(run_id, "snapshot_topology")["run"])
