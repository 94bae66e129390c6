"""One Airflow for all end-to-end tests: api-server, scheduler, dag processor and triggerer, on the shared cluster."""

from __future__ import annotations

import json
import re

import pytest

from demo.airflow import USER, LocalAirflow
from demo.api import FINISHED, AirflowApi
from rebalance_lib.execution import Run
from tests import waiting
from tests.e2e.processes import processes_below
from tests.leaks import CommandLines, leaks

# Tests wait for what Airflow does next, and much of that is Airflow waiting for its next check. How long a worker or a
# triggerer may be silent before it counts as dead is many times its heartbeat: on a busy machine, none dies by mistake.
SHORT_INTERVALS = {
    "AIRFLOW__CORE__PARALLELISM": "4",  # a worker that was killed keeps its slot
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "1",  # of reviews, too
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",  # for so long, a task that has ended may keep its worker
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # no DAG file changes meanwhile
}
CLUSTERS = "clusters: {default: {kafka_conn_id: kafka_default}}\n"
OTHERS = ("anna", "ben")  # users beside the one who triggers all runs
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
    clusters = directory / "clusters.yaml"
    clusters.write_text(CLUSTERS)
    local = LocalAirflow(
        directory / "airflow",
        bootstrap_servers=kafka.bootstrap_servers,
        artifacts=directory / "artifacts",
        more={
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(connection),
            "AIRFLOW__KAFKA_REBALANCE__CLUSTERS": str(clusters),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:admin" for name in (USER, *OTHERS)),
            **SHORT_INTERVALS,
        },
    )
    try:
        yield local.start()
    finally:
        local.stop()
    assert list(local.processes()) == []
    assert processes_below(local.directory) == []


@pytest.fixture
def artifacts(airflow):
    """Where all runs keep their artifacts."""
    return airflow.directory.parent / "artifacts"


@pytest.fixture
def no_leaks(airflow, artifacts, command_lines):
    """After the test, no secret is in logs, the database with XComs and templates, artifacts, or command lines."""
    yield
    assert leaks(SECRET, [airflow.directory, artifacts]) == []
    assert command_lines.leaks == set()


@pytest.fixture
def policy(airflow):
    """Set the section ``approval`` of the clusters' file, for this test alone."""
    file = airflow.directory.parent / "clusters.yaml"
    yield lambda text: file.write_text(CLUSTERS + text)
    file.write_text(CLUSTERS)


@pytest.fixture(scope="session")
def api(airflow):
    client = AirflowApi(airflow.url, USER, airflow.password)
    for dag_id in ("kafka_rebalance", "kafka_rebalance_rollback", "kafka_rebalance_adjust", "kafka_rebalance_cancel"):
        client.of(dag_id).wait_for_dag()
    yield client
    client.close()


@pytest.fixture
def api_of(airflow, api):  # which waits for the DAGs
    """The API as another user."""
    clients = []

    def sign_in(user):
        passwords = json.loads((airflow.directory / "passwords.json").read_text())
        clients.append(AirflowApi(airflow.url, user, passwords[user]))
        return clients[-1]

    yield sign_in
    for client in clients:
        client.close()


def wait_for(api, run_id, what, expected=waiting.TRUE, *, pause=0.5):
    """Wait for what Airflow does next with a run, which takes its time on a busy machine."""
    return waiting.wait_for(what, expected, seconds=600, pause=pause, tell=lambda: api.task_states(run_id))


def wait_for_task(api, run_id, task_id, *states):
    """Wait until a task is in one of these states."""
    wait_for(api, run_id, lambda: api.task_states(run_id)[task_id], lambda state: state in states)


def pending_review(airflow, api, run_id, asked=1):
    """The review that waits for an answer, or None; one that asks again has ``asked`` more than once.

    Airflow takes an answer for a failure of the task as long as the scheduler has not seen that it left its worker.
    """
    if review := api.pending_review(run_id):
        left = rf"TaskInstance Finished: .* ti_id={review['task_instance']['id']},"
        return review if len(re.findall(left, airflow.output("scheduler"))) >= asked else None
    return None


def wait_for_review(airflow, api, run_id, asked=1):
    """Wait until a plan waits for its review, for the first time or again; returns the review."""
    return wait_for(api, run_id, lambda: pending_review(airflow, api, run_id, asked))


def answer_review(airflow, api, run_id, option, changed=None):
    """Answer the review of a run until the answer was taken: where Airflow lost one, the task asks again."""

    def answered():
        if pending_review(airflow, api, run_id):
            api.answer_review(run_id, option, changed)
        return api.task_states(run_id)["review_plan"]

    wait_for(api, run_id, answered, lambda state: state in {"success", "skipped", "failed"})


def wait_until_moving(api, run_id):
    """Wait until the sensor waits in the triggerer, and has told how far the run is."""
    wait_for_task(api, run_id, "verify_plan", "deferred")
    wait_for(api, run_id, lambda: api.xcom(run_id, "verify_plan", "progress"))


def wait_for_end(api, run_id):
    """Wait for the end of a run; returns its state."""
    return wait_for(api, run_id, lambda: api.run_state(run_id), lambda state: state in FINISHED)


def run_of(api, run_id, planned_by="snapshot_topology"):
    """The artifacts of a run."""
    return Run(api.xcom(run_id, planned_by)["run"])
