"""A snapshot that no cluster can have is refused, and one in another order sorted, before anything is planned."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology import BROKERS, REPLICAS, Snapshot, check_snapshot

ROW = {
    "topic": "orders",
    "partition": 0,
    "position": 0,
    "broker": 1,
    "leader": False,
    "in_sync": True,
    "adding": False,
    "removing": False,
    "internal": False,
    "size_bytes": 10,
}
DIR = {"path": "/d", "total_bytes": 100, "usable_bytes": 50}


def broker(id_, **changes):
    return {"broker": id_, "host": "h", "port": 9092, "alive": True, "log_dirs": [], **changes}


def replicas(*listed, topic="orders", partition=0):
    """Replicas of a partition on these brokers, the first one leading."""
    return [
        ROW | {"topic": topic, "partition": partition, "position": place, "broker": id_, "leader": place == 0}
        for place, id_ in enumerate(listed)
    ]


BROKER_ROWS = [broker(1), broker(2), broker(3)]
ROWS = [*replicas(1, 2), *replicas(2, 3, 1, partition=1), *replicas(3, topic="users")]


def snapshot(brokers=BROKER_ROWS, rows=ROWS):
    return Snapshot("c", "", pa.Table.from_pylist(brokers, schema=BROKERS), pa.Table.from_pylist(rows, schema=REPLICAS))


def changed(place, **changes):
    return [row | changes if number == place else row for number, row in enumerate(ROWS)]


def test_a_snapshot_of_a_cluster_stays_as_it_is():
    found = check_snapshot(snapshot())
    assert found.brokers.equals(snapshot().brokers)
    assert found.replicas.equals(snapshot().replicas)


def test_a_cluster_without_partitions_is_one():
    assert check_snapshot(snapshot(rows=[])).replicas.num_rows == 0


@given(st.permutations(ROWS), st.permutations(BROKER_ROWS), st.integers(1, 5))
def test_rows_in_any_order_and_any_chunks_are_sorted(rows, brokers, size):
    given_ = snapshot(brokers, rows)
    chunked = pa.Table.from_batches(given_.replicas.to_batches(max_chunksize=size))
    found = check_snapshot(Snapshot("c", "", given_.brokers, chunked))
    assert found.replicas.to_pylist() == snapshot().replicas.to_pylist()
    assert found.brokers.to_pylist() == snapshot().brokers.to_pylist()


def test_what_is_not_known_is_no_fault():
    unknown = broker(4, log_dirs=[{"path": "/d", "total_bytes": None, "usable_bytes": 5}], capacity={"disk": None})
    rows = [*ROWS, *replicas(9, topic="zoo")]  # broker 9 is not registered
    rows[0] = rows[0] | {"size_bytes": None, "leader": False}
    assert check_snapshot(snapshot([*BROKER_ROWS, unknown], rows)).brokers.num_rows == 4


@pytest.mark.parametrize(
    ("brokers", "message"),
    [
        ([], "there are no brokers, so nothing can be placed; take a new snapshot with kafka-rebalance snapshot"),
        ([broker(1), broker(2), broker(1)], "broker 1 is listed twice"),
        ([broker(1), broker(1), broker(1)], "broker 1 is listed 3 times"),
        ([broker(-1)], "broker -1 has a negative id"),
        ([broker(1, log_dirs=[DIR, DIR])], "broker 1, log dir /d is listed twice"),
        ([broker(1, log_dirs=[DIR | {"usable_bytes": 101}])], "log dir /d: 101 bytes are usable of a total of 100"),
        ([broker(1, log_dirs=[DIR | {"total_bytes": -1}])], "log dir /d: total_bytes is -1, which is negative"),
        ([broker(1, log_dirs=[DIR | {"usable_bytes": -5}])], "log dir /d: usable_bytes is -5, which is negative"),
        ([broker(1, capacity={"disk": -1})], "broker 1: capacity.disk is -1; give a finite number above 0, or null"),
        ([broker(1, capacity={"cpu": float("nan")})], "broker 1: capacity.cpu is NaN"),
        ([broker(1, capacity={"network_in": float("inf")})], "broker 1: capacity.network_in is Infinity"),
        ([broker(1, capacity={"network_out": 0.0})], "broker 1: capacity.network_out is 0.0"),
    ],
)
def test_brokers_that_no_cluster_has_are_refused(brokers, message):
    with pytest.raises(InvalidInputError) as caught:
        check_snapshot(snapshot(brokers))
    assert str(caught.value).startswith("brokers.parquet: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changed(1, broker=1), "orders-0 has two replicas on broker 1"),
        (changed(4, broker=2), "orders-1 has two replicas on broker 2"),
        ([*ROWS, ROWS[-1]], "users-0 has two replicas at position 0"),
        (changed(1, leader=True), "orders-0 has two leaders, brokers 1 and 2"),
        (changed(4, leader=True), "orders-1 has two leaders, brokers 2 and 1"),
        (changed(3, position=2), "orders-1 has no replica at position 1"),
        (changed(4, position=1), "orders-1 has two replicas at position 1"),
        (changed(0, position=5), "orders-0 has no replica at position 0"),
        (changed(5, position=-1), "users-0 has no replica at position 0"),
        (changed(2, size_bytes=-7), "orders-1 has -7 bytes on broker 2, which is negative"),
        (changed(2, size_bytes=2**62), "orders-1 has 4611686018427387904 bytes, and all replicas more than 62 bits"),
        (changed(5, partition=-1), "users--1 has a negative number"),
    ],
)
def test_replicas_that_no_cluster_has_are_refused(rows, message):
    with pytest.raises(InvalidInputError) as caught:
        check_snapshot(snapshot(rows=rows))
    assert str(caught.value).startswith("replicas.parquet: ")
    assert message in str(caught.value)
    assert str(caught.value).endswith("; take a new snapshot with kafka-rebalance snapshot")
