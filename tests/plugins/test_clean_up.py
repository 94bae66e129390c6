"""Runs that end before their time: what they began is undone, and what others do is left alone."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from kafka_rebalance_airflow import cluster_lock, run_lock
from kafka_rebalance_airflow.cluster_lock import ClusterLock
from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.operators.cancellation import AskToCancelOperator, CleanUpOperator
from kafka_rebalance_airflow.operators.execution import (
    ArmOperator,
    ExecutePlanOperator,
    FinalizeOperator,
    RemoveThrottleOperator,
)
from kafka_rebalance_airflow.operators.plan import ComputePlacementOperator, SnapshotTopologyOperator, begin_run
from kafka_rebalance_airflow.operators.recording import RecordSnapshotOperator
from kafka_rebalance_airflow.operators.review import ReviewPlanOperator
from kafka_rebalance_airflow.sensors.cluster_lock import ClusterLockSensor
from kafka_rebalance_airflow.sensors.reassignment import VerifyPlanSensor
from kafka_rebalance_airflow.triggers.reassignment import PlanTrigger
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import take_snapshot
from rebalance_lib.execution import Kind, Run, make_request
from rebalance_lib.execution.requests import read_requests
from rebalance_lib.execution.throttles.config import RATES, REPLICA_LISTS
from rebalance_lib.execution.throttles.saved import BACKUP, DAMAGED, SAVED, stale_throttles
from rebalance_lib.file_lock import InUseError
from rebalance_lib.plan import Plan
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_lists, wait_for_replicas
from tests.waiting import wait_for

DAG = "kafka_rebalance"
SLOW = {"throttle": "1000"}


class Airflow:
    """What tasks ask Airflow: which runs are active, and where tasks of runs stand."""

    def __init__(self):
        self.active = set()
        self.ended = set()
        self.states = {}

    def get_dr_count(self, dag_id, run_ids, states=None):
        return len({(dag_id, run_ids[0])} & (self.active if states else self.active | self.ended))

    def get_task_states(self, dag_id, run_ids, task_ids=None):
        return {run_ids[0]: self.states}

    def context(self, run_id, dag_id=DAG):
        self.active.add((dag_id, run_id))
        dag_run = SimpleNamespace(start_date=datetime.now(UTC), triggering_user_name="ada")
        return {"dag": SimpleNamespace(dag_id=dag_id), "run_id": run_id, "dag_run": dag_run, "ti": self}


@pytest.fixture
def airflow(tmp_path, monkeypatch, kafka):
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    monkeypatch.setattr(cluster_lock, "SETTLING_SECONDS", 0.0)
    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    monkeypatch.setattr(SparkSubmitOperator, "execute", lambda *_: None)
    return Airflow()


def planned(context, cluster, assignment):
    """A run with a plan that waits for its review."""
    run = begin_run(context, "k")
    snapshot = take_snapshot(cluster)
    run.write_snapshot(snapshot)
    publish_plan(run.artifacts / "plan", Plan.from_assignment(assignment), snapshot)
    return run


def approved(run, settings):
    plan = {"candidate": "given", "digest": run.plan().digest, "cluster_id": run.snapshot().cluster_id}
    run.artifacts.write_json("review.json", {**plan, "settings": settings, "chosen_options": []})
    return {"kafka_conn_id": "k", "run_uri": run.uri}


def moving(context, cluster, assignment, settings):
    """A run whose moves are under way."""
    run = planned(context, cluster, assignment)
    step = approved(run, settings)
    ExecutePlanOperator(task_id="execute_plan", approved_digest=run.plan().digest, settings=settings, **step).execute(
        context
    )
    assert cluster.reassignments()
    return run, step


@pytest.fixture
def slow(cluster, kafka):
    """A topic's moves take long, though no run throttles them."""
    made = []

    def throttle(name):
        made.append(name)
        cluster.alter_topic_config(name, dict.fromkeys(REPLICA_LISTS, "*"))
        for broker in kafka.broker_ids:
            cluster.alter_broker_config(broker, dict.fromkeys(RATES, "1000"))

    yield throttle
    if made:
        for broker in kafka.broker_ids:
            cluster.alter_broker_config(broker, dict.fromkeys(RATES))


def clean_up(airflow, run_id):
    step = CleanUpOperator(task_id="clean_up", of_dag_id=DAG, of_run_id=run_id)
    return step.execute(airflow.context("cancels", "kafka_rebalance_cancel"))


