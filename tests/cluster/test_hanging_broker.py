"""A broker that hangs costs everyone one deadline, and after that nothing for a while.

The controller counts the broker as alive all the time: it is paused, and sessions are long.
"""

from __future__ import annotations

import dataclasses
import time

import pytest

from rebalance_lib.cluster import Cluster, Replica, ReplicaLogDir, take_snapshot
from rebalance_lib.cluster.requests import DEADLINE_SECONDS
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.throttles.config import LEADER_RATE
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox
from tests.everywhere import wait_for_rates
from tests.kafka_data import write_topic
from tests.waiting import wait_for

LONG_SESSIONS = {"broker.session.timeout.ms": "600000"}
SOON = 2.0  # seconds that requests to healthy brokers take at most, on a busy machine
REQUEST_SECONDS = 3.0  # a user's own time-out, shorter than the deadline: it counts


class Timed:
    """The seconds that a block took."""

    def __enter__(self):
        self.began = time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.began


@pytest.fixture(scope="module")
def started_brokers():
    with Sandbox(brokers=3, racks=0, config=LONG_SESSIONS) as kafka:
        with kafka.admin() as admin:
            write_topic(admin, kafka.bootstrap_servers, "orders", [[1], [2], [3]], 10_000)
        yield kafka


@pytest.fixture
def connected(started_brokers):
    settings = {"bootstrap_servers": started_brokers.bootstrap_servers.split(",")}
    with Cluster({**settings, "request_timeout_ms": int(REQUEST_SECONDS * 1000)}) as cluster:
        yield cluster


def sizes(described):
    return {
        broker: [held.partition for log_dir in log_dirs for held in log_dir.replicas if held.size >= 10_000]
        for broker, log_dirs in described.items()
    }


def disks(log_dirs):
    """What does not change while other tests write to the same disk."""
    return [dataclasses.replace(log_dir, usable_bytes=None) for log_dir in log_dirs]


def test_all_brokers_answer_together(connected):
    everything = {broker: [TopicPartition("orders", broker - 1)] for broker in (1, 2, 3)}
    assert sizes(connected.describe_log_dirs([3, 1, 2])) == everything
    assert sizes(connected.describe_log_dirs([1, 2], [TopicPartition("orders", 0)])) == {1: everything[1], 2: []}
    assert disks(connected.describe_log_dirs([1], ())[1]) == disks(connected.log_dirs(1, ()))
    assert connected.alter_broker_configs({1: {LEADER_RATE: "1000"}, 2: {LEADER_RATE: "none"}, 3: {}}).keys() == {2}
    wait_for_rates(connected, {1: {LEADER_RATE: "1000"}, 2: {}, 3: {}})
    found = connected.broker_configs([1, 2, 3], [LEADER_RATE])
    assert found == {broker: connected.broker_config(broker, [LEADER_RATE]) for broker in (1, 2, 3)}
    assert connected.alter_broker_configs({1: {LEADER_RATE: None}}) == {}
    wait_for_rates(connected, {1: {}, 2: {}, 3: {}})


def test_every_replica_that_could_not_get_its_log_dir_is_named(connected):
    held = connected.replica_log_dirs([1, 2, 3])
    first, second, third = sorted(held, key=lambda replica: replica.broker)
    other = next(one.path for one in connected.log_dirs(1) if one.path != held[first].current)
    coming = Replica("orders", 2, 1)
    assert connected.alter_replica_log_dirs({first: other, coming: other, third: held[third].current}) == [coming]
    wait_for(lambda: connected.replica_log_dirs([1])[first], ReplicaLogDir(other, None))
    with pytest.raises(ClusterError, match=r"for orders-1-2 to /nowhere: LogDirNotFoundError$"):
        connected.alter_replica_log_dirs({second: "/nowhere", first: other})


def test_a_broker_that_hangs_costs_one_deadline_and_is_then_left_out(started_brokers, connected):
    everyone, others, silent = [1, 2, 3], {1, 3}, set()
    assert REQUEST_SECONDS < DEADLINE_SECONDS
    started_brokers.pause(2)
    try:
        with Timed() as first:
            assert connected.describe_log_dirs(everyone).keys() == others
        with Timed() as second:
            assert connected.describe_log_dirs(everyone).keys() == others
            assert connected.broker_configs(everyone, [LEADER_RATE]).keys() == others
            assert {replica.broker for replica in connected.replica_log_dirs(everyone, silent=silent)} == others
        with Timed() as snapshot:
            replicas = take_snapshot(connected).replicas.to_pylist()
        with Timed() as change:
            failed = connected.alter_broker_configs({broker: {LEADER_RATE: "1000"} for broker in everyone})
    finally:
        started_brokers.resume(2)
    assert REQUEST_SECONDS <= first.seconds < REQUEST_SECONDS + SOON
    assert second.seconds < SOON
    assert silent == {2}
    assert snapshot.seconds < SOON
    assert {(row["broker"], row["size_bytes"] is None, row["end_offset"]) for row in replicas} == {
        (1, False, 1),
        (2, True, None),
        (3, False, 1),
    }
    assert change.seconds < REQUEST_SECONDS + SOON
    assert failed == {2: "the settings of broker 2 could not be changed: no answer within 3 s"}
