"""DAGs as the scheduler reads them, and a way to run one in this process against the shared cluster."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rebalance_lib.artifacts import PLAN, Artifacts
from rebalance_lib.execution import Run
from tests.intervals import shorten

DAGS = Path(__file__).resolve().parents[2] / "dags"
CLUSTERS = """
clusters:
  first:
    kafka_conn_id: kafka_default
    schedule: "0 20 * * sat"
    quiet_hours: 07:00-20:00 Europe/Berlin
    threshold_bytes: 0.5
  second:
    kafka_conn_id: kafka_default
    schedule: snapshot
    review: automatic
    max_bytes: 1000000
approval:
  default:
    requester_may_approve: true
    automatic: {max_bytes: 1000000}
"""


@pytest.fixture(scope="package", autouse=True)
def clusters_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("clusters") / "clusters.yaml"
    file.write_text(CLUSTERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__KAFKA_REBALANCE__CLUSTERS", str(file))
        yield


@pytest.fixture(scope="package")
def schemas_checked_once():
    """With every task, Airflow checks the schema of every field of the form: that is most of a `dag.test()`."""
    from jsonschema import Draft202012Validator

    check, known = Draft202012Validator.check_schema, set()

    def check_once(schema, **options):
        if (text := json.dumps(schema, sort_keys=True)) not in known:
            check(schema, **options)
            known.add(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", check_once)
        yield


@pytest.fixture(scope="package")
def database(schemas_checked_once):
    """Airflow's database, which knows all DAGs: to tell it of them again takes most of the time of a `dag.test()`."""
    from airflow.dag_processing import dagbag
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.utils.db import initdb

    initdb()
    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    (bundle,) = manager.get_all_dag_bundles()
    bundle.initialize()
    everything = dagbag.BundleDagBag(dag_folder=bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
    dagbag.sync_bag_to_db(everything, bundle.name, bundle.version)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dagbag, "BundleDagBag", lambda **_: None)
        patch.setattr(dagbag, "sync_bag_to_db", lambda *_: None)
        yield


@pytest.fixture(scope="package")
def dagbag(database):
    return read_dags()


def read_dags(folder=DAGS):
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(folder)


def read_dag(dag_id):
    """A DAG of its own: a task that ran keeps what its templates gave. What fails is tried again at once."""
    file = DAGS / f"{dag_id}.py"
    dag = read_dags(file if file.exists() else DAGS).dags[dag_id]
    for task in dag.tasks:
        task.retry_delay = timedelta(0)
    return dag


def sleep(seconds, *, of_time=time.sleep):
    """`dag.test()` sleeps for a second whenever no task can run, for each task behind one that failed."""
    in_dag_test = sys._getframe(1).f_globals["__name__"] == "airflow.sdk.definitions.dag"
    of_time(0.05 if in_dag_test else seconds)


@dataclass
class Ended:
    """A run of a DAG that came to its end."""

    state: str
    states: dict[str, str]
    run: Run
    dag_run: Any


@pytest.fixture
def run_dag(database, kafka, tmp_path, monkeypatch):
    """Run a whole DAG in this process, with the review answered by the option that begins with ``answer``."""
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap_servers}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    monkeypatch.setattr("kafka_rebalance_airflow.cluster_lock.SETTLING_SECONDS", 0.0)  # no other run is there
    monkeypatch.setattr(time, "sleep", sleep)
    shorten(monkeypatch)

    def run(dag_id, answer="Approve", changed=None, **conf):
        from airflow.providers.standard.operators.hitl import HITLOperator
        from airflow.sdk import timezone

        def answered(self, context):
            event = {
                "chosen_options": [next(option for option in self.options if option.startswith(answer))],
                "params_input": changed or {},
                "responded_at": timezone.utcnow(),
                "responded_by_user": {"id": "1", "name": "reviewer"},
            }
            return self.execute_complete(context, event)

        monkeypatch.setattr(HITLOperator, "execute", answered)
        dag = read_dag(dag_id)
        if "check_interval" in dag.params:
            conf = {"check_interval": 1, **conf}
        return told(dag.test(run_conf=conf))

    def told(ended):
        states = {ti.task_id: str(ti.state) for ti in ended.get_task_instances()}
        runs = sorted((tmp_path / ended.dag_id).glob("*"), key=lambda path: path.stat().st_mtime)
        return Ended(str(ended.state), states, Run(runs[-1].as_uri()) if runs else None, ended)

    def again(ended, tasks):
        """Clear some tasks of a run that came to its end, and let it go on."""
        from airflow.models.dagrun import DagRun
        from airflow.models.taskinstance import clear_task_instances

        def cleared(*, dag, session, **_):
            run = session.get(DagRun, ended.dag_run.id)
            chosen = [ti for ti in run.get_task_instances(session=session) if ti.task_id in tasks]
            clear_task_instances(chosen, session, dag_run_state="running")
            run.dag = dag
            session.commit()
            return run

        with monkeypatch.context() as patch:
            patch.setattr("airflow.models.dagrun.get_or_create_dagrun", cleared)
            return told(read_dag(ended.dag_run.dag_id).test())

    run.again = again
    return run


@pytest.fixture
def planned_here(monkeypatch):
    """Plan in this process and without Spark, whose plans are the same: a job takes most of a run's time."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    from kafka_rebalance_airflow.templates import as_list, as_object
    from rebalance_lib.cli.plan_files import read_cluster
    from rebalance_lib.cli.planning import PlanInputs, plan_here
    from rebalance_lib.cli.stages import Stages
    from rebalance_lib.plan.pace import Pace
    from rebalance_lib.planner import Request

    def submit(self, context):
        request, pace = Request.from_dict(as_object(self.request)), Pace.from_dict(as_object(self.pace))
        for uri in as_list(self.run_uris):
            plan_here(PlanInputs(read_cluster(uri), request, pace), Artifacts(uri) / PLAN, Stages(self.log.info))

    monkeypatch.setattr(SparkSubmitOperator, "execute", submit)


@pytest.fixture
def spark_here(planned_here, spark, monkeypatch):
    """Run the Spark job in this process: a JVM of its own for each run takes long to start."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    def submit(self, context):
        job = import_module(f"rebalance_lib.jobs.{Path(self.application).stem}")
        assert job.main(self.application_args) == 0

    monkeypatch.setattr(SparkSubmitOperator, "execute", submit)
