"""One run per cluster: who has it, who waits, and what is left of a run that died."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow import cluster_lock
from kafka_rebalance_airflow.cluster_lock import ClusterLock
from kafka_rebalance_airflow.sensors.cluster_lock import ClusterLockSensor
from rebalance_lib.topology import TopicPartition


@pytest.fixture
def active(tmp_path, monkeypatch):
    """The runs that Airflow calls active."""
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    monkeypatch.setattr(cluster_lock, "SETTLING_SECONDS", 0.0)
    return set()


@pytest.fixture
def context(active):
    def of(run_id, dag_id="kafka_rebalance"):
        count = lambda dag_id, run_ids, states: len({(dag_id, run_ids[0])} & active)  # noqa: E731
        return {
            "dag": SimpleNamespace(dag_id=dag_id),
            "dag_run": SimpleNamespace(start_date=None),
            "run_id": run_id,
            "ti": SimpleNamespace(get_dr_count=count),
        }

    return of


def test_the_first_has_it_for_as_long_as_it_is_active(active, context):
    active.add(("kafka_rebalance", "one"))
    assert ClusterLock("c", context("one")).take() is None
    other = ClusterLock("c", context("two", "another_dag")).take()
    assert (other["dag_id"], other["run_id"]) == ("kafka_rebalance", "one")
    assert ClusterLock("c", context("one")).take() is None, "cleared and run again, it still has it"
    assert ClusterLock("d", context("two")).take() is None, "another cluster"
    active.clear()
    assert ClusterLock("c", context("two")).take() is None


def test_of_two_that_come_in_the_same_moment_one_has_it(active, context, monkeypatch):
    active |= {("kafka_rebalance", "one"), ("kafka_rebalance", "two")}
    first, second = ClusterLock("c", context("one")), ClusterLock("c", context("two"))
    taken = []

    def meanwhile(_):
        monkeypatch.setattr(cluster_lock.time, "sleep", lambda _: None)
        second._directory.write_json(second._file, second._mine)  # it had looked before the first one wrote

    monkeypatch.setattr(cluster_lock.time, "sleep", meanwhile)
    taken.append(first.take())
    taken.append(second.take())
    assert [one and one["run_id"] for one in taken] == ["two", None]


@pytest.fixture
def sensor(monkeypatch, kafka):
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "host": kafka.bootstrap_servers}))
    return lambda on_busy: ClusterLockSensor(task_id="claim", kafka_conn_id="k", on_busy=on_busy)


def test_a_second_run_waits_or_fails_with_the_name_of_the_first(sensor, active, context, cluster):
    active.add(("kafka_rebalance", "one"))
    assert sensor("fail").poke(context("one"))
    assert not sensor("wait").poke(context("two"))
    with pytest.raises(AirflowFailException, match="the run one of kafka_rebalance holds the cluster lock"):
        sensor("fail").poke(context("two"))


def test_moves_that_no_run_here_began_are_waited_for(sensor, context, cluster, topic):
    name = topic("claim-foreign", [[1, 2]], size=3_000_000)
    rates = {"leader.replication.throttled.rate": "1000", "follower.replication.throttled.rate": "1000"}
    cluster.alter_topic_config(
        name, {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
    )
    for broker in (1, 2, 3):
        cluster.alter_broker_config(broker, rates)
    cluster.reassign({TopicPartition(name, 0): [1, 3]})
    try:
        assert not sensor("wait").poke(context("one"))
        with pytest.raises(AirflowFailException, match=f"reassignments that no run here has begun.*{name}-0"):
            sensor("fail").poke(context("one"))
    finally:
        cluster.reassign({TopicPartition(name, 0): None})
        for broker in (1, 2, 3):
            cluster.alter_broker_config(broker, dict.fromkeys(rates))
