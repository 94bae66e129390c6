"""What the operators do without a cluster."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_rebalance_airflow.clean_up import CANCEL_HONOURED, refuse_if_cancelled
from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.operators.execution import ExecutePlanOperator, FinalizeOperator, RemoveThrottleOperator
from kafka_rebalance_airflow.operators.plan import SnapshotTopologyOperator
from kafka_rebalance_airflow.operators.review import ReviewPlanOperator
from kafka_rebalance_airflow.triggers.reassignment import PlanTrigger
from rebalance_lib.artifacts import SNAPSHOT, Artifacts, read_groups
from rebalance_lib.clock import Clock
from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.errors import ClusterError, InvalidInputError
from rebalance_lib.execution import Kind, Run, make_request, restore_stale_throttles
from rebalance_lib.execution.requests import read_requests
from rebalance_lib.execution.throttles.config import FOLLOWER_REPLICAS, LEADER_REPLICAS, RATES
from rebalance_lib.plan import Plan
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_lists, wait_for_replicas
from tests.topology.test_snapshot import ORDERS

CONTEXT = {
    "dag": SimpleNamespace(dag_id="kafka_rebalance"),
    "dag_run": SimpleNamespace(start_date=datetime.now(UTC)),
    "run_id": "manual__1",
    "ti": SimpleNamespace(get_dr_count=lambda **_: 0),
}


def review_of(run):
    return ReviewPlanOperator(task_id="review_plan", subject="?", kafka_conn_id="k", run_uri=run.as_uri(), settings={})


def test_a_plan_with_nothing_to_do_needs_no_review(tmp_path):
    publish_plan(Run(tmp_path.as_uri()).artifacts / "plan", Plan.from_assignment({}), ORDERS)
    review = review_of(tmp_path)
    with pytest.raises(AirflowSkipException, match="nothing to move"):
        review.execute(CONTEXT)


def test_a_plan_that_is_none_of_the_summary_is_not_shown(tmp_path):
    plan = Run(tmp_path.as_uri()).artifacts / "plan"
    publish_plan(plan, Plan.from_assignment({TopicPartition("orders", 0): [1, 2]}), ORDERS)
    plan.write_text("plan.json", plan.read_text("plan.json").replace("[1,2]", "[2,1,3]"))
    review = review_of(tmp_path)
    with pytest.raises(AirflowFailException, match="none of those in the summary"):
        review.execute(CONTEXT)


def test_execution_cleared_on_its_own_puts_the_throttle_on_again(tmp_path, monkeypatch, kafka, cluster, topic):
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    name = topic("operator-execute", [[1]], size=2_000_000)
    run, snapshot = Run(tmp_path.as_uri()), take_snapshot(cluster)
    run.write_snapshot(snapshot)
    publish_plan(run.artifacts / "plan", Plan.from_assignment({TopicPartition(name, 0): [2]}), snapshot)
    step = {"kafka_conn_id": "k", "run_uri": run.uri, "approved_digest": run.plan().digest}
    execute = ExecutePlanOperator(task_id="execute_plan", settings={"throttle": "100000"}, **step)
    assert execute.execute(CONTEXT)["state"] == "moving"
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    assert cluster.broker_config(2, RATES)[RATES[0]].value == "100000"
    step.pop("approved_digest")
    RemoveThrottleOperator(task_id="remove_throttle", **step).execute(CONTEXT)
    wait_for_lists(cluster, name, {})
    assert cluster.reassignments() == {}  # cancelled: it must not run on without a throttle
    wait_for_replicas(cluster, name, {0: (1,)})


@pytest.mark.parametrize("dag_id", ["kafka_rebalance", "history"])
def test_snapshots_of_all_runs_share_a_history_beside_them(tmp_path, monkeypatch, kafka, cluster, dag_id):
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    elsewhere = tmp_path / "elsewhere"
    for run_id, history_uri in (("one", ""), ("two", elsewhere.as_uri())):
        monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__HISTORY", history_uri)
        snapshot = SnapshotTopologyOperator(task_id="snapshot_topology", kafka_conn_id="k")
        found = snapshot.execute({"dag": SimpleNamespace(dag_id=dag_id), "run_id": run_id, "ti": None})
        assert found["history"] == (history_uri or (tmp_path / "history").as_uri())
        assert Run(found["run"]).snapshot().cluster_id == kafka.cluster_id
        assert read_groups(Artifacts(found["run"]) / SNAPSHOT) is not None
    for history in (tmp_path / "history", elsewhere):
        assert committed_of_leaders(history, kafka).null_count == 0, "groups were listed"
    assert restore_stale_throttles(cluster, Artifacts.at(tmp_path / "history")) == {}


def test_a_snapshot_has_what_the_file_of_clusters_says_of_its_brokers(tmp_path, monkeypatch, kafka):
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    context = {"dag": SimpleNamespace(dag_id="kafka_rebalance"), "run_id": "one", "ti": None}

    def take(said):
        of_brokers = {"k": said, "other": {"capacities": {"brokers": {"99": {}}}}}
        operator = SnapshotTopologyOperator(task_id="snapshot_topology", kafka_conn_id="k", of_brokers=of_brokers)
        return Run(operator.execute(context)["run"]).snapshot().brokers

    said = {"capacities": {"default": {"cpu": 4}, "brokers": {"2": {"disk": 5}}}, "broker_sets": {"payments": [1]}}
    brokers = take(said)
    assert {one["cpu"] for one in brokers["capacity"].to_pylist()} == {4.0}
    assert [one["disk"] for one in brokers["capacity"].to_pylist()][:2] == [None, 5]
    assert brokers["broker_set"].to_pylist()[:2] == ["payments", None]
    with pytest.raises(InvalidInputError, match=r"broker_sets\.payments has 99: the cluster has no such broker"):
        take({"broker_sets": {"payments": [99]}})


def committed_of_leaders(history, kafka):
    """What groups had committed in the one snapshot of a history, by partition."""
    (file,) = history.glob(f"cluster={kafka.cluster_id}/day=*/*.parquet")
    return pq.read_table(file, filters=[("leader", "=", True)])["committed"]


def test_a_snapshot_without_consumer_groups_is_one_all_the_same(tmp_path, monkeypatch, kafka, cluster):
    def fail(_, broker):
        raise ClusterError(f"broker {broker} did not list its groups")

    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    monkeypatch.setattr(Cluster, "coordinated_groups", fail)
    snapshot = SnapshotTopologyOperator(task_id="snapshot_topology", kafka_conn_id="k")
    found = snapshot.execute({"dag": SimpleNamespace(dag_id="kafka_rebalance"), "run_id": "one", "ti": None})
    run = Run(found["run"])
    assert (run.snapshot().cluster_id, read_groups(run.artifacts / SNAPSHOT)) == (kafka.cluster_id, None)
    committed = committed_of_leaders(tmp_path / "history", kafka)
    assert committed.null_count == len(committed), "what is not known is not nothing"


def finalized(tmp_path, **states):
    step = FinalizeOperator(
        task_id="finalize", run_uri=tmp_path.as_uri(), armed_by="arm", required_tasks=["claim_cluster"]
    )
    ti = SimpleNamespace(get_task_states=lambda dag_id, run_ids: {run_ids[0]: states})
    step.execute({"dag": SimpleNamespace(dag_id="kafka_rebalance"), "run_id": "one", "ti": ti})


@pytest.mark.parametrize("state", ["failed", "skipped"])  # skipped: it was queued when the run was marked
def test_a_run_that_was_marked_failed_before_it_was_armed_ends_as_failed(tmp_path, state):
    with pytest.raises(AirflowFailException, match=r"failed: claim_cluster\. Nothing was changed"):
        finalized(tmp_path, claim_cluster=state, review_plan="skipped", arm="skipped")


def test_a_run_of_which_nothing_was_approved_ends_with_a_skip(tmp_path):
    with pytest.raises(AirflowSkipException, match="nothing was approved"):
        finalized(tmp_path, claim_cluster="success", review_plan="success", arm="skipped")


def test_run_ids_that_differ_have_places_that_differ(monkeypatch):
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", "file:///a/")
    first, second = (run_uri("dag", run_id) for run_id in ("manual__1:2+3", "manual__1_2_3"))
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


def test_the_connection_test_tells_what_is_there_in_its_answer_and_on_the_command_line(monkeypatch, kafka, capsys):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    assert KafkaAdminHook("kafka_test").test_connection() == (
        True,
        f"cluster {kafka.cluster_id} with 4 brokers, Kafka 4.3",
    )
    assert f"connection 'kafka_test': cluster {kafka.cluster_id} with 4 brokers, Kafka 4.3" in capsys.readouterr().out


@pytest.mark.parametrize(("configured", "level"), [(logging.NOTSET, logging.WARNING), (logging.INFO, logging.INFO)])
def test_the_client_logs_warnings_alone_unless_somebody_configured_it(monkeypatch, kafka, configured, level):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    logger = logging.getLogger("kafka")
    monkeypatch.setattr(logger, "level", configured)
    with KafkaAdminHook("kafka_test").get_conn():
        assert logger.level == level


@pytest.mark.parametrize(
    ("answer", "settings"),
    [
        ({}, {"throttle": 5_000_000, "moves_in": 3, "bytes_in_flight": 9}),
        ({"throttle": None}, {"throttle": None, "moves_in": 3, "bytes_in_flight": 9}),
        (
            {"throttle": 7_000_000, "moves_per_broker": None, "bytes_in_flight": None},
            {"throttle": 7_000_000, "moves_in": 0, "bytes_in_flight": 0},
        ),
    ],
)
def test_a_field_that_a_reviewer_empties_is_a_limit_less(tmp_path, answer, settings):
    review = review_of(tmp_path)
    review.settings = {"throttle": 5_000_000, "moves_in": 3, "moves_out": 3, "bytes_in_flight": 9}
    changed = review._changed(answer)
    assert {name: changed[name] for name in settings} == settings


def test_a_candidate_that_changes_nothing_is_not_offered(tmp_path):
    figures = {"full": (2, 5), "leaders": (0, 0), "half": (1, 3)}
    candidates = {
        name: {"figures": {"partitions_changed": changed, "bytes_moved": moved}}
        for name, (changed, moved) in figures.items()
    }
    options = review_of(tmp_path)._options({"candidates": candidates, "recommended": "full"})
    assert list(options.values()) == ["full", "half", None]


def test_the_trigger_carries_no_secret(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_TEST", '{"conn_type": "kafka", "host": "a", "password": "planted"}')
    path, arguments = PlanTrigger(
        kafka_conn_id="kafka_test", run_uri="file:///r", approved_digest="d", interval=1, settings={}
    ).serialize()
    assert path == "kafka_rebalance_airflow.triggers.reassignment.PlanTrigger"
    assert arguments == {
        "kafka_conn_id": "kafka_test",
        "run_uri": "file:///r",
        "approved_digest": "d",
        "interval": 1,
        "settings": {},
        "clean_up_mark": "",
    }


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Publish plans of these replicas of orders-0 for a run, and ask for their review; returns the run."""
    from airflow.providers.standard.operators.hitl import HITLOperator

    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    run = Run(tmp_path.as_uri())

    def ask(*replicas):
        publish_plan(
            run.artifacts / "plan", Plan.from_assignment({TopicPartition("orders", 0): list(replicas)}), ORDERS
        )
        review_of(tmp_path).execute(CONTEXT)
        return run

    return ask


