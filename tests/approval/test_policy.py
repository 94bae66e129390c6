"""Approval policies as they are written: what each field takes and refuses, and which policy counts for a cluster."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from rebalance_lib.approval.limits import ApprovalLimits
from rebalance_lib.approval.policy import NOT_CONFIGURED, ApprovalPolicies, ApprovalPolicy
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.window import Window

TAKEN = {
    "approvers": (["anna"], ("anna",)),
    "approvals": (2, 2),
    "requester_may_approve": (True, True),
    "automatic": ({"max_bytes": 5, "max_seconds": 1.5}, ApprovalLimits(5, max_seconds=1.5)),
    "allowed_risks": ([], ()),
    "required_goals": (["racks"], ("racks",)),
    "reason_required": (True, True),
    "quiet_hours": ("07:00-20:00 Europe/Berlin", Window.parse("07:00-20:00 Europe/Berlin")),
}
REFUSED = {
    "approvers": [None, [], "anna", [""], [" anna"], [1], ["anna", "anna"], {"anna": True}],
    "approvals": [None, 0, 3, -1, 1.0, "1", True, math.nan, math.inf],
    "requester_may_approve": [None, "yes", 1, "true"],
    "automatic": [
        *(None, True, {}, 5, {"max_seconds": 5}, {"max_bytes": None}, {"max_bytes": 1, "max_byte": 1}),
        *({"max_bytes": value} for value in (math.nan, math.inf, -math.inf, -1, "1", True, 2**63, 10**400)),
        *({"max_bytes": 1, "max_replicas": value} for value in (math.nan, -1, 2**63)),
        *({"max_bytes": 1, "max_leaders": value} for value in (math.nan, -1, 2**63)),
        *({"max_bytes": 1, "max_seconds": value} for value in (math.nan, math.inf, -0.1, 10**9)),
    ],
    "allowed_risks": [None, "*", [""], [3]],
    "required_goals": [None, "racks", [""], [3], ["racks", "racks"]],
    "reason_required": [None, "yes", 0],
    "quiet_hours": [None, "", "night", "25:00-26:00", "07:00-07:00", "07:00-20:00 Nowhere/Town", 7, math.nan],
}


def test_every_field_has_values_that_it_takes_and_values_that_it_refuses():
    own = {one.name for one in fields(ApprovalPolicy)} - {"source"}
    assert own == TAKEN.keys() == REFUSED.keys()


@pytest.mark.parametrize("name", TAKEN)
def test_a_field_is_read(name):
    given, read = TAKEN[name]
    others = {"approvers": ["anna", "ben"]} if name == "approvals" else {}
    policy = ApprovalPolicies.from_dict({"default": {**others, name: given}}).of_cluster("c")
    assert getattr(policy, name) == read
    assert policy.as_dict()[name] is not None


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_a_value_that_a_field_cannot_have_is_refused_by_where_it_is(name, value):
    for given, where in (
        ({"default": {name: value}}, "approval: default"),
        ({"clusters": {"c": {name: value}}}, "approval: clusters: c"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            ApprovalPolicies.from_dict(given)
        assert str(refused.value).startswith(f"{where}: ")
        assert name in str(refused.value) or "max_" in str(refused.value)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "approval is None: give an object with default and clusters in it"),
        ([], r"approval is \[\]"),
        ({}, "approval is empty"),
        ({"cluster": {}}, "approval: there is no 'cluster': use default and clusters"),
        ({"default": None}, "approval: default is None"),
        ({"clusters": {"c": None}}, "approval: clusters: c is None"),
        ({"clusters": {123: {}}}, "approval: clusters: 123 is no text: put it in quotes"),
        ({"default": {"aprovers": ["a"]}}, "approval: default: there is no 'aprovers': use some of approvers, "),
        ({"default": {"source": "x"}}, "approval: default: there is no 'source'"),
        (
            {"default": {"approvers": ["anna"], "approvals": 2}},
            "approval: default: approvals is 2, but approvers names 1: name more, or ask for less",
        ),
        ({"default": {"approvers": ["anna"]}, "clusters": {"c": {"approvals": 2}}}, "approval: clusters: c: approvals"),
    ],
)
def test_a_section_that_cannot_be_read_says_where(given, why):
    with pytest.raises(InvalidInputError, match=why):
        ApprovalPolicies.from_dict(given)


def test_the_example_of_the_module():
    policies = ApprovalPolicies.from_dict(
        {
            "default": {"approvers": ["anna", "ben"], "approvals": 2},
            "clusters": {"4L6g3nShT-eMCtK--X86sw": {"approvals": 1, "automatic": {"max_bytes": 50_000_000_000}}},
        }
    )
    own, other = policies.of_cluster("4L6g3nShT-eMCtK--X86sw"), policies.of_cluster("another")
    assert (own.approvers, own.approvals, own.automatic) == (("anna", "ben"), 1, ApprovalLimits(50_000_000_000))
    assert (other.approvers, other.approvals, other.automatic) == (("anna", "ben"), 2, None)
    assert not other.requester_may_approve


def test_a_cluster_takes_back_the_automatic_approval_of_the_default():
    given = {"default": {"automatic": {"max_bytes": 5}}, "clusters": {"c": {"automatic": False}}}
    assert ApprovalPolicies.from_dict(given).of_cluster("c").automatic is None


def test_without_any_policy_a_person_approves_and_nothing_is_automatic():
    policy = ApprovalPolicies().of_cluster("c")
    assert policy is NOT_CONFIGURED
    assert (policy.approvals, policy.requester_may_approve, policy.automatic) == (1, True, None)


def test_policies_for_other_clusters_alone_approve_nothing_here():
    with pytest.raises(InvalidInputError, match="no policy for the cluster c, and no default: add one of them"):
        ApprovalPolicies.from_dict({"clusters": {"C": {}}}).of_cluster("c")
