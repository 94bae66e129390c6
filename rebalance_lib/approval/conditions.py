"""What an approval policy decides, as conditions that each say why they held or did not.

Conditions are found at three moments, and all of one moment must hold:

    the review begins      request_conditions    the form asks for no more than the policy allows
    nobody is asked        automatic_conditions  the recommended plan is within the limits
    somebody approves      answer_conditions     this user may approve this plan, with these settings, for this reason

A form only adds to what the policy requires: its approvers must be some of the policy's, and of two limits the lower
one counts. All of them are pure: who asks, who answers and what the summary says is handed in.

Example: anna requests a run; the policy wants one approval, of anna or ben. When anna approves, ``approvers`` holds and
``requester_may_approve`` does not, since "anna requested this run, and the policy lets no requester approve". So it is
asked again, and ben can approve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from rebalance_lib.approval.limits import ApprovalLimits
from rebalance_lib.approval.policy import ApprovalPolicy

BY_THEMSELVES = ("scheduled", "asset_triggered")  # types of runs that no user triggers


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: the field of the policy that it comes from, whether it held, and why."""

    rule: str
    held: bool
    why: str


@dataclass(frozen=True, slots=True)
class Person:
    """A user, by the id and the name that Airflow's auth manager gives."""

    id: str
    name: str

    def is_called(self, *names: str) -> bool:
        """Whether one of these names is this user's, whatever its case: for rules that exclude somebody."""
        return not {self.id.strip().casefold(), self.name.strip().casefold()}.isdisjoint(
            name.strip().casefold() for name in names
        )


