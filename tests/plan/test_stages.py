"""A partition's way in stages: one new replica at a time, and every list on it follows from the two ends."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.plan.stages import after_cancel, stages
from rebalance_lib.reassignment.kraft import propose
from rebalance_lib.reassignment.state import Assignment

replicas = st.lists(st.integers(1, 8), min_size=1, max_size=5, unique=True).map(tuple)


@pytest.mark.parametrize(
    ("before", "target", "expected"),
    [
        ((1, 2, 3), (4, 5, 3), ((1, 4, 3), (4, 5, 3))),
        ((1, 2), (2, 3), ((2, 3),)),
        ((1, 2), (2, 1), ((2, 1),)),
        ((1,), (2, 3, 4), ((2,), (2, 3), (2, 3, 4))),
        ((1, 2, 3), (1,), ((1,),)),
    ],
)
def test_a_new_replica_takes_the_place_of_one_that_leaves(before, target, expected):
    assert stages(before, target) == expected


@given(replicas, replicas)
def test_each_stage_adds_at_most_one_replica_and_the_last_is_the_target(before, target):
    way = (before, *stages(before, target))
    assert way[-1] == target
    for earlier, later in itertools.pairwise(way):
        assert len(set(later) - set(earlier)) <= 1
        assert len(set(later)) == len(later)
    assert all(len(stage) <= max(len(before), len(target)) for stage in way)


@given(replicas, replicas)
def test_a_cancel_leaves_what_the_controller_leaves(before, target):
    proposed = propose(Assignment(before), target)
    assert after_cancel(before, target) == proposed.original
