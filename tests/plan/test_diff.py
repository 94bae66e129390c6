"""What a plan changes, against a plain row-by-row count of the same."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import DIFF_SCHEMA, Plan, diff
from rebalance_lib.topology import TopicPartition
from tests.plan.strategies import partitions, replica_lists

FOO_0, FOO_1, FOO_2 = (TopicPartition("foo", number) for number in range(3))


def with_log_dirs(topic_partition, replicas, log_dirs):
    topic, partition = topic_partition
    row = {"topic": topic, "partition": partition, "replicas": replicas, "log_dirs": log_dirs}
    return Plan.from_table(pa.Table.from_pylist([row]))


def replica_sizes(*rows):
    names = ("topic", "partition", "broker", "size_bytes")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])


def test_the_worked_example():
    before = Plan.from_assignment({FOO_0: [1, 2, 3], FOO_1: [2, 3], FOO_2: [1]})
    after = Plan.from_assignment({FOO_0: [4, 2, 3], FOO_1: [3, 2]})
    found = diff(before, after, {FOO_0: 10, FOO_1: 10})
    assert found.changes.schema == DIFF_SCHEMA
    assert found.changes.to_pylist() == [
        {
            "topic": "foo",
            "partition": 0,
            "before": [1, 2, 3],
            "after": [4, 2, 3],
            "adding": [4],
            "removing": [1],
            "leader_moved": True,
            "order_only": False,
            "moving_log_dirs": [],
            "bytes_moved": 10,
            "bytes_between_log_dirs": 0,
        },
        {
            "topic": "foo",
            "partition": 1,
            "before": [2, 3],
            "after": [3, 2],
            "adding": [],
            "removing": [],
            "leader_moved": True,
            "order_only": True,
            "moving_log_dirs": [],
            "bytes_moved": 0,
            "bytes_between_log_dirs": 0,
        },
    ]
    assert (found.partitions_changed, found.replicas_moved, found.replicas_removed) == (2, 1, 1)
    assert (found.leaders_moved, found.order_only, found.bytes_moved) == (2, 1, 10)
    assert found


def test_without_sizes_bytes_are_unknown_and_not_zero():
    found = diff(Plan.from_assignment({FOO_0: [1]}), Plan.from_assignment({FOO_0: [2]}))
    assert found.bytes_moved is None
    assert found.changes["bytes_moved"].to_pylist() == [None]


def test_a_plan_of_what_is_there_already_changes_nothing():
    plan = Plan.from_assignment({FOO_0: [1, 2]})
    assert not diff(plan, plan, {})
    assert diff(plan, plan, {}).bytes_moved == 0


def test_an_empty_plan_changes_nothing():
    assert not diff(Plan.from_assignment({}), Plan.from_assignment({}))


def test_a_higher_replication_factor_moves_bytes_for_each_new_replica():
    found = diff(Plan.from_assignment({FOO_0: [1]}), Plan.from_assignment({FOO_0: [1, 2, 3]}), {FOO_0: 7})
    assert (found.replicas_moved, found.replicas_removed, found.bytes_moved, found.leaders_moved) == (
        2,
        0,
        14,
        0,
    )


def test_a_lower_replication_factor_moves_no_bytes():
    found = diff(Plan.from_assignment({FOO_0: [1, 2]}), Plan.from_assignment({FOO_0: [1]}), {FOO_0: 7})
    assert (found.replicas_moved, found.replicas_removed, found.bytes_moved, found.order_only) == (0, 1, 0, 0)


def test_a_partition_that_was_not_there_before_is_refused():
    with pytest.raises(InvalidInputError, match="foo-1 is in the plan but not in the assignment before it"):
        diff(Plan.from_assignment({FOO_0: [1]}), Plan.from_assignment({FOO_0: [1], FOO_1: [1]}))


def test_a_moving_partition_without_a_size_is_refused():
    before, after = (
        Plan.from_assignment({FOO_0: [1], FOO_1: [1]}),
        Plan.from_assignment({FOO_0: [2], FOO_1: [2]}),
    )
    with pytest.raises(InvalidInputError, match="foo-1 moves data but has no size"):
        diff(before, after, {FOO_0: 3})
    with pytest.raises(InvalidInputError, match="foo-0 moves data but has no size, nor have 1 others"):
        diff(before, after, {})


def test_sizes_of_another_form_are_refused():
    plan = Plan.from_assignment({FOO_0: [1]})
    with pytest.raises(InvalidInputError, match="this table lacks partition, size_bytes"):
        diff(plan, plan, pa.table({"topic": ["foo"]}))
    with pytest.raises(InvalidInputError, match="not of the right type"):
        diff(plan, plan, pa.table({"topic": ["foo"], "partition": ["x"], "size_bytes": [1]}))
    with pytest.raises(InvalidInputError, match="sizes have no size_bytes in 1 rows"):
        diff(
            plan,
            plan,
            pa.table({"topic": ["foo"], "partition": [0], "size_bytes": pa.array([None], pa.int64())}),
        )


def test_a_new_replica_copies_what_the_leader_has():
    before, after = Plan.from_assignment({FOO_0: [1, 2]}), Plan.from_assignment({FOO_0: [1, 3]})
    assert diff(before, after, replica_sizes(("foo", 0, 2, 12), ("foo", 0, 1, 10))).bytes_moved == 10


def test_without_the_leaders_size_the_largest_replica_is_taken():
    before, after = Plan.from_assignment({FOO_0: [1, 2, 3]}), Plan.from_assignment({FOO_0: [1, 2, 4]})
    assert diff(before, after, replica_sizes(("foo", 0, 2, 8), ("foo", 0, 3, 9))).bytes_moved == 9


def test_a_replica_that_goes_to_another_log_dir_copies_its_own_size():
    before = with_log_dirs(FOO_0, [1, 2], ["/a", "/a"])
    after = with_log_dirs(FOO_0, [2, 1], ["/b", "/a"])
    found = diff(before, after, replica_sizes(("foo", 0, 1, 10), ("foo", 0, 2, 8)))
    assert found.changes["moving_log_dirs"].to_pylist() == [[2]]
    assert (found.log_dir_moves, found.bytes_between_log_dirs, found.bytes_moved) == (1, 8, 0)
    assert diff(before, after, {FOO_0: 5}).bytes_between_log_dirs == 5


def test_a_log_dir_move_alone_is_a_change_but_not_one_of_order():
    found = diff(with_log_dirs(FOO_0, [1, 2], ["/a", "/a"]), with_log_dirs(FOO_0, [1, 2], ["/b", "any"]))
    assert (found.partitions_changed, found.log_dir_moves, found.order_only, found.leaders_moved) == (
        1,
        1,
        0,
        0,
    )


def test_any_log_dir_is_never_a_move():
    assert not diff(with_log_dirs(FOO_0, [1, 2], ["/a", "/a"]), Plan.from_assignment({FOO_0: [1, 2]}))
    assert not diff(with_log_dirs(FOO_0, [1, 2], ["/a", "/b"]), with_log_dirs(FOO_0, [1, 2], ["any", "/b"]))


def test_a_log_dir_counts_as_a_move_where_the_one_before_is_not_known():
    assert diff(Plan.from_assignment({FOO_0: [1]}), with_log_dirs(FOO_0, [1], ["/a"])).log_dir_moves == 1


def test_the_log_dir_of_an_added_replica_is_no_log_dir_move():
    found = diff(with_log_dirs(FOO_0, [1], ["/a"]), with_log_dirs(FOO_0, [2], ["/b"]))
    assert (found.log_dir_moves, found.replicas_moved) == (0, 1)


@given(
    st.dictionaries(partitions, st.tuples(replica_lists, replica_lists, st.integers(0, 2**40)), max_size=8),
    st.data(),
)
def test_totals_are_what_a_plain_count_says(cases, data):
    named = data.draw(st.sets(st.sampled_from(sorted(cases)))) if cases else set()
    before = Plan.from_assignment({partition: old for partition, (old, _, _) in cases.items()})
    after = Plan.from_assignment({partition: cases[partition][1] for partition in named})
    found = diff(before, after, {partition: size for partition, (_, _, size) in cases.items()})
    changed = [(old, new, size) for old, new, size in (cases[partition] for partition in named) if old != new]
    assert found.partitions_changed == len(changed)
    assert found.replicas_moved == sum(len(set(new) - set(old)) for old, new, _ in changed)
    assert found.replicas_removed == sum(len(set(old) - set(new)) for old, new, _ in changed)
    assert found.leaders_moved == sum(old[0] != new[0] for old, new, _ in changed)
    assert found.order_only == sum(set(old) == set(new) for old, new, _ in changed)
    assert found.bytes_moved == sum(len(set(new) - set(old)) * size for old, new, size in changed)
    for row in found.changes.to_pylist():
        assert row["adding"] == [broker for broker in row["after"] if broker not in row["before"]]
        assert row["removing"] == [broker for broker in row["before"] if broker not in row["after"]]
