"""The other DAGs from end to end in this process: snapshots, schedules, the fleet, adjust, cancel and rollback."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Kind
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.requests import read_requests
from rebalance_lib.history import clusters
from tests.everywhere import wait_for_replicas

pytestmark = pytest.mark.usefixtures("planned_here")


def test_snapshots_of_all_clusters_go_to_the_history(run_dag, kafka, tmp_path):
    ended = run_dag("kafka_snapshot")
    assert ended.states == {"snapshot_first": "success", "snapshot_second": "success", "tidy": "success"}
    assert clusters(Artifacts((tmp_path / "history").as_uri())) == [kafka.cluster_id]
    for file in (tmp_path / "history").glob("cluster=*/day=*/*.parquet"):
        assert pq.read_table(file, filters=[("leader", "=", True)])["committed"].null_count == 0, "groups were listed"


def test_a_scheduled_dag_plans_by_its_file(run_dag, cluster, topic):
    name = topic("dag-scheduled", [[1, 2]] * 4, size=5000)
    ended = run_dag("kafka_rebalance_scheduled_second", answer="nobody is asked", topics=[name])
    assert ended.state == "success", ended.states
    assert ended.run.artifacts.read_json("audit.json")["approved_by"] == "automatic approval, within its limits"
    assert set(ended.run.status(cluster).by_partition.values()) == {Status.DONE}


@pytest.mark.usefixtures("spark_here")
def test_one_report_tells_of_all_clusters(run_dag, kafka, tmp_path, topic):
    topic("dag-fleet", [[1, 2]] * 4, size=5000)
    ended = run_dag("kafka_fleet_plan")
    assert ended.state == "success", ended.states
    directory = next((tmp_path / "kafka_fleet_plan").iterdir())
    rows = json.loads((directory / "fleet.json").read_text())
    assert sorted((row["name"], row["cluster_id"]) for row in rows) == [
        ("first", kafka.cluster_id),
        ("second", kafka.cluster_id),
    ]
    assert kafka.cluster_id in (directory / "fleet.html").read_text()


@pytest.mark.usefixtures("spark_here")
def test_the_history_is_forecast_and_compacted(run_dag, kafka, tmp_path, topic):
    topic("dag-history", [[1, 2]] * 4, size=5000)
    ended = run_dag("kafka_history")
    assert ended.state == "success", ended.states
    assert set(ended.states.values()) == {"success"}
    (directory,) = (tmp_path / "kafka_history").iterdir()
    forecast = pq.read_table(directory / "capacity.parquet")
    assert set(forecast["cluster"].to_pylist()) == {kafka.cluster_id}
    assert forecast["total_bytes"].null_count == 0, "the snapshots say how large log dirs are"


@pytest.mark.parametrize("job", ["compact_history", "forecast_capacity"])
def test_a_job_of_the_history_that_fails_fails_the_run_and_the_other_runs(job, run_dag, monkeypatch):
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    def submit(self, context):
        assert self.task_id != job

    monkeypatch.setattr(SparkSubmitOperator, "execute", submit)
    ended = run_dag("kafka_history")
    assert ended.state == "failed"
    assert [task for task, state in ended.states.items() if state != "success"] == [job]


def test_a_run_is_undone_by_its_id(run_dag, cluster, topic):
    name = topic("dag-undone", [[1, 2], [2, 1]], size=5000)
    done = run_dag("kafka_rebalance", mode="kafka", topics=[name], allowed_brokers=[3, 4])
    assert done.state == "success"
    run_id = done.dag_run.run_id
    undone = run_dag("kafka_rebalance_rollback", run_id=run_id)
    assert undone.state == "success", undone.states
    wait_for_replicas(cluster, name, {0: (1, 2), 1: (2, 1)})
    ended = run_dag("kafka_rebalance_cancel", run_id=run_id)
    assert ended.state == "success", ended.states
    missing = run_dag("kafka_rebalance_cancel", run_id="manual__nothing")
    assert (missing.state, missing.states["ask_to_cancel"]) == ("failed", "failed")


def test_a_run_that_has_not_ended_is_adjusted_by_its_id(run_dag, topic, monkeypatch):
    from kafka_rebalance_airflow.operators.cancellation import OfRunOperator

    name = topic("dag-adjusted", [[1, 2]], size=5000)
    done = run_dag("kafka_rebalance", mode="kafka", topics=[name], allowed_brokers=[3, 4])
    run_id, artifacts = done.dag_run.run_id, done.run.artifacts
    refused = run_dag("kafka_rebalance_adjust", run_id=run_id, action="pause")
    assert (refused.state, read_requests(artifacts)) == ("failed", [])
    monkeypatch.setattr(OfRunOperator, "is_active", lambda *_: True)
    for conf in ({"action": "pause"}, {"throttle": 7_000_000, "exclude_topics": ["logs-*"]}, {"action": "resume"}):
        adjusted = run_dag("kafka_rebalance_adjust", run_id=run_id, **conf)
        assert adjusted.state == "success", adjusted.states
    asked = [(request.kind, request.value) for request in read_requests(artifacts)]
    assert asked == [
        (Kind.PAUSE, None),
        (Kind.EXCLUDE_TOPICS, ["logs-*"]),
        (Kind.THROTTLE, 7_000_000),
        (Kind.RESUME, None),
    ]
    assert run_dag("kafka_rebalance_adjust", run_id=run_id, throttle=0).state == "failed"
