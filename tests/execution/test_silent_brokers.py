"""Brokers that hang or are gone concern the moves to and from them, and no others."""

from __future__ import annotations

import signal

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Engine, Job, State, leave, live_assignment, preflight, put_throttles
from rebalance_lib.execution.stalls import Cause
from rebalance_lib.execution.throttle import RATES, dynamic_rates
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.execution.running import SLOW, settings, wait_for
from tests.kafka_data import write_topic


@pytest.fixture(scope="module")
def hanging():
    """Three brokers that the controller takes for alive for ten minutes, whatever they do."""
    from sandbox import Sandbox

    with Sandbox(brokers=3, racks=0, config={"broker.session.timeout.ms": "600000"}) as kafka:
        yield kafka


@pytest.fixture
def start(hanging, tmp_path):
    """``start(topic, chosen)`` is a cluster, a job that moves one partition to broker 3 and one to 2, and an engine."""
    opened = Cluster({"bootstrap_servers": hanging.bootstrap_servers.split(",")})

    def begin(topic, chosen, told):
        admin = hanging.admin()
        write_topic(admin, hanging.bootstrap_servers, topic, [[1], [1]], 3_000_000)
        admin.close()
        plan = Plan.from_assignment({TopicPartition(topic, 0): [3], TopicPartition(topic, 1): [2]})
        before = live_assignment(opened, opened.partitions([topic]), {})
        job = Job(plan, before, opened.cluster_id(), Artifacts.at(tmp_path / topic))
        put_throttles(opened, job, preflight(opened, job, chosen).status, chosen)
        return opened, job, Engine(opened, job, chosen, tell=told.append)

    with opened:
        yield begin


def test_a_receiver_that_hangs_but_is_not_fenced_is_named_and_the_rest_goes_on(hanging, start):
    chosen, told = settings(throttle=SLOW, stall_checks=2), []
    cluster, job, engine = start("hangs", chosen, told)
    engine.check()
    wait_for(lambda: engine.check().progress.bytes_copied > 0)
    copied = engine.check().progress.bytes_copied
    hanging.pause(3)
    try:
        wait_for(lambda: any(stall.cause is Cause.NOT_ANSWERING for stall in engine.check().stalls), seconds=120)
        report = engine.check()
        assert report.state is State.MOVING
        assert report.progress.bytes_copied >= copied, "what it held when it last answered is kept"
        assert [stall.broker for stall in report.stalls] == [3]
        wait_for(lambda: engine.check().progress.done == 1, seconds=120)  # the move to broker 2
        with Cluster({"bootstrap_servers": [hanging.nodes[n].address for n in (3, 1, 2)]}) as anew:
            assert len(anew.alive_brokers()) == 3
    finally:
        hanging.resume(3)
    wait_for(lambda: not leave(cluster, job, chosen).left, seconds=120)


def test_a_dead_receiver_keeps_no_other_move_from_beginning(hanging, start):
    chosen, told = settings(throttle=SLOW), []
    cluster, job, _ = start("gone", chosen, told)
    leave(cluster, job, chosen)
    hanging.nodes[3].send(signal.SIGTERM)  # an orderly end is fenced at once
    wait_for(lambda: 3 not in cluster.alive_brokers())
    engine = Engine(cluster, job, chosen, tell=told.append)
    report = engine.check()
    assert "moves wait for brokers [3], which are down" in report.holds[0]
    wait_for(lambda: list(cluster.reassignments()) == [TopicPartition("gone", 1)])
    assert dynamic_rates(cluster, 2, RATES) == dict.fromkeys(RATES, str(SLOW))
    hanging.restart(3)
    wait_for(lambda: engine.check().progress.moving and dynamic_rates(cluster, 3, RATES))
    assert dynamic_rates(cluster, 3, RATES) == dict.fromkeys(RATES, str(SLOW))
    assert leave(cluster, job, chosen).left == {}