@dataclass(frozen=True, slots=True)
class Requested:
    """What a run asks for.

    Args:
        by: the name of the user who triggered it; None if Airflow knows none.
        run_type: Airflow's type of the run, such as ``manual`` or ``scheduled``.
        approvers: those that its form names; empty if it names none.
    """

    by: str | None = None
    run_type: str = ""
    approvers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that approves: of whom, which candidate, with which settings, why and when."""

    person: Person | None
    candidate: str
    settings: Mapping[str, Any]
    reason: str
    at: str

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


def refusals(conditions: Iterable[Condition]) -> list[str]:
    """Why something is refused; empty if every condition held."""
    return [one.why for one in conditions if not one.held]


def request_conditions(policy: ApprovalPolicy, requested: Requested) -> list[Condition]:
    """Whether the form only tightens the policy."""
    unlisted = [name for name in requested.approvers if policy.approvers and name not in policy.approvers]
    some = len(set(requested.approvers)) or policy.approvals
    return [
        Condition(
            "approvers",
            not unlisted,
            f"the form lets {_list(unlisted)} approve, the policy only {_list(policy.approvers)}"
            if unlisted
            else "the form names no approver beyond the policy's",
        ),
        Condition(
            "approvals",
            some >= policy.approvals,
            f"the policy requires {policy.approvals} approvals, and the form names {some} approver"
            if some < policy.approvals
            else f"{policy.approvals} of the approvers can approve",
        ),
    ]


def automatic_conditions(policy: ApprovalPolicy, limits: ApprovalLimits, summary: Mapping[str, Any]) -> list[Condition]:
    """Whether the recommended plan needs nobody: within the limits of the policy and of the form."""
    if policy.automatic is None:
        why = "there is no automatic approval by the approval policy"
        return [Condition("automatic", False, f"{why} ({policy.source})")]
    objections = policy.automatic.tightened(limits).objections(summary)
    recommended = summary["candidates"][summary["recommended"]]
    within = [Condition("automatic", False, why) for why in objections]
    return [
        *(within or [Condition("automatic", True, "the plan has no risk, and is within all limits")]),
        *plan_conditions(policy, recommended),
    ]


def plan_conditions(policy: ApprovalPolicy, candidate: Mapping[str, Any]) -> list[Condition]:
    """Whether the policy lets this plan be approved by anybody."""
    return [*_risks(policy, candidate["risks"]), *_goals(policy, candidate.get("goals", ()))]


def answer_conditions(
    policy: ApprovalPolicy,
    requested: Requested,
    answer: Answer,
    candidate: Mapping[str, Any],
    earlier: Sequence[Answer] = (),
) -> list[Condition]:
    """Whether an answer counts as an approval.

    Args:
        policy: The policy of the cluster.
        requested: What the run asks for.
        answer: The answer.
        candidate: What the summary says of the plan that it chooses.
        earlier: Answers that count already.
    """
    if answer.person is None:
        return [Condition("approvers", False, "the answer names no user: only a user can approve")]
    return [
        _approver(policy, requested, answer.person),
        _requester(policy, requested, answer.person),
        _reason(policy, answer.reason),
        *plan_conditions(policy, candidate),
        *_second(answer, answer.person, earlier),
    ]


def _approver(policy: ApprovalPolicy, requested: Requested, person: Person) -> Condition:
    for whose, approvers in (("policy", policy.approvers), ("form", requested.approvers)):
        if approvers and person.id not in approvers:
            return Condition(
                "approvers", False, f"{person.id} is no approver: the {whose} lets {_list(approvers)} approve"
            )
    return Condition("approvers", True, f"{person.id} may approve")


def _requester(policy: ApprovalPolicy, requested: Requested, person: Person) -> Condition:
    rule, by = "requester_may_approve", requested.by
    if policy.requester_may_approve:
        return Condition(rule, True, "the policy lets the requester approve")
    if by:
        own = person.is_called(by)
        why = f"{by} requested this run, and the policy lets no requester approve" if own else f"{by} requested it"
        return Condition(rule, not own, why)
    if requested.run_type in BY_THEMSELVES:
        return Condition(rule, True, f"nobody requested it: the run is {requested.run_type}")
    return Condition(
        rule,
        False,
        "Airflow does not know who requested this run, and the policy lets no requester approve: "
        "trigger a new run in the UI or over the REST API",
    )


def _reason(policy: ApprovalPolicy, reason: str) -> Condition:
    if reason.strip() or not policy.reason_required:
        return Condition("reason_required", True, "a reason is given" if reason.strip() else "no reason is required")
    return Condition("reason_required", False, "the policy requires a reason: fill in the field reason")


def _risks(policy: ApprovalPolicy, risks: Sequence[str]) -> Iterator[Condition]:
    for risk in risks:
        allowed = any(fnmatchcase(risk, pattern) for pattern in policy.allowed_risks)
        why = f"the policy allows the risk: {risk}" if allowed else f"the policy does not allow the risk: {risk}"
        yield Condition("allowed_risks", allowed, why)


def _goals(policy: ApprovalPolicy, goals: Iterable[Mapping[str, Any]]) -> Iterator[Condition]:
    found = {goal["goal"]: goal for goal in goals}
    for name in policy.required_goals:
        if name not in found:
            yield Condition("required_goals", False, f"the policy requires the goal {name}, and the plan is without it")
        elif not found[name]["met"]:
            why = f"the policy requires the goal {name}, and the plan does not meet it: {found[name]['why']}"
            yield Condition("required_goals", False, why)
        else:
            yield Condition("required_goals", True, f"the plan meets the goal {name}")


def _second(answer: Answer, person: Person, earlier: Sequence[Answer]) -> Iterator[Condition]:
    for first in earlier:
        if first.person is None or person.is_called(first.person.id, first.person.name):
            yield Condition("approvals", False, f"{person.id} approved already: another user must approve, too")
            continue
        same = first.candidate == answer.candidate
        why = f"both approve {first.candidate}" if same else f"{first.person.id} approved {first.candidate}: choose it"
        yield Condition("approvals", same, why)
        changed = sorted(name for name in first.settings if first.settings[name] != answer.settings.get(name))
        for name in changed:
            yield Condition(
                "approvals",
                False,
                f"{first.person.id} approved it with {name} {first.settings[name]}, not {answer.settings.get(name)}: "
                "give the same, or reject",
            )


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