@pytest.mark.parametrize("answer", [None, {"candidate": None, "chosen_options": ["Reject"]}])
def test_a_run_that_was_never_approved_cancels_nothing(airflow, cluster, topic, answer):
    name = topic("clean-up-unapproved", [[1]], size=3_000_000)
    goal = {TopicPartition(name, 0): [2]}
    unapproved = planned(airflow.context("unapproved"), cluster, goal)
    if answer:
        unapproved.artifacts.write_json("review.json", answer)
    _, step = moving(airflow.context("moves"), cluster, goal, SLOW)
    airflow.active.discard((DAG, "moves"))  # no cluster lock holds, and still it is not its own
    remove = RemoveThrottleOperator(task_id="remove_throttle", kafka_conn_id="k", run_uri=unapproved.uri)
    assert remove.execute(airflow.context("unapproved")) == {"topics": 0, "brokers": []}
    assert clean_up(airflow, "unapproved") == {"topics": 0, "brokers": []}
    assert cluster.reassignments()
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute(airflow.context("moves"))
    assert cluster.reassignments() == {}


def test_a_clean_up_takes_the_connection_that_the_run_began_with(airflow, cluster, topic):
    name = topic("clean-up-connection", [[1]], size=3_000_000)
    context = airflow.context("one")
    run, _ = moving(context, cluster, {TopicPartition(name, 0): [2]}, SLOW)
    assert RemoveThrottleOperator(task_id="remove_throttle", run_uri=run.uri).execute(context)["topics"] == 1
    assert cluster.reassignments() == {}
    airflow.states["verify_plan"] = "failed"
    with pytest.raises(AirflowFailException, match="failed: verify_plan"):
        FinalizeOperator(task_id="finalize", run_uri=run.uri).execute(context)


def test_moves_of_another_run_to_the_same_brokers_are_left_alone(airflow, cluster, topic):
    name, other = topic("clean-up-same", [[1]], size=3_000_000), topic("clean-up-left", [[1]])
    goal = {TopicPartition(name, 0): [2]}
    dead = planned(airflow.context("dead"), cluster, goal)
    step = approved(dead, SLOW)
    cluster.alter_topic_config(other, {REPLICA_LISTS[0]: "0:1"})
    saved = {"topics": {other: {REPLICA_LISTS[0]: {"before": None, "added": ["0:1"]}}}, "brokers": {}}
    dead.artifacts.write_json("throttles.json", {"cluster_id": cluster.cluster_id(), **saved})
    _, alive = moving(airflow.context("alive"), cluster, goal, SLOW)
    refused = "the run alive of kafka_rebalance holds the cluster lock, so that no move is cancelled"
    with pytest.raises(AirflowFailException, match=refused):
        RemoveThrottleOperator(task_id="remove_throttle", **step).execute(airflow.context("dead"))
    wait_for_lists(cluster, other, {})  # what it had left is restored
    assert stale_throttles(dead.artifacts) == []
    with pytest.raises(AirflowFailException, match=refused):
        clean_up(airflow, "dead")
    assert cluster.reassignments()
    assert clean_up(airflow, "alive")["topics"] == 1, "the run that holds the lock can be ended itself"
    assert cluster.reassignments() == {}
    RemoveThrottleOperator(task_id="remove_throttle", **alive).execute(airflow.context("alive"))


@pytest.mark.parametrize("cleared", ["snapshot_topology", "compute_placement", "review_plan"])
def test_moves_without_a_throttle_are_wound_up_before_another_plan(airflow, cluster, topic, slow, cleared):
    name = topic(f"clean-up-{cleared}", [[1]], size=3_000_000)
    slow(name)
    context = airflow.context("one")
    run, step = moving(context, cluster, {TopicPartition(name, 0): [2]}, {})
    assert stale_throttles(run.artifacts) == []
    again = {
        "snapshot_topology": lambda: SnapshotTopologyOperator(task_id=cleared, kafka_conn_id="k"),
        "compute_placement": lambda: ComputePlacementOperator(task_id=cleared, run_uris=run.uri, request={}),
        "review_plan": lambda: ReviewPlanOperator(task_id=cleared, subject="?", settings={}, **step),
    }
    again[cleared]().execute(context)
    assert cluster.reassignments() == {}
    wait_for_replicas(cluster, name, {0: (1,)})


def ask(airflow, run_id):
    step = AskToCancelOperator(task_id="ask_to_cancel", of_dag_id=DAG, of_run_id=run_id)
    return step.execute(airflow.context("cancels", "kafka_rebalance_cancel"))


def test_a_run_that_waits_for_its_turn_can_be_cancelled(airflow, cluster):
    first, second = airflow.context("one"), airflow.context("two")
    assert ClusterLock(cluster.cluster_id(), first).take() is None
    sensor = ClusterLockSensor(task_id="claim_cluster", kafka_conn_id="k")
    assert not sensor.poke(second)
    assert ask(airflow, "two") == run_uri(DAG, "two")
    with pytest.raises(AirflowFailException, match="cancel requested by ada"):
        sensor.poke(second)
    assert clean_up(airflow, "two") == {"topics": 0, "brokers": []}


