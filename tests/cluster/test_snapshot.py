"""A snapshot says what is on the cluster, dead brokers and moves under way included."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.cluster.log_dirs import _log_dirs
from rebalance_lib.cluster.snapshot import _is_cordoned
from rebalance_lib.execution import Run
from rebalance_lib.execution.throttles.config import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE
from rebalance_lib.plan import current_assignment
from rebalance_lib.topology import Snapshot, TopicPartition
from tests.everywhere import (
    set_broker,
    set_topic,
    wait_for_alive,
    wait_for_in_sync,
    wait_for_leaders,
    wait_for_replicas,
)
from tests.kafka_data import write_topic
from tests.waiting import wait_for


def rows(snapshot, topic):
    return [row for row in snapshot.replicas.to_pylist() if row["topic"] == topic]


def test_replicas_have_their_own_size_leader_isr_and_log_dir(cluster, kafka, topic):
    name = topic("snapshot-sizes", [[2, 1], [3, 4]], size=50_000)
    wait_for_in_sync(cluster, name, {0: {1, 2}, 1: {3, 4}})
    snapshot = take_snapshot(cluster)
    found = rows(snapshot, name)
    assert [(r["partition"], r["position"], r["broker"], r["leader"]) for r in found] == [
        (0, 0, 2, True),
        (0, 1, 1, False),
        (1, 0, 3, True),
        (1, 1, 4, False),
    ]
    assert all(r["in_sync"] and not r["adding"] and not r["removing"] and not r["internal"] for r in found)
    assert {r["min_insync_replicas"] for r in found} == {1}
    assert all(r["size_bytes"] >= 50_000 for r in found)
    assert all(f"broker-{r['broker']}/data-" in r["log_dir"] for r in found)
    assert all((r["start_offset"], r["end_offset"]) == (0, 5) for r in found)
    assert snapshot.cluster_id == kafka.cluster_id


def test_brokers_have_racks_and_log_dirs(cluster):
    brokers = take_snapshot(cluster).brokers.to_pylist()
    assert [(b["broker"], b["rack"], b["alive"], len(b["log_dirs"])) for b in brokers] == [
        (1, "rack-1", True, 2),
        (2, "rack-2", True, 2),
        (3, "rack-3", True, 2),
        (4, "rack-1", True, 2),
    ]
    assert all(d["total_bytes"] > d["usable_bytes"] > 0 for b in brokers for d in b["log_dirs"])


def test_log_dirs_that_are_cordoned_are_marked_and_a_broker_whose_log_dirs_all_are(new_kafka):
    kafka = new_kafka(brokers=3, racks=0)
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
        before = take_snapshot(cluster).brokers.to_pylist()
        assert [b["cordoned"] for b in before] == [False] * 3
        first = before[0]["log_dirs"][0]["path"]
        cluster.alter_broker_configs({1: {"cordoned.log.dirs": first}, 2: {"cordoned.log.dirs": "*"}})

        def cordoned():
            rows = take_snapshot(cluster).brokers.to_pylist()
            return [(b["cordoned"], {d["cordoned"] for d in b["log_dirs"]}) for b in rows]

        wait_for(cordoned, [(False, {True, False}), (True, {True}), (False, {False})])
        after = take_snapshot(cluster).brokers.to_pylist()[0]["log_dirs"]
        assert [d["path"] for d in after if d["cordoned"]] == [first]


@pytest.mark.parametrize(("version", "cordoned"), [(4, None), (5, False)])
def test_brokers_before_4_3_do_not_say_what_is_cordoned(version, cordoned):
    result = SimpleNamespace(log_dir="/d", error_code=0, total_bytes=10, usable_bytes=5, topics=[], is_cordoned=False)
    [found] = _log_dirs(1, SimpleNamespace(API_VERSION=version, error_code=0, results=[result]))
    assert found.cordoned is cordoned
    assert _is_cordoned([found]) is cordoned
    assert _is_cordoned([]) is None


def test_a_replica_that_is_only_being_added_does_not_raise_the_replication_factor(cluster, topic):
    name = topic("snapshot-adding", [[1]], size=2_000_000)
    partition = TopicPartition(name, 0)
    set_topic(cluster, name, {FOLLOWER_REPLICAS: "0:2"})
    set_broker(cluster, 2, {FOLLOWER_RATE: "10000"})
    cluster.reassign({partition: [2]})
    wait_for_replicas(cluster, name, {0: (2, 1)})
    assert cluster.reassignments([partition, TopicPartition(name, 1)]).keys() == {partition}
    assert cluster.reassignments([TopicPartition("snapshot-nothing", 0)]) == cluster.reassignments([]) == {}
    snapshot = take_snapshot(cluster)
    assert [(r["broker"], r["adding"], r["removing"]) for r in rows(snapshot, name)] == [
        (2, True, False),
        (1, False, True),
    ]
    assert current_assignment(snapshot).as_dict()[partition] == (1,)
    set_broker(cluster, 2, {FOLLOWER_RATE: None})
    wait_for(cluster.reassignments, {})
    assert LEADER_RATE not in cluster.broker_config(2, [LEADER_RATE])


def test_a_dead_broker_is_marked_and_its_replicas_have_no_size(new_kafka):
    kafka, name, alone = new_kafka(brokers=2, racks=2), "orders", "alone"
    with kafka.admin() as admin:
        write_topic(admin, kafka.bootstrap_servers, name, [[1, 2]], 20_000)
        write_topic(admin, kafka.bootstrap_servers, alone, [[2]], 20_000)
    servers = kafka.bootstrap_servers
    kafka.kill(2)
    for _ in range(10):  # one that refused is not asked again where another can tell
        with Cluster({"bootstrap_servers": servers}) as opened:
            assert opened._ask("", "describe_cluster", attempts=2)
    with Cluster({"bootstrap_servers": servers}) as cluster:
        wait_for_alive(cluster, {1})
        wait_for_in_sync(cluster, name, {0: {1}})
        wait_for_leaders(cluster, alone, {0: -1})
        snapshot = take_snapshot(cluster)
    assert snapshot.brokers["alive"].to_pylist() == [True, False]
    assert [broker.id for broker in snapshot.alive_brokers()] == [1]
    found = rows(snapshot, name)
    assert [(r["broker"], r["in_sync"], r["size_bytes"] is None) for r in found] == [(1, True, False), (2, False, True)]
    assert [(r["start_offset"], r["end_offset"]) for r in found] == [(0, 2), (0, 2)]
    assert [(r["leader"], r["end_offset"]) for r in rows(snapshot, alone)] == [(False, None)]


def test_what_is_written_is_read_back(cluster, topic, tmp_path):
    topic("snapshot-round", [[1, 2]], size=10_000)
    snapshot = take_snapshot(cluster)
    run = Run(tmp_path.as_uri())
    run.write_snapshot(snapshot)
    again = run.snapshot()
    assert isinstance(again, Snapshot)
    assert (again.cluster_id, again.taken_at) == (snapshot.cluster_id, snapshot.taken_at)
    assert again.replicas.equals(snapshot.replicas)
    assert again.brokers.equals(snapshot.brokers)
