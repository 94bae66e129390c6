"""What the operators do without a cluster."""

from __future__ import annotations

import json
import time

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.operators.execution import ExecutePlanOperator, RemoveThrottleOperator
from kafka_rebalance_airflow.operators.plan import ReviewPlanOperator, run_uri
from kafka_rebalance_airflow.triggers.reassignment import PlanReachedTrigger
from rebalance_lib.cluster import take_snapshot
from rebalance_lib.execution import Run
from rebalance_lib.execution.throttle import LEADER_REPLICAS, RATES, REPLICA_LISTS
from rebalance_lib.plan import Plan
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import TopicPartition
from tests.topology.test_snapshot import ORDERS


def test_a_plan_with_nothing_to_do_needs_no_review(tmp_path):
    publish_plan(Run(tmp_path.as_uri()).artifacts / "plan", Plan.from_assignment({}), ORDERS)
    review = ReviewPlanOperator(task_id="review_plan", subject="?", kafka_conn_id="k", run_uri=tmp_path.as_uri())
    with pytest.raises(AirflowSkipException, match="nothing to move"):
        review.execute({})


def test_a_plan_that_is_not_the_one_of_the_review_text_is_not_shown(tmp_path):
    plan = Run(tmp_path.as_uri()).artifacts / "plan"
    publish_plan(plan, Plan.from_assignment({TopicPartition("orders", 0): [1, 2]}), ORDERS)
    plan.write_text("plan.json", plan.read_text("plan.json").replace("[1,2]", "[2,1,3]"))
    review = ReviewPlanOperator(task_id="review_plan", subject="?", kafka_conn_id="k", run_uri=tmp_path.as_uri())
    with pytest.raises(AirflowFailException, match="the review text is not that of sha256:"):
        review.execute({})


def test_execution_cleared_on_its_own_puts_the_throttle_on_again(tmp_path, monkeypatch, kafka, cluster, topic):
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    name = topic("operator-execute", [[1]], size=2_000_000)
    run, snapshot = Run(tmp_path.as_uri()), take_snapshot(cluster)
    run.write_snapshot(snapshot)
    publish_plan(run.artifacts / "plan", Plan.from_assignment({TopicPartition(name, 0): [2]}), snapshot)
    step = {"kafka_conn_id": "k", "run_uri": run.uri, "approved_digest": run.plan().digest}
    execute = ExecutePlanOperator(task_id="execute_plan", rate="100000", **step)
    assert execute.execute({})["submitted"] == 1
    assert cluster.topic_config(name, REPLICA_LISTS)[LEADER_REPLICAS].value == "0:1"
    assert cluster.broker_config(2, RATES)[RATES[0]].value == "100000"
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute({})
    assert cluster.topic_config(name, REPLICA_LISTS) == {}
    while cluster.reassignments():
        time.sleep(0.2)


def test_run_ids_that_differ_have_places_that_differ():
    first, second = (run_uri("file:///a/", "dag", run_id) for run_id in ("manual__1:2+3", "manual__1_2_3"))
    assert first.startswith("file:///a/dag/manual__1_2_3-")
    assert first != second


@pytest.mark.parametrize(
    ("connection", "settings"),
    [
        (
            '{"conn_type": "kafka", "extra": {"bootstrap.servers": "a:1, b:2", "security.protocol": "SSL"}}',
            {"bootstrap_servers": ["a:1", "b:2"], "security_protocol": "SSL"},
        ),
        (
            """{"conn_type": "kafka", "host": "a,b:1", "port": 9092, "login": "me", "password": "secret",
                "extra": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}}""",
            {
                "bootstrap_servers": ["a:9092", "b:1"],
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": "me",
                "sasl_plain_password": "secret",
            },
        ),
    ],
)
def test_connections_of_both_shapes_are_read(monkeypatch, connection, settings):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", connection)
    assert KafkaAdminHook("kafka_test").settings() == settings


def test_a_connection_without_servers_is_refused(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", '{"conn_type": "kafka"}')
    with pytest.raises(ValueError, match="names no Kafka servers"):
        KafkaAdminHook("kafka_test").settings()


def test_a_login_that_would_not_be_used_is_refused(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", '{"conn_type": "kafka", "host": "a", "login": "me"}')
    with pytest.raises(ValueError, match="only SASL uses"):
        KafkaAdminHook("kafka_test").settings()


def test_the_connection_test_tells_what_is_there(monkeypatch, kafka):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    assert KafkaAdminHook("kafka_test").test_connection() == (True, f"cluster {kafka.cluster_id} with 4 brokers")


def test_the_trigger_carries_no_secret(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", '{"conn_type": "kafka", "host": "a", "password": "planted"}')
    path, arguments = PlanReachedTrigger(kafka_conn_id="kafka_test", run_uri="file:///r", interval=1).serialize()
    assert path == "kafka_rebalance_airflow.triggers.reassignment.PlanReachedTrigger"
    assert arguments == {"kafka_conn_id": "kafka_test", "run_uri": "file:///r", "interval": 1}