@pytest.mark.parametrize("state", ["running", "queued", "up_for_retry"])
def test_a_run_is_not_cleaned_up_while_a_step_of_it_is_at_work(airflow, state):
    airflow.active.add((DAG, "one"))
    ask(airflow, "one")
    airflow.states["verify_plan"] = state
    with pytest.raises(RuntimeError, match=f"still at work .verify_plan is {state}.*tried again"):
        clean_up(airflow, "one")
    airflow.states["verify_plan"] = "failed"
    assert clean_up(airflow, "one") == {"topics": 0, "brokers": []}


def test_a_run_that_a_dead_triggerer_left_deferred_is_cleaned_up_where_the_lock_of_the_run_tells(airflow, monkeypatch):
    airflow.active.add((DAG, "one"))
    ask(airflow, "one")
    airflow.states["verify_plan"] = "deferred"
    assert clean_up(airflow, "one") == {"topics": 0, "brokers": []}
    monkeypatch.setattr(Artifacts, "is_local", False)
    with pytest.raises(RuntimeError, match=r"verify_plan is deferred.*mark it failed there"):
        clean_up(airflow, "one")


def test_a_run_that_nobody_knows_cannot_be_cancelled(airflow):
    for step in (ask, clean_up):
        with pytest.raises(AirflowFailException, match="no run 'nothing' of 'kafka_rebalance' has left anything"):
            step(airflow, "nothing")
    assert not Artifacts(run_uri(DAG, "nothing")).files()


def test_a_run_of_a_dag_that_rebalances_nothing_cannot_be_cancelled(airflow, tmp_path):
    airflow.active.add((DAG, "one"))
    airflow.states["tidy"] = "running"
    with pytest.raises(AirflowFailException, match="the run one of kafka_rebalance is no rebalance"):
        ask(airflow, "one")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_cancelled_while_it_waits_for_its_review_must_be_rejected(airflow, cluster, topic):
    name = topic("clean-up-review", [[1]])
    context = airflow.context("one")
    run = planned(context, cluster, {TopicPartition(name, 0): [2]})
    airflow.states |= {"review_plan": "awaiting_input", "verify_plan": "None"}
    ask(airflow, "one")
    with pytest.raises(AirflowFailException, match=r"still waits for its review.*reject it there"):
        clean_up(airflow, "one")
    airflow.states["review_plan"] = "failed"
    assert clean_up(airflow, "one") == {"topics": 0, "brokers": []}
    assert not Run(run.uri).has_begun()


def test_a_cancel_of_an_approved_run_that_has_yet_to_begin_is_not_lost_by_its_clean_up(airflow, cluster, topic):
    name = topic("clean-up-early", [[1]])
    context = airflow.context("one")
    run = planned(context, cluster, {TopicPartition(name, 0): [2]})
    step = approved(run, {})
    ask(airflow, "one")
    clean_up(airflow, "one")
    arm = ArmOperator(task_id="arm", approved_digest=run.plan().digest, **step)
    with pytest.raises(AirflowFailException, match="cancel requested by ada"):
        arm.execute(context)
    arm.execute(airflow.context("one"))  # cleared, it has another start
    assert read_requests(run.artifacts) == []


def test_a_run_that_was_cancelled_and_cleaned_up_goes_on_after_it_was_cleared(airflow, cluster, topic):
    name = topic("clean-up-again", [[1]], size=3_000_000)
    context = airflow.context("one")
    run, step = moving(context, cluster, {TopicPartition(name, 0): [2]}, SLOW)
    executes = {**step, "approved_digest": run.plan().digest}
    ask(airflow, "one")
    with pytest.raises(AirflowFailException, match=r"the run was cancelled: .*cancel requested by ada"):
        VerifyPlanSensor(task_id="verify_plan", settings=SLOW, **executes).execute(context)
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute(context)
    assert cluster.reassignments() == {}
    again = airflow.context("one")  # finalize did not run
    ArmOperator(task_id="arm", **executes).execute(again)
    execute = ExecutePlanOperator(task_id="execute_plan", settings=SLOW, **executes)
    assert execute.execute(again)["state"] == "moving"
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute(again)


def test_a_cancel_of_a_run_that_has_ended_does_not_cancel_its_next_start(airflow):
    airflow.ended.add((DAG, "one"))
    ask(airflow, "one")
    clean_up(airflow, "one")
    assert read_requests(Artifacts(run_uri(DAG, "one"))) == []


def logged_errors(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if "[error " in line]


