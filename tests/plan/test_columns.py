"""Columns of lists behave as lists of lists do."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.plan.columns import Lists, few_chunks, find_sorted, partition_keys
from rebalance_lib.topology import TopicPartition
from tests.plan.strategies import partitions

numbers = st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3)
rows = st.lists(st.lists(numbers, max_size=4), max_size=6)


def lists(values):
    return Lists.from_column(pa.array(values, pa.list_(pa.int32())))


def plain(column):
    return column.to_arrow().to_pylist()


def test_the_worked_example():
    column = lists([[4, 1], [], [7]])
    assert column.values.tolist() == [4, 1, 7]
    assert column.offsets.tolist() == [0, 2, 2, 3]
    assert column.rows.tolist() == [0, 0, 2]


def test_a_null_list_reads_as_an_empty_one_and_a_slice_as_its_rows():
    assert plain(lists([[1], None, [2]])) == [[1], [], [2]]
    assert plain(Lists.from_column(pa.chunked_array([[[9]], [[1], [2, 3]]], pa.list_(pa.int32())).slice(1))) == [
        [1],
        [2, 3],
    ]


@given(rows, st.data())
def test_rows_can_be_taken_in_any_order_and_twice(values, data):
    wanted = data.draw(st.lists(st.sampled_from(range(len(values))))) if values else []
    assert plain(lists(values).take(np.array(wanted, np.int64))) == [values[row] for row in wanted]


@given(rows)
def test_a_mask_keeps_values_and_leaves_rows(values):
    column = lists(values)
    assert plain(column.where(column.values > 0)) == [[value for value in row if value > 0] for row in values]


@given(st.lists(st.tuples(st.lists(numbers, max_size=4), st.lists(numbers, max_size=4)), max_size=6))
def test_rows_are_compared_with_the_same_row_of_the_other_column(pairs):
    one, other = lists([pair[0] for pair in pairs]), lists([pair[1] for pair in pairs])
    assert one.same_rows(other).tolist() == [left == right for left, right in pairs]
    contained = [value in right for left, right in pairs for value in left]
    assert one.contained_in(other).tolist() == contained
    places = one.position_in(other)
    assert (places >= 0).tolist() == contained
    assert other.values[places[places >= 0]].tolist() == one.values[places >= 0].tolist()
    assert other.rows[places[places >= 0]].tolist() == one.rows[places >= 0].tolist()


@given(st.lists(partitions), st.lists(partitions))
def test_keys_sort_as_partitions_do_over_both_tables(left, right):
    tables = [
        pa.table(
            {
                "topic": pa.array([p.topic for p in side], pa.string()),
                "partition": pa.array([p.partition for p in side], pa.int32()),
            }
        )
        for side in (left, right)
    ]
    keys = np.concatenate(partition_keys(*tables)).tolist()
    both = [TopicPartition(*partition) for partition in left + right]
    assert sorted(range(len(both)), key=keys.__getitem__) == sorted(range(len(both)), key=both.__getitem__)


@given(st.lists(numbers, unique=True), st.lists(numbers))
def test_sorted_keys_are_found_or_not(keys, wanted):
    keys.sort()
    found = find_sorted(np.array(keys, np.int64), np.array(wanted, np.int64))
    assert found.tolist() == [keys.index(value) if value in keys else -1 for value in wanted]


def test_partitions_of_tables_in_chunks_have_the_same_keys():
    table = pa.table({"topic": ["b", "b", "a", "c"], "partition": pa.array([1, 0, 7, 2], pa.int32())})
    chunks = pa.concat_tables([table.slice(0, 1), table.slice(1, 2), table.slice(3)])
    assert chunks["topic"].num_chunks == 3
    [whole], [cut] = partition_keys(table), partition_keys(chunks)
    assert cut.tolist() == whole.tolist() == [(1 << 32) + 1, 1 << 32, 7, (2 << 32) + 2]
    assert few_chunks(chunks["topic"]).num_chunks == 1
