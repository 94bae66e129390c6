"""When a machine may decide."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from rebalance_lib.approval.limits import ApprovalLimits, Thresholds
from rebalance_lib.errors import InvalidInputError

PLAN = {
    "figures": {"bytes_moved": 60, "log_dir_bytes": 40, "replicas_moved": 2, "leaders_moved": 1},
    "seconds": 30.0,
    "risks": [],
}


def summary(mode="balance", **changed):
    return {"mode": mode, "recommended": "full", "candidates": {"full": {**PLAN, **changed}}}


SMALL = summary()


def test_a_plan_within_all_limits_needs_nobody():
    limits = ApprovalLimits(max_bytes=100, max_replicas=2, max_leaders=1, max_seconds=30)
    assert limits.objections(SMALL) == []


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({}, "no limit in bytes is set"),
        ({"max_bytes": 99}, "bytes moved 100 is above 99"),
        ({"max_bytes": 100, "max_replicas": 1}, "replicas moved 2 is above 1"),
        ({"max_bytes": 100, "max_leaders": 0}, "leaders moved 1 is above 0"),
        ({"max_bytes": 100, "max_seconds": 29.5}, "seconds 30 is above 30"),
    ],
)
def test_a_plan_above_a_limit_needs_a_person(limits, told):
    assert ApprovalLimits.from_dict(limits).objections(SMALL) == [told]


def test_a_plan_with_a_risk_needs_a_person():
    assert ApprovalLimits(max_bytes=100).objections(summary(risks=["Log dirs would overflow."])) == [
        "Log dirs would overflow."
    ]


FIGURES = {
    "bytes_before": {"most": 1.04, "least": 0.97},
    "replicas_before": {"most": 1.0, "least": 0.0},
    "leaders_before": {"most": 1.0, "least": 1.0},
}


def test_under_every_threshold_the_figures_are_told():
    assert (
        Thresholds(bytes=0.1, leaders=0.1).under(FIGURES)
        == "bytes 4.0% of at most 10.0%, leaders 0.0% of at most 10.0%"
    )


def test_an_empty_broker_is_as_uneven_as_a_full_one():
    assert Thresholds(bytes=0.1, replicas=1.0).under(FIGURES) is None


def test_without_thresholds_nothing_is_under_them():
    assert Thresholds().under(FIGURES) is None


@pytest.mark.parametrize("given", [{"max_byte": 1}, {"max_bytes": -1}, {"max_bytes": "1"}, {"max_bytes": True}])
def test_what_is_no_limit_is_refused(given):
    with pytest.raises(InvalidInputError, match="limits of automatic approval"):
        ApprovalLimits.from_dict(given)


@pytest.mark.parametrize("mode", ["partitions", "replication-factor"])
def test_what_another_plan_cannot_undo_needs_a_person(mode):
    assert ApprovalLimits(max_bytes=100).objections(summary(mode)) == [
        f"mode {mode} changes what another plan cannot undo"
    ]


NO_NUMBERS = [math.nan, math.inf, -math.inf, -1, 10**400, True, "1"]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: str(value)[:6])
@pytest.mark.parametrize("field", [(one, name.name) for one in (ApprovalLimits, Thresholds) for name in fields(one)])
def test_no_field_takes_what_is_no_number_or_out_of_range(field, value):
    """A limit of NaN bytes approved a petabyte, and under a threshold of NaN every cluster was even enough."""
    read, name = field
    with pytest.raises(InvalidInputError, match=rf"{name} of .* is .*: give a number of 0 to \d+"):
        read.from_dict({name: value})


@pytest.mark.parametrize(("value", "most"), [(2**63 - 1, 2**63), (366 * 86_400, 366 * 86_400 + 1)])
def test_the_largest_limit_is_taken_and_the_next_one_is_refused(value, most):
    name = "max_bytes" if value > 10**9 else "max_seconds"
    assert getattr(ApprovalLimits.from_dict({name: value}), name) == value
    with pytest.raises(InvalidInputError):
        ApprovalLimits.from_dict({name: most})
