"""Brokers that hang or are gone concern the moves to and from them, and no others."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Engine, Job, State, leave, live_assignment, preflight, put_throttles
from rebalance_lib.execution.stalls import Cause
from rebalance_lib.execution.throttle import RATES, dynamic_rates
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.execution.running import SLOW, settings
from tests.kafka_data import write_topic
from tests.waiting import wait_for

FOREVER = {"broker.session.timeout.ms": "600000"}  # the controller takes brokers for alive, whatever they do


@pytest.fixture
def throttled(tmp_path):
    """``throttled(kafka, cluster, chosen)`` is a job, throttled, that moves foo-0 to broker 3 and foo-1 to broker 2."""

    def make(kafka, cluster, chosen):
        admin = kafka.admin()
        write_topic(admin, kafka.bootstrap_servers, "foo", [[1], [1]], 3_000_000)
        admin.close()
        plan = Plan.from_assignment({TopicPartition("foo", 0): [3], TopicPartition("foo", 1): [2]})
        before = live_assignment(cluster, cluster.partitions(["foo"]), {})
        job = Job(plan, before, cluster.cluster_id(), Artifacts.at(tmp_path / "job"))
        put_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
        return job

    return make


def test_a_receiver_that_hangs_but_is_not_fenced_is_named_and_the_rest_goes_on(new_kafka, throttled):
    kafka, chosen = new_kafka(brokers=3, racks=0, config=FOREVER), settings(throttle=SLOW, stall_checks=2)
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
        engine = Engine(cluster, throttled(kafka, cluster, chosen), chosen)
        wait_for(lambda: engine.check().progress.bytes_copied > 0)
        copied = engine.check().progress.bytes_copied
        kafka.pause(3)
        wait_for(lambda: any(stall.cause is Cause.NOT_ANSWERING for stall in engine.check().stalls), seconds=120)
        report = engine.check()
        assert report.state is State.MOVING
        assert report.progress.bytes_copied >= copied, "what it held when it last answered is kept"
        assert [stall.broker for stall in report.stalls] == [3]
        wait_for(lambda: engine.check().progress.done == 1, seconds=120)  # the move to broker 2
        with Cluster({"bootstrap_servers": [kafka.nodes[broker].address for broker in (3, 1, 2)]}) as anew:
            assert len(anew.alive_brokers()) == 3


def test_a_dead_receiver_keeps_no_other_move_from_beginning(new_kafka, throttled):
    kafka, chosen = new_kafka(brokers=3, racks=0), settings(throttle=SLOW)
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
        job = throttled(kafka, cluster, chosen)
        leave(cluster, job, chosen)
        kafka.kill(3)
        wait_for(lambda: 3 not in cluster.alive_brokers())
        engine = Engine(cluster, job, chosen)
        report = engine.check()
        assert "moves wait for brokers [3], which are down" in report.holds[0]
        wait_for(lambda: list(cluster.reassignments()) == [TopicPartition("foo", 1)])
        assert dynamic_rates(cluster, 2, RATES) == dict.fromkeys(RATES, str(SLOW))
        kafka.restart(3)
        wait_for(lambda: engine.check() and dynamic_rates(cluster, 3, RATES))
        assert dynamic_rates(cluster, 3, RATES) == dict.fromkeys(RATES, str(SLOW))
        assert leave(cluster, job, chosen).left == {}
