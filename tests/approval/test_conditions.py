"""Conditions of an approval: each says why it held or not."""

from __future__ import annotations

import pytest

from rebalance_lib.approval.conditions import (
    Answer,
    Condition,
    Person,
    Requested,
    answer_conditions,
    automatic_conditions,
    plan_conditions,
    refusals,
    request_conditions,
)
from rebalance_lib.approval.limits import ApprovalLimits
from rebalance_lib.approval.policy import NOT_CONFIGURED, ApprovalPolicy
from tests.approval.test_limits import summary

POLICY = ApprovalPolicy("approval: default", approvers=("1", "2"))
PLAN = {
    "risks": [],
    "goals": [{"goal": "racks", "met": True, "why": ""}, {"goal": "disk", "met": False, "why": "full"}],
}


def answer(id_="1", name="anna", **changed):
    return Answer(
        **{"person": Person(id_, name), "candidate": "full", "settings": {}, "reason": "", "at": "", **changed}
    )


def judged(one, by="carl", policy=POLICY, earlier=(), run_type="manual"):
    return refusals(answer_conditions(policy, Requested(by, run_type), one, PLAN, earlier))


def test_every_condition_says_why_it_held():
    conditions = answer_conditions(POLICY, Requested("carl", "manual"), answer(), PLAN)
    assert conditions == [
        Condition("approvers", True, "1 may approve"),
        Condition("requester_may_approve", True, "carl requested it"),
        Condition("reason_required", True, "no reason is required"),
    ]


@pytest.mark.parametrize("by", ["anna", "ANNA", " anna ", "1"])
def test_the_requester_is_known_by_name_or_id_however_it_is_written(by):
    assert judged(answer(), by=by) == [f"{by} requested this run, and the policy lets no requester approve"]


def test_an_approver_is_known_by_id_alone_since_names_can_be_chosen():
    assert judged(answer(id_="3", name="1")) == ["3 is no approver: the policy lets 1, 2 approve"]


@pytest.mark.parametrize(
    ("run_type", "refused"),
    [("scheduled", False), ("asset_triggered", False), ("manual", True), ("operator_triggered", True), ("", True)],
)
def test_who_requested_a_run_may_be_nobody_but_not_somebody_unknown(run_type, refused):
    assert bool(judged(answer(), by=None, run_type=run_type)) is refused
    assert not judged(answer(), by=None, run_type=run_type, policy=NOT_CONFIGURED)


@pytest.mark.parametrize("second", [Person("1", "other"), Person("2", "Anna")])
def test_a_second_approval_is_of_somebody_else_by_id_and_by_name(second):
    refused = judged(answer(person=second), earlier=[answer()])
    assert refused == [f"{second.id} approved already: another user must approve, too"]


def test_both_approve_the_same():
    other = answer("2", "ben", candidate="half", settings={"throttle": 2})
    assert judged(other, earlier=[answer(settings={"throttle": 1})]) == [
        "1 approved full: choose it",
        "1 approved it with throttle 1, not 2: give the same, or reject",
    ]


def test_goals_and_risks_of_a_plan():
    policy = ApprovalPolicy("p", allowed_risks=("Racks *",), required_goals=("racks", "disk", "cpu"))
    assert refusals(plan_conditions(policy, {**PLAN, "risks": ["Racks do not count", "Disks would overflow"]})) == [
        "the policy does not allow the risk: Disks would overflow",
        "the policy requires the goal disk, and the plan does not meet it: full",
        "the policy requires the goal cpu, and the plan is without it",
    ]


def test_a_form_only_tightens():
    two = ApprovalPolicy("p", approvers=("1", "2", "3"), approvals=2)
    assert not refusals(request_conditions(two, Requested(approvers=("1", "3"))))
    assert refusals(request_conditions(two, Requested(approvers=("1",)))) == [
        "the policy requires 2 approvals, and the form names 1 approver"
    ]
    assert refusals(request_conditions(POLICY, Requested(approvers=("1", "9")))) == [
        "the form lets 9 approve, the policy only 1, 2"
    ]


@pytest.mark.parametrize(
    ("of_policy", "of_form", "why"),
    [
        (100, 10**18, []),
        (99, 10**18, ["bytes moved 100 is above 99"]),
        (10**18, 99, ["bytes moved 100 is above 99"]),
        (100, None, []),
    ],
)
def test_of_two_limits_the_lower_one_counts(of_policy, of_form, why):
    policy = ApprovalPolicy("p", automatic=ApprovalLimits(of_policy))
    assert refusals(automatic_conditions(policy, ApprovalLimits(of_form), summary())) == why


def test_there_is_no_automatic_approval_unless_a_policy_has_it():
    assert refusals(automatic_conditions(NOT_CONFIGURED, ApprovalLimits(10**18), summary())) == [
        "there is no automatic approval by the approval policy (no approval policy is configured)"
    ]
    racks = ApprovalPolicy("p", automatic=ApprovalLimits(10**18), required_goals=("racks",))
    assert refusals(automatic_conditions(racks, ApprovalLimits(10**18), summary())) == [
        "the policy requires the goal racks, and the plan is without it"
    ]