def answered(option):
    user = {"id": "ada", "name": "ada"}
    return {
        "chosen_options": [option],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": user,
    }


def test_plans_that_were_exchanged_with_their_summary_while_they_were_reviewed_are_refused(tmp_path, asked):
    plan = asked(1, 2).artifacts / "plan"
    publish_plan(plan, Plan.from_assignment({TopicPartition("orders", 0): [2, 1]}), ORDERS)
    with pytest.raises(AirflowFailException, match="given is not the plan that was shown, sha256:"):
        review_of(tmp_path).execute_complete(CONTEXT, answered("Approve"))


def test_a_review_that_is_asked_again_is_about_the_plans_of_the_first_time(tmp_path, asked, monkeypatch):
    """Airflow keeps text and options of a task's first question, also when the task is cleared."""
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    monkeypatch.setattr(ApprovalOperator, "execute_complete", lambda *_: None)
    first = asked(1, 2).plan().digest
    with pytest.raises(AirflowFailException, match="Airflow would still show these: trigger a new run"):
        asked(1)
    with pytest.raises(AirflowFailException, match=f"is not the plan that was shown, {first}: trigger a new run"):
        review_of(tmp_path).execute_complete(CONTEXT, answered("Approve"))
    asked(1, 2)
    assert review_of(tmp_path).execute_complete(CONTEXT, answered("Approve"))["digest"] == first


