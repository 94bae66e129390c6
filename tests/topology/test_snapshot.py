"""Snapshots as tables."""

from __future__ import annotations

import pyarrow as pa

from rebalance_lib.plan import current_assignment
from rebalance_lib.topology import BROKERS, REPLICAS, Broker, Snapshot, TopicPartition


def snapshot_of(brokers, replicas):
    """Brokers as (id, rack, alive); replicas as (topic, partition, position, broker, leader, adding, size)."""
    broker_rows = [
        {"broker": id_, "rack": rack, "host": "h", "port": 9092, "alive": alive, "log_dirs": []}
        for id_, rack, alive in brokers
    ]
    replica_rows = [
        {
            "topic": topic,
            "partition": partition,
            "position": position,
            "broker": broker,
            "leader": leader,
            "in_sync": not adding,
            "adding": adding,
            "removing": False,
            "internal": False,
            "size_bytes": size,
            "log_dir": None,
        }
        for topic, partition, position, broker, leader, adding, size in replicas
    ]
    return Snapshot(
        "c",
        "2026-01-01T00:00:00+00:00",
        pa.Table.from_pylist(broker_rows, schema=BROKERS),
        pa.Table.from_pylist(replica_rows, schema=REPLICAS),
    )


ORDERS = snapshot_of(
    [(1, "a", True), (2, "b", True), (3, None, False)],
    [
        ("orders", 0, 0, 2, True, False, 10),
        ("orders", 0, 1, 1, False, False, 9),
        ("orders", 0, 2, 3, False, True, None),
    ],
)


def test_the_example_of_the_design():
    assert current_assignment(ORDERS).as_dict() == {TopicPartition("orders", 0): (2, 1)}


def test_load_per_broker_counts_empty_and_dead_brokers_too():
    assert ORDERS.load_per_broker().to_pylist() == [
        {"broker": 1, "rack": "a", "bytes": 9, "replicas": 1, "leaders": 0},
        {"broker": 2, "rack": "b", "bytes": 10, "replicas": 1, "leaders": 1},
        {"broker": 3, "rack": None, "bytes": 0, "replicas": 1, "leaders": 0},
    ]


def test_only_alive_brokers_are_placed_on():
    assert ORDERS.alive_brokers() == [Broker(1, "a"), Broker(2, "b")]


def test_an_empty_cluster_has_an_empty_assignment():
    empty = snapshot_of([(1, None, True)], [])
    assert len(current_assignment(empty)) == 0
    assert empty.load_per_broker()["bytes"].to_pylist() == [0]


def test_replicas_in_any_order_give_the_same_assignment():
    shuffled = Snapshot("c", "", ORDERS.brokers, ORDERS.replicas.take([2, 1, 0]))
    assert current_assignment(shuffled) == current_assignment(ORDERS)


def test_tables_tell_where_they_are_from():
    again = Snapshot.from_tables(*ORDERS.tables())
    assert (again.cluster_id, again.taken_at) == ("c", "2026-01-01T00:00:00+00:00")


def test_files_of_older_versions_have_no_offsets_and_are_read():
    brokers, replicas = ORDERS.tables()
    old = Snapshot.from_tables(brokers, replicas.drop_columns(["start_offset", "end_offset"]))
    assert old.replicas.equals(ORDERS.replicas)
    assert old.replicas["end_offset"].null_count == 3


def test_files_of_older_versions_have_no_capacities_and_nothing_cordoned():
    log_dirs = [[{"path": "/d", "total_bytes": 10, "usable_bytes": 5, "cordoned": True}]] * 3
    brokers, replicas = ORDERS.tables()
    brokers = brokers.set_column(5, BROKERS.field("log_dirs"), pa.array(log_dirs, BROKERS.field("log_dirs").type))
    assert Snapshot.from_tables(brokers, replicas).brokers["log_dirs"].to_pylist() == log_dirs
    older = pa.list_(pa.struct(list(BROKERS.field("log_dirs").type.value_type)[:3]))
    brokers = brokers.drop_columns(["capacity", "broker_set", "cordoned"])
    brokers = brokers.set_column(5, "log_dirs", brokers["log_dirs"].cast(older))
    old = Snapshot.from_tables(brokers, replicas).brokers
    assert old.schema == BROKERS
    assert old["log_dirs"][0].as_py() == [{"path": "/d", "total_bytes": 10, "usable_bytes": 5, "cordoned": None}]
    assert all(old[name].null_count == 3 for name in ("capacity", "broker_set", "cordoned"))
