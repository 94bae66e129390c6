"""A plan is sorted, valid and normalised from the moment it is made."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.plan import PLAN_SCHEMA, Plan, PlanEntry
from rebalance_lib.topology import TopicPartition
from tests.plan.strategies import assignments, partitions, plans

FOO_0, FOO_1 = TopicPartition("foo", 0), TopicPartition("foo", 1)


def table(**columns):
    return pa.table({"topic": ["foo"], "partition": [0], "replicas": [[1, 2]]} | columns)


def test_the_worked_example():
    plan = Plan.from_assignment({FOO_1: [2, 3], FOO_0: [1, 2]})
    assert list(plan) == [PlanEntry("foo", 0, (1, 2)), PlanEntry("foo", 1, (2, 3))]
    assert plan.entries.schema == PLAN_SCHEMA


@given(assignments)
def test_entries_are_in_the_order_of_partitions_and_none_is_lost(assignment):
    plan = Plan.from_assignment(assignment)
    assert len(plan) == len(assignment)
    assert [entry.topic_partition for entry in plan] == sorted(assignment)
    assert plan.as_dict() == {partition: tuple(replicas) for partition, replicas in assignment.items()}


@given(plans, partitions)
def test_one_partition_can_be_looked_up(plan, other):
    for entry in plan:
        assert plan.partition(entry.topic_partition) == entry
    if other not in plan.as_dict():
        assert plan.partition(other) is None


@given(assignments, st.randoms(use_true_random=False))
def test_plans_of_the_same_content_are_equal(assignment, random):
    items = list(assignment.items())
    random.shuffle(items)
    one, other = Plan.from_assignment(assignment), Plan.from_assignment(dict(items))
    assert one == other
    assert hash(one) == hash(other)


def test_plans_differ_in_replicas_and_in_their_order():
    plan = Plan.from_assignment({FOO_0: [1, 2]})
    assert plan != Plan.from_assignment({FOO_0: [2, 1]})
    assert plan != Plan.from_assignment({FOO_0: [1, 3]})
    assert plan != Plan.from_assignment({FOO_1: [1, 2]})


def test_brokers_may_be_numbers_of_numpy():
    replicas = np.array([[1, 2], [2, 3]], dtype=np.int64)
    assert Plan.from_assignment({FOO_0: replicas[0], FOO_1: replicas[1]}).as_dict() == {
        FOO_0: (1, 2),
        FOO_1: (2, 3),
    }


def test_log_dirs_that_are_all_any_leave_the_choice_to_kafka():
    assert Plan.from_table(table(log_dirs=[["any", "any"]])) == Plan.from_table(table())
    assert [entry.log_dirs for entry in Plan.from_table(table(log_dirs=[["any", "/d"]]))] == [("any", "/d")]


def test_columns_of_other_arrow_types_are_taken_if_their_values_fit():
    wide = pa.table(
        {
            "replicas": pa.array([[1, 2]], pa.large_list(pa.int64())),
            "topic": pa.array(["foo"], pa.large_string()),
            "size_bytes": [7],
            "partition": pa.array([0], pa.int64()),
        }
    )
    assert Plan.from_table(wide) == Plan.from_table(table())


def test_a_table_in_chunks_or_slices_is_the_same_plan():
    plan = Plan.from_assignment({TopicPartition("foo", number): [number, 9] for number in range(6)})
    chunks = pa.concat_tables([plan.entries.slice(4), plan.entries.slice(0, 4)])
    assert Plan.from_table(chunks) == plan
    assert [entry.partition for entry in Plan.from_table(plan.entries.slice(2, 2))] == [2, 3]


def test_a_plan_survives_being_sent_to_another_process():
    plan = Plan.from_table(table(log_dirs=[["any", "/d"]]))
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 - its own bytes


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"replicas": [[1, 1]]}, r"entry 0 \(foo-0\): replicas is \[1, 1\]: broker 1 is listed twice"),
        ({"replicas": [["a"]]}, "column replicas of a plan is list<item: int32>, this is not"),
        ({"partition": [2**31]}, "column partition of a plan is int32, this is not"),
        ({"topic": pa.array([None], pa.string())}, r"entry 0 \(None-0\): topic is null: it is missing"),
        ({"replicas": pa.array([None], pa.list_(pa.int32()))}, r"\(foo-0\): replicas is null: it is missing"),
        ({"replicas": pa.array([[None]], pa.list_(pa.int32()))}, r"replicas is \[null\]: a broker's id is"),
        ({"log_dirs": pa.array([["/d", None]], pa.list_(pa.string()))}, "write one of these for null"),
    ],
)
def test_a_table_that_kafka_would_refuse_is_refused(columns, said):
    with pytest.raises(PlanFormatError, match=said):
        Plan.from_table(table(**columns))


def test_a_table_without_a_needed_column_is_refused():
    with pytest.raises(PlanFormatError, match="a plan needs the column replicas"):
        Plan.from_table(pa.table({"topic": ["foo"], "partition": [0]}))


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ({FOO_0: []}, "a partition needs at least one replica"),
        ({FOO_0: [2**31]}, "give ids as numbers of 32 bits"),
        ({FOO_0: ["1"]}, "give ids as numbers of 32 bits"),
        ({FOO_0: [True]}, "give ids as numbers of 32 bits"),
        ({FOO_0: [None]}, "give ids as numbers of 32 bits"),
        ({TopicPartition("a/b", 0): [1]}, "a topic's name has only letters"),
    ],
)
def test_an_assignment_that_kafka_would_refuse_is_refused(assignment, said):
    with pytest.raises(PlanFormatError, match=said):
        Plan.from_assignment(assignment)


def test_the_earliest_bad_entry_is_the_one_named():
    columns = {
        "topic": ["a", "b", "c", "d"],
        "partition": [0, 0, -1, 0],
        "replicas": [[1], [2, 2], [3], []],
        "log_dirs": [None, None, None, ["x"]],
    }
    with pytest.raises(PlanFormatError, match=r"entry 1 \(b-0\)"):
        Plan.from_table(pa.table(columns))


def test_a_partition_given_three_times_is_named_at_its_first_repetition():
    repeated = pa.table({"topic": ["b", "a", "a", "a"], "partition": [0] * 4, "replicas": [[1]] * 4})
    with pytest.raises(PlanFormatError, match=r"entry 2 \(a-0\): partition is 0: entry 1 has this"):
        Plan.from_table(repeated)
