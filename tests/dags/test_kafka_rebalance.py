"""The DAG from end to end in this process, on a real cluster: modes of the planner, answers, refusals, cleared tasks.

Where a test is not about the plan, no Spark is needed for it; spark-submit through Airflow is in ``tests/e2e``.
"""

from __future__ import annotations

import pytest

from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.throttles.config import RATES, REPLICA_LISTS
from rebalance_lib.execution.throttles.saved import SAVED
from rebalance_lib.topology import TopicPartition
from tests.dags.test_structure import CHAINS
from tests.everywhere import wait_for_lists, wait_for_replicas
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("planned_here")
TASKS = CHAINS["kafka_rebalance"]
DONE = {**dict.fromkeys(TASKS, "success"), "remind_reviewers": "skipped"}


@pytest.mark.usefixtures("spark_here")
def test_an_approved_plan_is_carried_out(run_dag, cluster, topic):
    name = topic("dag-approved", [[1, 2], [2, 1], [1, 2], [2, 1]], size=100_000)
    ended = run_dag("kafka_rebalance", mode="kafka", topics=[name], allowed_brokers=[2, 3, 4], throttle=10_000_000)
    assert (ended.state, ended.states) == ("success", DONE)
    run = ended.run
    assert "10 MB/s on each broker" in (run.artifacts / "plan").read_text(
        "review.md"
    )  # the forecast is at this throttle
    plan = run.plan().as_dict()
    before = cluster.partitions([name])  # of a partition that stays where it is, nothing is planned
    live = {tp.partition: plan.get(tp, state.replicas) for tp, state in before.items()}
    wait_for_replicas(cluster, name, live)
    assert {broker for replicas in live.values() for broker in replicas} <= {2, 3, 4}
    wait_for_lists(cluster, name, {})
    assert "reviewer" in run.artifacts.read_text("report.html")
    assert run.artifacts.read_json(SAVED)["brokers"] == {}
    record = run.artifacts.read_json("audit.json")
    assert (record["approved_by"], record["digest"]) == ("reviewer", run.plan().digest)
    assert {move["partition"] for move in record["moves"]} == {str(tp) for tp in plan}


CROWDED = [[1, 2], [1, 2], [1, 2], [1, 2]]
MODES = {
    "balance": ({}, CROWDED),
    "expand": ({"brokers": [3, 4]}, CROWDED),
    "drain": ({"brokers": ["1"]}, CROWDED),
    "replace": ({"brokers": [1], "replacements": [4]}, CROWDED),
    "repair": ({"replication_factor": 2}, [[1], [2]]),
    "leaders": ({}, CROWDED),
    "demote": ({"brokers": [1]}, CROWDED),
    "topics": ({}, CROWDED),
    "replication-factor": ({"replication_factor": 3}, CROWDED),
    "partitions": ({"partitions": 6}, CROWDED),
}
CHARACTERISTIC = ("leaders", "partitions")  # no copy, and new partitions; drain is below, with tasks that are cleared


@pytest.mark.parametrize(
    "mode", [mode if mode in CHARACTERISTIC else pytest.param(mode, marks=pytest.mark.long) for mode in MODES]
)
def test_each_mode_is_planned_and_carried_out(run_dag, cluster, topic, mode):
    conf, before = MODES[mode]
    name = topic(f"dag-{mode}", before, size=20_000)
    ended = run_dag("kafka_rebalance", mode=mode, topics=[name], **conf)
    assert (ended.state, ended.states) == ("success", DONE)
    status = ended.run.status(cluster)
    assert status.by_partition
    assert set(status.by_partition.values()) == {Status.DONE}
    live = dict(enumerate(map(tuple, before))) | {tp.partition: to for tp, to in ended.run.plan().as_dict().items()}
    assert live != dict(enumerate(map(tuple, before)))
    wait_for_replicas(cluster, name, live)
    wait_for_lists(cluster, name, {})
    brokers = {broker for replicas in live.values() for broker in replicas}
    if mode in ("drain", "replace"):
        assert 1 not in brokers
    if mode in ("leaders", "demote"):
        assert {frozenset(replicas) for replicas in live.values()} == {frozenset({1, 2})}
    if mode == "partitions":
        assert len(live) == 6
    if mode == "replication-factor":
        assert {len(replicas) for replicas in live.values()} == {3}
    if mode == "repair":
        assert {len(replicas) for replicas in live.values()} == {2}


