"""Where a partition stands, and that it is drifted only if it is shown so every time."""

from __future__ import annotations

from types import SimpleNamespace

from rebalance_lib.clock import SYSTEM
from rebalance_lib.execution import plan_status as status_module
from rebalance_lib.execution.plan_status import PlanStatus, Status, read_status
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
