"""Sorted tables are merged, whatever pieces they come in."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.plan.merging import merge_sorted


def pieces(names, size):
    """A table of partitions such as ``a-0``, some rows at a time."""
    rows = [{"topic": name.split("-")[0], "partition": int(name.split("-")[1])} for name in names]
    schema = pa.schema([("topic", pa.string()), ("partition", pa.int32())])
    return [pa.Table.from_pylist(rows[start : start + size], schema) for start in range(0, len(rows), size)]


def named(tables):
    return [[f"{row['topic']}-{row['partition']}" for row in table.to_pylist()] for table in tables]


def test_the_example_of_the_design():
    found = merge_sorted([pieces(["a-0", "b-0", "d-0"], 2), pieces(["b-1", "c-0", "e-0"], 2)])
    assert named(found) == [["a-0", "b-0"], ["b-1", "c-0"], ["d-0"], ["e-0"]]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(0, 2)), unique=True), st.integers(1, 5)
)
def test_nothing_is_lost_and_all_is_in_order(rows, size):
    one_each = {(topic, partition): part for topic, partition, part in rows}
    parts = [sorted(key for key, part in one_each.items() if part == number) for number in range(3)]
    found = merge_sorted(pieces([f"{topic}-{partition}" for topic, partition in part], size) for part in parts)
    expected = [f"{topic}-{partition}" for topic, partition in sorted(one_each)]
    assert [name for some in named(found) for name in some] == expected
