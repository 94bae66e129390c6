"""Which notifications are sent: real notifiers, configured by the Variable."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import BaseNotifier
from airflow.sdk.execution_time.xcom import XCom

from kafka_rebalance_airflow import cluster_lock, notifications
from kafka_rebalance_airflow.factories import rebalance_dag, rollback_dag, snapshot_dag
from kafka_rebalance_airflow.notifications import EVENTS, VARIABLE, notify
from kafka_rebalance_airflow.operators.execution import ExecutePlanOperator, FinalizeOperator
from kafka_rebalance_airflow.operators.review import ReviewPlanOperator
from kafka_rebalance_airflow.sensors.reassignment import VerifyPlanSensor
from kafka_rebalance_airflow.triggers import reassignment
from rebalance_lib.cluster import take_snapshot
from rebalance_lib.execution import Run
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.plan import Plan
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import TopicPartition
from tests.waiting import wait_for

told = []


class Notebook(BaseNotifier):
    """Writes down what it is told."""

    template_fields = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context):
        told.append((context["kafka_rebalance"]["event"], self.text))


class Broken(BaseNotifier):
    """Reaches nobody, and says with what."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address

    def notify(self, context):
        raise ConnectionError(f"{self.address} does not answer")


@pytest.fixture(autouse=True)
def configured(monkeypatch):
    told.clear()

    def configure(*entries):
        monkeypatch.setenv(f"AIRFLOW_VAR_{VARIABLE.upper()}", json.dumps(list(entries)))

    return configure


NOTEBOOK = {
    "notifier": f"{__name__}.Notebook",
    "with": {"text": "{{ kafka_rebalance.text }} ({{ kafka_rebalance.run_id }})"},
}


def test_all_events_reach_a_notifier_with_its_templates_rendered(configured):
    configured(NOTEBOOK)
    for event in EVENTS:
        notify(event, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert told == [(event, "look (manual__1)") for event in EVENTS]


def test_a_notifier_is_told_of_its_events_alone(configured):
    configured({**NOTEBOOK, "on": ["failed"]})
    for event in EVENTS:
        notify(event, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert [event for event, _ in told] == ["failed"]


@pytest.mark.parametrize("entry", [{"notifier": "os.system"}, {"notifier": "no.such.Thing"}, {}, "x"])
def test_what_is_no_notifier_is_logged_and_fails_nothing(configured, entry, caplog):
    configured(entry)
    notify(notifications.FAILED, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert f"check the Variable {VARIABLE}" in caplog.text


def test_what_a_notifier_is_made_with_is_not_logged_when_it_fails(configured, caplog):
    secret = "https://hooks.example/planted-secret"  # noqa: S105
    configured(
        {"notifier": f"{__name__}.Broken", "with": {"address": secret}}, {"notifier": "os.system", "with": secret}
    )
    notify(notifications.FAILED, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert f"{__name__}.Broken did not send 'failed' (ConnectionError)" in caplog.text
    assert "planted" not in caplog.text


CONTEXT = {
    "dag": SimpleNamespace(dag_id="kafka_rebalance"),
    "dag_run": SimpleNamespace(start_date=datetime.now(UTC)),
    "run_id": "manual__1",
    "ti": SimpleNamespace(get_dr_count=lambda **_: 0, get_task_states=lambda **_: {"manual__1": {}}),
}


@pytest.fixture
def root(tmp_path, monkeypatch, kafka):
    """Where runs keep their artifacts; the connection ``k`` leads to the cluster, and nobody answers reviews."""
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    monkeypatch.setattr(cluster_lock, "SETTLING_SECONDS", 0.0)
    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    return tmp_path


def test_the_steps_of_a_run_tell_of_its_review_its_begin_and_its_end(root, cluster, topic, configured):
    configured(NOTEBOOK)
    goal = {TopicPartition(topic("notifications", [[1]]), 0): [2]}
    run, snapshot = Run((root / "run").as_uri()), take_snapshot(cluster)
    run.write_snapshot(snapshot)
    publish_plan(run.artifacts / "plan", Plan.from_assignment(goal), snapshot)
    of_run = {"kafka_conn_id": "k", "run_uri": run.uri}
    ReviewPlanOperator(task_id="review_plan", subject="Approve?", settings={}, **of_run).execute(CONTEXT)
    step = {**of_run, "approved_digest": run.plan().digest, "settings": {}}
    ExecutePlanOperator(task_id="execute_plan", **step).execute(CONTEXT)
    wait_for(lambda: set(run.status(cluster).by_partition.values()), {Status.DONE})
    VerifyPlanSensor(task_id="verify_plan", **step).execute(CONTEXT)
    FinalizeOperator(task_id="finalize", **of_run).execute(CONTEXT)
    assert [event for event, _ in told] == ["review", "started", "finished"]
    assert told[1][1].startswith("a rebalance of k has begun: ")
    assert told[2][1] == "the rebalance of k is done: 1 of 1 partitions are where the plan says. (manual__1)"


@pytest.fixture
def reported(tmp_path, monkeypatch, configured):
    """What the notifiers get while a trigger passes on these events of its executor, and what it ends with."""
    configured(NOTEBOOK)
    monkeypatch.setattr(XCom, "set", lambda **_: None)
    trigger = reassignment.PlanTrigger(
        kafka_conn_id="k", run_uri=tmp_path.as_uri(), approved_digest="d", interval=1, settings={}
    )
    trigger.task_instance = SimpleNamespace(
        dag_id="kafka_rebalance", run_id="manual__1", task_id="verify_plan", map_index=-1
    )

    def reported(*events):
        def execute_plan(report, stop):
            for event in (*events, {"status": "completed"}):
                report({"text": "...", **event})

        async def ended():
            return [event.payload["status"] async for event in trigger.run()]

        monkeypatch.setattr(trigger, "_execute_plan", execute_plan)
        assert asyncio.run(ended()) == ["completed"]
        return told

    return reported


def test_moves_that_stall_for_long_are_notified_of_once(monkeypatch, reported):
    monkeypatch.setattr(reassignment, "LASTING_SECONDS", 0.0)
    stalled = {"status": "moving", "stalls": ["foo-0 to broker 3"]}
    assert reported(stalled, stalled) == [
        ("stalled", "moves on k have stalled: foo-0 to broker 3 (manual__1)"),
    ]


def test_a_run_that_is_held_back_for_long_is_notified_of_once_until_moves_begin_again(monkeypatch, reported):
    monkeypatch.setattr(reassignment, "LASTING_HOLD_SECONDS", 0.0)
    held = {"status": "held", "holds": ["the window 22:00-06:00 UTC is closed"]}
    other = {"status": "held", "holds": ["reassignments of somebody else are under way: foo-1"]}
    begun = {"status": "moving", "holds": []}
    said = "the rebalance of k has been held back for 0 min:"
    assert reported(held, other, begun, other, other) == [
        ("held", f"{said} the window 22:00-06:00 UTC is closed (manual__1)"),
        ("held", f"{said} reassignments of somebody else are under way: foo-1 (manual__1)"),
    ]


def test_a_run_that_is_held_back_for_a_moment_is_no_notification(reported):
    assert reported({"status": "held", "holds": ["x"]}, {"status": "moving", "stalls": ["y"]}) == []


@pytest.mark.parametrize("make", [rebalance_dag, rollback_dag, snapshot_dag])
def test_a_dag_that_fails_tells_why(configured, make):
    configured(NOTEBOOK)
    make().on_failure_callback({**CONTEXT, "reason": "task_failure"})
    assert told == [("failed", "the run manual__1 of kafka_rebalance failed: task_failure (manual__1)")]
