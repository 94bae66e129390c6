"""The DAG, as a scheduler sees it and from end to end on a real cluster with a real spark-submit."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_lib.execution import Run
from rebalance_lib.execution.throttle import REPLICA_LISTS, SAVED
from rebalance_lib.topology import TopicPartition

DAGS = Path(__file__).resolve().parents[2] / "dags"
TASKS = [
    "snapshot_topology",
    "compute_placement",
    "review_plan",
    "arm",
    "apply_throttle",
    "execute_plan",
    "verify_plan",
    "remove_throttle",
    "finalize",
]


@pytest.fixture(scope="session")
def dagbag():
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    return DagBag(DAGS)


@pytest.fixture
def dag(dagbag):
    return dagbag.dags["kafka_rebalance"]


@pytest.fixture
def rebalance(dag, kafka, tmp_path, monkeypatch):
    """Run the whole DAG in this process, with the review approved; returns state, states and artifacts."""

    def run(**conf):
        from airflow.providers.standard.operators.hitl import HITLOperator
        from airflow.sdk import timezone

        def answered(self, context):
            event = {
                "chosen_options": ["Approve"],
                "params_input": {},
                "responded_at": timezone.utcnow(),
                "responded_by_user": {"id": "1", "name": "reviewer"},
            }
            return self.execute_complete(context, event)

        monkeypatch.setattr(HITLOperator, "execute", answered)
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap_servers}}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
        monkeypatch.setenv("AIRFLOW_VAR_KAFKA_REBALANCE_ARTIFACTS", tmp_path.as_uri())
        ended = dag.test(run_conf={"check_interval": 1, **conf})
        states = {ti.task_id: str(ti.state) for ti in ended.get_task_instances()}
        artifacts = next(iter((tmp_path / "kafka_rebalance").iterdir()))
        return str(ended.state), states, Run(artifacts.as_uri())

    return run


def test_it_imports_without_error_or_warning(dagbag):
    assert dagbag.import_errors == {}
    assert dagbag.captured_warnings == {}
    assert list(dagbag.dags) == ["kafka_rebalance"]


def test_it_has_exactly_these_tasks_in_this_order(dag):
    assert [task.task_id for task in dag.topological_sort()] == TASKS
    for earlier, later in itertools.pairwise(TASKS):
        assert later in dag.get_task(earlier).downstream_task_ids


def test_the_clean_up_runs_whatever_happened_once_the_run_is_armed(dag):
    assert [t.task_id for t in dag.tasks if t.is_setup] == ["arm"]
    assert [t.task_id for t in dag.topological_sort() if t.is_teardown] == ["remove_throttle", "finalize"]
    assert dag.get_task("finalize").on_failure_fail_dagrun
    assert dag.dagrun_timeout is None


def test_the_steps_that_wait_have_retries_that_cost_nothing(dag):
    assert dag.get_task("review_plan").retries == 2
    assert dag.get_task("verify_plan").retries == 3
    assert dag.max_active_runs == 1


def test_parsing_imports_neither_spark_nor_kafka():
    script = (
        "import runpy, sys; runpy.run_path(sys.argv[1]);"
        "print([m for m in ('kafka', 'pyspark', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(DAGS / "kafka_rebalance.py")], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines()[-1] == "[]"


def test_an_approved_plan_is_carried_out(rebalance, cluster, topic):
    name = topic("dag-approved", [[1, 2], [2, 1], [1, 2], [2, 1]], size=100_000)
    state, states, run = rebalance(topics=[name], brokers=[2, 3, 4], throttle=10_000_000)
    assert state == "success"
    assert states == dict.fromkeys(TASKS, "success")
    plan = run.plan().as_dict()
    live = {tp: partition.replicas for tp, partition in cluster.partitions([name]).items()}
    assert live == {**{TopicPartition(name, p): live[TopicPartition(name, p)] for p in range(4)}, **plan}
    assert {broker for replicas in live.values() for broker in replicas} <= {2, 3, 4}
    assert cluster.topic_config(name, REPLICA_LISTS) == {}
    assert "reviewer" in run.artifacts.read_text("report.html")
    assert run.artifacts.read_json(SAVED)["brokers"] == {}


def test_a_failing_execution_fails_the_run_and_leaves_no_throttle(rebalance, cluster, topic, monkeypatch):
    from rebalance_lib import execution

    def refuse(*_):
        raise RuntimeError("execute failed on purpose")

    name = topic("dag-failing", [[1, 2]], size=50_000)
    monkeypatch.setattr(execution, "submit", refuse)
    state, states, run = rebalance(topics=[name], brokers=[3, 4])
    assert state == "failed"
    assert (states["execute_plan"], states["verify_plan"]) == ("failed", "upstream_failed")
    assert (states["remove_throttle"], states["finalize"]) == ("success", "failed")
    assert cluster.topic_config(name, REPLICA_LISTS) == {}
    assert "Failed steps: execute_plan, verify_plan" in run.artifacts.read_text("report.html")
