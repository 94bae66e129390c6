"""A move is cancelled only where its partition is not worse off for it."""

from __future__ import annotations

import pytest

from rebalance_lib.cluster import PartitionMetadata, Reassignment
from rebalance_lib.execution.cancellation import originals, reason_not_to_cancel
from rebalance_lib.topology import TopicPartition

TP = TopicPartition("foo", 0)
REPLICAS, MOVE = (4, 5, 6, 1, 2, 3), Reassignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))


def reason(in_sync, *, alive=(1, 2, 3, 4, 5, 6), min_isr=2):
    """Why the move of ``foo-0`` from [1, 2, 3] to [4, 5, 6] must not be cancelled."""
    state = PartitionMetadata(REPLICAS, frozenset(in_sync), min(in_sync, default=None), internal=False)
    return reason_not_to_cancel(TP, state, MOVE, alive, min_isr)


def test_a_cancel_that_would_leave_too_few_in_sync_is_refused():
    found = reason({3, 4, 5}, alive={3, 4, 5, 6})
    assert "of its original replicas [1, 2, 3] only [3] are alive and in sync, and it needs 2" in found


@pytest.mark.parametrize(
    ("in_sync", "alive", "min_isr"),
    [
        pytest.param({1, 2, 3}, {1, 2, 3, 4, 5, 6}, 2, id="all originals are in sync"),
        pytest.param({2, 3, 4}, {2, 3, 4, 5, 6}, 2, id="enough originals are in sync"),
        pytest.param({3, 4, 5}, {3, 4, 5, 6}, 1, id="one is enough"),
        pytest.param({3}, {3, 4, 5, 6}, 2, id="it is short already, so that a cancel changes nothing"),
        pytest.param({3, 4}, {3, 5, 6}, 2, id="the new one in sync has died, so that it is short already"),
    ],
)
def test_a_cancel_that_leaves_a_partition_no_worse_off_is_allowed(in_sync, alive, min_isr):
    assert reason(in_sync, alive=alive, min_isr=min_isr) is None


@pytest.mark.parametrize(
    ("in_sync", "alive"), [({4, 5}, {1, 2, 3, 4, 5, 6}), ({3, 4, 5}, {4, 5, 6}), (set(), {1, 2, 3, 4, 5, 6})]
)
def test_a_cancel_that_would_leave_nobody_to_lead_is_refused(in_sync, alive):
    assert "none is alive and in sync, so it would be left without a leader" in reason(in_sync, alive=alive, min_isr=1)


def test_a_partition_with_fewer_replicas_than_min_isr_counts_by_its_replicas():
    state = PartitionMetadata((2, 1), frozenset({1, 2}), 1, internal=False)
    assert reason_not_to_cancel(TP, state, Reassignment((2, 1), (2,), (1,)), {1, 2}, min_isr=3) is None


def test_originals_are_the_replicas_without_those_that_are_being_added():
    state = PartitionMetadata(REPLICAS, frozenset(), None, internal=False)
    assert originals(state, MOVE) == (1, 2, 3)
    assert originals(state, None) == REPLICAS
