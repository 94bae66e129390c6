"""Where a partition stands, and that it is drifted only if it is shown so every time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rebalance_lib.clock import SYSTEM
from rebalance_lib.cluster import PartitionMetadata, Reassignment
from rebalance_lib.execution import plan_status as status_module
from rebalance_lib.execution.plan_status import Ends, PlanStatus, Status, read_status
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
PLAN = Plan.from_assignment({A: [1], B: [1]})


def read(monkeypatch, *answers):
    """What brokers show, one reading after the other: a race that a cluster cannot be made to show."""
    rest = list(answers)
    monkeypatch.setattr(status_module, "READ_AGAIN_SECONDS", 0)
    monkeypatch.setattr(
        status_module, "_read_once", lambda *_, **__: PlanStatus(rest.pop(0) if len(rest) > 1 else rest[0], {}, {})
    )
    return read_status(SimpleNamespace(clock=SYSTEM), PLAN, PLAN).by_partition


def test_two_partitions_that_lag_in_turn_are_not_drift(monkeypatch):
    first, second = {A: Status.DRIFTED, B: Status.DONE}, {A: Status.DONE, B: Status.DRIFTED}
    assert read(monkeypatch, first, second) == {A: Status.DONE, B: Status.MOVING}


def test_what_stays_drifted_is_drifted(monkeypatch):
    lasting = {A: Status.DRIFTED, B: Status.DONE}
    assert read(monkeypatch, {A: Status.DRIFTED, B: Status.DRIFTED}, lasting) == lasting


def test_what_is_right_at_once_is_read_once(monkeypatch):
    fine = {A: Status.DONE, B: Status.DONE}
    assert read(monkeypatch, fine, {A: Status.DRIFTED, B: Status.DRIFTED}) == fine


@pytest.mark.parametrize(
    ("reassignment", "status"),
    [
        (Reassignment((1, 4, 2), adding=(4,), removing=(2,)), Status.MOVING),  # the first stage
        (Reassignment((4, 3, 1), adding=(3,), removing=(1,)), Status.MOVING),  # the second, to the target
        (Reassignment((1, 4, 3), adding=(1,), removing=(3,)), Status.DRIFTED),  # back from the target to the first
        (Reassignment((1, 4, 3), adding=(3,), removing=(3,)), Status.DRIFTED),  # replaces the second, back to the first
    ],
)
def test_a_reassignment_back_to_a_stage_is_somebody_elses(reassignment, status):
    live = PartitionMetadata(reassignment.replicas, frozenset({4}), 4, internal=False)
    assert Ends({A: (4, 3)}, {A: (1, 2)}).status(A, live, reassignment) is status
