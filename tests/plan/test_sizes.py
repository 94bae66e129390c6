"""A move is counted with the size of the replica that will be read."""

import pyarrow as pa
import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.columns import Lists
from rebalance_lib.plan.sizes import Sizes
from rebalance_lib.topology import TopicPartition

FOO_0 = pa.table({"topic": ["foo"], "partition": [0], "replicas": pa.array([[1, 2]], pa.list_(pa.int32()))})


def brokers(*ids):
    return Lists.from_column(pa.array([list(ids)], pa.list_(pa.int32())))


def test_the_worked_example():
    table = pa.table({"topic": ["foo"] * 2, "partition": [0, 0], "broker": [1, 2], "size_bytes": [10, 8]})
    sizes = Sizes.from_source(table)
    assert sizes.bytes_added(FOO_0, brokers(3)).tolist() == [10]
    assert sizes.bytes_within_brokers(FOO_0, brokers(2)).tolist() == [8]


def test_a_replica_is_found_among_those_of_many_partitions():
    places = [(partition, broker) for partition in range(10) for broker in (1, 2, 3)]
    table = pa.table(
        {
            "topic": ["foo"] * 30,
            "partition": [partition for partition, _ in places],
            "broker": [broker for _, broker in places],
            "size_bytes": [100 * broker + partition for partition, broker in places],
        }
    )
    fifth = FOO_0.set_column(1, "partition", [[5]])
    assert Sizes.from_source(table).bytes_within_brokers(fifth, brokers(2)).tolist() == [205]


def test_by_partition_all_replicas_have_one_size():
    sizes = Sizes.from_source({TopicPartition("foo", 0): 10, TopicPartition("bar", 0): 1})
    assert sizes.bytes_added(FOO_0, brokers(3, 4)).tolist() == [20]
    assert sizes.bytes_within_brokers(FOO_0, brokers(1, 2)).tolist() == [20]


def test_a_replica_without_a_size_cannot_be_counted():
    table = pa.table({"topic": ["foo"], "partition": [0], "broker": [1], "size_bytes": [10]})
    with pytest.raises(InvalidInputError, match="foo-0 moves data but has no size"):
        Sizes.from_source(table).bytes_within_brokers(FOO_0, brokers(2))


def test_sizes_are_whole_numbers_of_0_or_more():
    with pytest.raises(InvalidInputError, match="the size of foo-0 is -1; give 0 or more bytes"):
        Sizes.from_source({TopicPartition("foo", 0): -1})
    with pytest.raises(InvalidInputError, match="sizes are not bytes by partition"):
        Sizes.from_source({TopicPartition("foo", 0): "10"})