@pytest.mark.parametrize("damaged", ["", "{", "{}", "null"])
def test_damaged_throttles_of_a_dead_run_stop_no_snapshot_and_are_logged(airflow, tmp_path, capsys, damaged):
    dead = tmp_path / DAG / "dead"
    dead.mkdir(parents=True)
    for name in (SAVED, BACKUP):
        (dead / name).write_text(damaged)
    record = RecordSnapshotOperator(task_id="snapshot", kafka_conn_id="k")
    assert record.execute(airflow.context("one", "kafka_snapshot"))["replicas"] >= 0
    errors = logged_errors(capsys)
    assert len(errors) == 1
    assert f"throttles that the dead run {dead.as_uri()} left: " in errors[0]
    assert "damaged" in errors[0]
    assert (dead / DAMAGED).read_text() == damaged
    snapshot = SnapshotTopologyOperator(task_id="snapshot_topology", kafka_conn_id="k")
    assert snapshot.execute(airflow.context("one"))["brokers"] == 4
    assert logged_errors(capsys) == [], "once is enough"


def test_a_plan_that_another_process_executes_is_neither_executed_nor_cleaned_up(airflow, cluster, topic, monkeypatch):
    monkeypatch.setattr(run_lock, "LOCK_SECONDS", 0.2)
    name = topic("clean-up-locked", [[1]], size=3_000_000)
    context = airflow.context("one")
    run, step = moving(context, cluster, {TopicPartition(name, 0): [2]}, SLOW)
    executes = {**step, "approved_digest": run.plan().digest, "settings": SLOW}
    tasks = [
        ExecutePlanOperator(task_id="execute_plan", **executes),
        VerifyPlanSensor(task_id="verify_plan", **executes),
        RemoveThrottleOperator(task_id="remove_throttle", **step),
    ]
    reports = []
    with run.artifacts.locked(make=True):
        for task in tasks:
            with pytest.raises(InUseError, match=r"another process still executes the plan .* tried again"):
                task.execute(context)
        PlanTrigger(interval=1, **executes)._execute_plan(reports.append, threading.Event())
        assert reports[0]["status"] == "lost"
        assert "another process still executes the plan" in reports[0]["message"]
        assert cluster.reassignments()
    tasks[-1].execute(context)
    assert cluster.reassignments() == {}


def test_a_triggerer_does_not_go_on_with_a_run_that_was_cleaned_up_meanwhile(airflow, cluster, topic):
    name = topic("clean-up-before", [[1]], size=3_000_000)
    context = airflow.context("one")
    run, step = moving(context, cluster, {TopicPartition(name, 0): [2]}, SLOW)
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute(context)
    trigger = PlanTrigger(interval=1, approved_digest=run.plan().digest, settings=SLOW, **step)
    reports = []
    trigger._execute_plan(reports.append, threading.Event())
    assert [report["status"] for report in reports] == ["cancelled"]
    assert cluster.reassignments() == {}


def test_partitions_that_were_set_aside_fail_the_run_with_the_reason_and_what_to_do(airflow, cluster, topic):
    name, other = topic("clean-up-aside", [[1]]), topic("clean-up-moved", [[1]])
    context = airflow.context("one")
    goal = {TopicPartition(name, 0): [2], TopicPartition(other, 0): [2]}
    run = planned(context, cluster, goal)
    step = approved(run, {})
    make_request(run.artifacts, Kind.EXCLUDE_TOPICS, [name], by="ada")
    executes = {**step, "approved_digest": run.plan().digest, "settings": {}}
    ExecutePlanOperator(task_id="execute_plan", **executes).execute(context)
    wait_for_replicas(cluster, other, {0: (2,)})
    verify = VerifyPlanSensor(task_id="verify_plan", **executes)
    refused = rf"1 partitions were set aside \({name}-0: exclude_topics .* requested by ada .*clear execute_plan"
    with pytest.raises(AirflowFailException, match=refused):
        wait_for(lambda: ended(verify, context))
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute(context)
    with pytest.raises(AirflowFailException, match=rf"Set aside: {name}-0: exclude_topics"):
        FinalizeOperator(task_id="finalize", **step).execute(context)
    wait_for_replicas(cluster, name, {0: (1,)})
    ExecutePlanOperator(task_id="execute_plan", **executes).execute(context)  # cleared, it goes on with them
    wait_for_replicas(cluster, name, {0: (2,)})
    assert wait_for(lambda: ended(verify, context))["status"] == "completed"
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute(context)


def ended(sensor, context):
    """What the sensor ends with; None while it would go on in the triggerer."""
    try:
        return sensor.execute(context)
    except TaskDeferred:
        return None


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "inf"])
def test_an_interval_that_is_none_is_refused(interval):
    step = {"kafka_conn_id": "k", "run_uri": "file:///nothing", "approved_digest": "d", "settings": {}}
    with pytest.raises(AirflowFailException, match=r"interval is .* seconds: give 0.1 to"):
        VerifyPlanSensor(task_id="verify_plan", interval=interval, **step).execute({})