@pytest.mark.long
def test_light_leaves_brokers_below_the_level_alone(run_dag, topic):
    """All brokers here share one disk, so that none is fuller than another."""
    name = topic("dag-light", CROWDED, size=20_000)
    ended = run_dag("kafka_rebalance", mode="light", topics=[name], fill_level=0.999)
    assert (ended.state, ended.states["compute_placement"], ended.states["review_plan"]) == (
        "success",
        "success",
        "skipped",
    )


@pytest.mark.long
def test_disks_are_evened_out_within_a_broker(run_dag, cluster, topic):
    name = topic("dag-disks", [[1]] * 4, size=200_000)

    def places():
        return {
            replica: found.current for replica, found in cluster.replica_log_dirs([1]).items() if replica[0] == name
        }

    crowded = dict.fromkeys(places(), next(iter(places().values())))
    cluster.alter_replica_log_dirs(crowded)
    wait_for(places, crowded)
    ended = run_dag("kafka_rebalance", mode="disks", topics=[name], brokers=[1])
    assert (ended.state, ended.states) == ("success", DONE)
    assert len(set(places().values())) == 2


def test_a_failing_execution_fails_the_run_and_leaves_no_throttle(run_dag, cluster, topic, monkeypatch):
    from rebalance_lib import execution

    def refuse(*_):
        raise RuntimeError("execute failed on purpose")

    name = topic("dag-failing", [[1, 2]], size=50_000)
    monkeypatch.setattr(execution.Executor, "check", refuse)
    ended = run_dag("kafka_rebalance", mode="kafka", topics=[name], allowed_brokers=[3, 4])
    states = ended.states
    assert ended.state == "failed"
    assert (states["execute_plan"], states["verify_plan"]) == ("failed", "upstream_failed")
    assert (states["remove_throttle"], states["finalize"]) == ("success", "failed")
    wait_for_lists(cluster, name, {})
    assert "Failed steps: execute_plan, verify_plan" in ended.run.artifacts.read_text("report.html")


@pytest.mark.usefixtures("spark_here")
def test_another_candidate_and_another_throttle_can_be_chosen(run_dag, cluster, topic):
    name = topic("dag-second", [[1, 2]] * 8, size=50_000)
    changed = {"throttle": 7_000_000, "moves_per_broker": 3, "bytes_in_flight": 0}
    ended = run_dag("kafka_rebalance", answer="Approve half", changed=changed, topics=[name])
    assert (ended.state, ended.states) == ("success", DONE)
    review, summary = ended.run.artifacts.read_json("review.json"), ended.run.summary()
    assert (review["candidate"], review["digest"]) == ("half", summary["candidates"]["half"]["digest"])
    assert (review["settings"]["throttle"], review["settings"]["moves_in"]) == (7_000_000, 3)
    assert ended.run.plan().digest == review["digest"] != summary["candidates"]["full"]["digest"]
    assert set(ended.run.status(cluster).by_partition.values()) == {Status.DONE}
    assert ended.run.artifacts.read_json("audit.json")["throttles"][0]["rate"] == 7_000_000


