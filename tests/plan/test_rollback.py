"""A rollback puts back what a plan changes, and nothing else."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import Plan, PlanEntry, diff, rollback
from rebalance_lib.topology import TopicPartition
from tests.plan.strategies import partitions, replica_lists

FOO_0, FOO_1 = TopicPartition("foo", 0), TopicPartition("foo", 1)


def test_the_worked_example():
    before = Plan.from_assignment({FOO_0: [1, 2], FOO_1: [2, 3]})
    plan = Plan.from_assignment({FOO_0: [3, 2], FOO_1: [2, 3]})
    assert list(rollback(plan, before)) == [PlanEntry("foo", 0, (1, 2))]


def test_known_log_dirs_are_put_back():
    rows = {"topic": ["foo"], "partition": [0], "replicas": [[1, 2]]}
    before = Plan.from_table(pa.table(rows | {"log_dirs": [["/a", "/a"]]}))
    plan = Plan.from_table(pa.table(rows | {"log_dirs": [["/b", "any"]]}))
    assert rollback(plan, before) == before


def test_a_partition_that_was_not_there_before_cannot_be_rolled_back():
    with pytest.raises(InvalidInputError, match="foo-1 is in the plan but not in the assignment before it"):
        rollback(Plan.from_assignment({FOO_1: [1]}), Plan.from_assignment({FOO_0: [1]}))


@given(st.dictionaries(partitions, st.tuples(replica_lists, replica_lists), max_size=8))
def test_a_plan_and_its_rollback_leave_the_cluster_as_it_was(cases):
    before = {partition: tuple(old) for partition, (old, _) in cases.items()}
    plan = Plan.from_assignment({partition: new for partition, (_, new) in cases.items()})
    back = rollback(plan, Plan.from_assignment(before))
    assert before | plan.as_dict() | back.as_dict() == before
    assert len(back) == diff(Plan.from_assignment(before), plan).partitions_changed