def test_a_review_that_is_asked_again_voids_the_answer_before(asked):
    run = asked(1, 2)
    for name in ("review.json", "progress.json"):
        run.artifacts.write_json(name, {"candidate": None, "chosen_options": ["Reject"]})
    run.artifacts.write_json("approvals.json", {"deadline": None, "counted": [], "answers": [{"reason": "before"}]})
    asked(1, 2)
    assert run.artifacts.files() == ["approvals.json", "shown.json"]
    assert run.artifacts.read_json("approvals.json") == {
        "deadline": None,
        "automatic": [],
        "counted": [],
        "answers": [],
    }


def test_a_review_that_is_cleared_while_moves_are_under_way_winds_them_up(tmp_path, monkeypatch, kafka, cluster, topic):
    from airflow.providers.standard.operators.hitl import HITLOperator

    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    name = topic("operator-review", [[1]], size=3_000_000)
    run, snapshot = Run(tmp_path.as_uri()), take_snapshot(cluster)
    run.write_snapshot(snapshot)
    publish_plan(run.artifacts / "plan", Plan.from_assignment({TopicPartition(name, 0): [2]}), snapshot)
    step = {"kafka_conn_id": "k", "run_uri": run.uri, "approved_digest": run.plan().digest}
    ExecutePlanOperator(task_id="execute_plan", settings={"throttle": "1000"}, **step).execute(CONTEXT)
    assert cluster.reassignments()
    review_of(tmp_path).execute(CONTEXT)
    assert cluster.reassignments() == {}
    wait_for_lists(cluster, name, {})