def test_a_run_that_is_marked_failed_while_it_waits_for_the_cluster_lock_ends_as_failed(run_dag, monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    from kafka_rebalance_airflow.sensors.cluster_lock import ClusterLockSensor

    def marked(self, context):
        mark_failed(context["run_id"])
        raise AirflowFailException("the run is marked failed")

    monkeypatch.setattr(ClusterLockSensor, "poke", marked)
    ended = run_dag("kafka_rebalance")
    assert (ended.state, ended.states["claim_cluster"], ended.states["finalize"]) == ("failed", "failed", "failed")
    assert {ended.states[task] for task in ("snapshot_topology", "arm", "remove_throttle")} == {"skipped"}


def mark_failed(run_id):
    from airflow.api.common.mark_tasks import set_dag_run_state_to_failed
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        dag = SerializedDagModel.get_dag("kafka_rebalance", session=session)
        set_dag_run_state_to_failed(dag=dag, run_id=run_id, commit=True, session=session)


def test_a_wrong_form_is_refused_before_the_snapshot(run_dag):
    ended = run_dag("kafka_rebalance", mode="drain", window="at night", review="automatic")
    assert ended.state == "failed"
    assert ended.states["check_form"] == "failed"
    assert ended.states["snapshot_topology"] == "upstream_failed"
    assert ended.run is None


def test_a_cluster_that_is_even_enough_is_left_alone(run_dag, cluster, topic):
    name = topic("dag-even", [[1, 2], [2, 3], [3, 4], [4, 1]])
    ended = run_dag("kafka_rebalance", topics=[name], threshold_bytes=1e6)
    assert ended.state == "success"
    assert ended.states["review_plan"] == "skipped"
    assert ended.states["arm"] == "skipped"


def test_a_plan_file_that_was_changed_after_approval_is_refused(run_dag, cluster, topic, monkeypatch):
    from kafka_rebalance_airflow.operators.execution import ArmOperator

    checked = ArmOperator.execute

    def tampered(self, context):
        from rebalance_lib.artifacts import Artifacts

        plan = Artifacts(self.run_uri) / "plan"
        text = plan.read_text("plan.json")
        plan.write_text("plan.json", text.replace("[3,4]", "[4,2]").replace("[4,3]", "[2,4]"))
        assert plan.read_text("plan.json") != text
        return checked(self, context)

    name = topic("dag-tampered", [[1, 2], [2, 1]])
    monkeypatch.setattr(ArmOperator, "execute", tampered)
    ended = run_dag("kafka_rebalance", mode="kafka", topics=[name], allowed_brokers=[3, 4])
    assert (ended.state, ended.states["arm"], ended.states["execute_plan"]) == ("failed", "failed", "upstream_failed")
    wait_for_replicas(cluster, name, {0: (1, 2), 1: (2, 1)})


def test_a_topology_that_changed_after_the_review_is_refused_with_the_list(
    run_dag, cluster, topic, monkeypatch, capsys
):
    from kafka_rebalance_airflow.operators.execution import ArmOperator

    name = topic("dag-drifted", [[1, 2], [2, 1]])
    checked = ArmOperator.execute

    def moved(self, context):
        cluster.reassign({TopicPartition(name, 1): [2, 3]})
        return checked(self, context)

    monkeypatch.setattr(ArmOperator, "execute", moved)
    ended = run_dag("kafka_rebalance", mode="kafka", topics=[name], allowed_brokers=[3, 4])
    assert (ended.state, ended.states["apply_throttle"]) == ("failed", "failed")
    assert f"no longer where the snapshot saw them ({name}-1)" in capsys.readouterr().out
    wait_for_lists(cluster, name, {})


@pytest.fixture
def drained(run_dag, cluster, topic):
    """A run that has drained broker 1; tasks of it are cleared, and the same must be true after each."""
    name = topic("dag-drained", CROWDED, size=20_000)
    ended = run_dag("kafka_rebalance", mode="drain", brokers=["1"], topics=[name], throttle=10_000_000)
    assert (ended.state, ended.states) == ("success", DONE)

    def found():
        return {
            "replicas": {tp.partition: state.replicas for tp, state in cluster.partitions([name]).items()},
            "reassignments": cluster.reassignments(),
            "throttles": cluster.topic_config(name, REPLICA_LISTS),
            "rates": {broker: cluster.broker_config(broker, RATES) for broker in cluster.alive_brokers()},
        }

    before = wait_for(found, lambda now: not (now["reassignments"] or now["throttles"] or any(now["rates"].values())))
    assert 1 not in {broker for replicas in before["replicas"].values() for broker in replicas}

    def clear(*tasks):
        again = run_dag.again(ended, set(tasks))
        assert (tasks, again.state) == (tasks, "success")
        assert (tasks, set(again.states.values())) == (tasks, {"success", "skipped"})
        wait_for(found, before, tell=lambda: f"after {tasks} were cleared")

    return clear


def with_those_behind(dagbag, task):
    behind = dagbag.dags["kafka_rebalance"].get_task(task).get_flat_relatives(upstream=False)
    return [task, *(one.task_id for one in behind)]


def test_a_drained_broker_stays_empty_when_tasks_are_cleared_and_run_again(drained, dagbag):
    drained("execute_plan")
    drained(*with_those_behind(dagbag, "arm"))


@pytest.mark.long
def test_any_task_that_is_cleared_and_run_again_leads_to_the_same_end(drained, dagbag):
    for task in reversed(TASKS):
        drained(task)
        drained(*with_those_behind(dagbag, task))