class ClockOf(Clock):
    """A clock that is some hours off."""

    def __init__(self, hours):
        self.off = timedelta(hours=hours)

    def now(self):
        return super().now() + self.off


@pytest.mark.parametrize("hours", [-5, 0, 5])
def test_a_run_that_was_cancelled_cannot_be_approved_until_it_is_cleared_whatever_the_clocks_say(tmp_path, hours):
    run = Run(tmp_path.as_uri())
    publish_plan(run.artifacts / "plan", Plan.from_assignment({TopicPartition("orders", 0): [1, 2]}), ORDERS)
    make_request(run.artifacts, Kind.CANCEL, by="ada", clock=ClockOf(hours))
    for _ in range(2):  # a retry of the same start is refused again
        with pytest.raises(AirflowFailException, match=r"cancel requested by ada at .*: the run ends here"):
            review_of(tmp_path).execute(CONTEXT)
    anew = {**CONTEXT, "dag_run": SimpleNamespace(start_date=datetime.now(UTC) - timedelta(hours=9))}
    refuse_if_cancelled(anew, run)
    assert read_requests(run.artifacts) == []
    assert run.artifacts.files() == []
    make_request(run.artifacts, Kind.CANCEL, by="ben", clock=ClockOf(-hours))
    with pytest.raises(AirflowFailException, match="cancel requested by ben"):
        refuse_if_cancelled(anew, run)


def test_a_cancel_is_refused_by_though_the_note_of_it_is_damaged(tmp_path):
    run = Run(tmp_path.as_uri())
    make_request(run.artifacts, Kind.CANCEL, by="ada")
    (tmp_path / CANCEL_HONOURED).write_text("{")
    with pytest.raises(AirflowFailException, match="cancel requested by ada"):
        refuse_if_cancelled(CONTEXT, run)


def test_a_cancel_does_not_forget_what_else_was_requested(tmp_path):
    run = Run(tmp_path.as_uri())
    make_request(run.artifacts, Kind.THROTTLE, 7_000_000, by="ada")
    make_request(run.artifacts, Kind.CANCEL, by="ada")
    with pytest.raises(AirflowFailException):
        refuse_if_cancelled(CONTEXT, run)
    refuse_if_cancelled({**CONTEXT, "dag_run": SimpleNamespace(start_date=None)}, run)
    assert [request.kind for request in read_requests(run.artifacts)] == [Kind.THROTTLE]
