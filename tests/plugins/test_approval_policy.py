"""The approval policy holds, whatever a form, a REST call, the clusters' file or an answer asks for.

Each attempt goes the way of a run: the fields of the clusters' file are the defaults of the form, the form is read, and
the review is asked and answered as Airflow does it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.clusters import read_clusters
from kafka_rebalance_airflow.fields import rebalance_params
from kafka_rebalance_airflow.form import read_form
from kafka_rebalance_airflow.operators.execution import ArmOperator
from kafka_rebalance_airflow.operators.review import ReviewPlanOperator
from rebalance_lib.execution import Kind, Run, Settings, make_request
from rebalance_lib.execution.requests import Controls, read_requests
from rebalance_lib.plan import Plan
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import TopicPartition
from tests.topology.test_snapshot import snapshot_of

PETABYTE = 10**15
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
RISK = "Brokers 4 are down"
TWO = "approval: {default: {approvers: [anna, ben], approvals: 2}}"
ONE = "approval: {default: {approvers: [anna, ben]}}"
ANYBODY = "approval: {default: {requester_may_approve: true}}"
SMALL = "approval: {default: {approvers: [anna], automatic: {max_bytes: 1000, max_replicas: 1, max_leaders: 0}}}"
QUIET = "approval: {default: {quiet_hours: 07:00-20:00}}"
AUTOMATIC = {"review": "automatic", "max_bytes": 10**18}


@dataclass(frozen=True)
class Attempt:
    """What somebody tries: with this policy, these fields in the file and in the form, and these answers."""

    policy: str = ONE
    fields: str = "{kafka_conn_id: k}"
    conf: dict[str, Any] = field(default_factory=dict)
    answers: tuple[dict[str, Any], ...] = ()
    by: str | None = "mallory"
    run_type: str = "manual"
    size: int = PETABYTE
    down: bool = False  # whether a broker is down, which is a risk


def says(user, option="Approve", **params_input):
    """An answer of this user."""
    return {
        "chosen_options": [option],
        "params_input": params_input,
        "responded_at": datetime.now(UTC),
        "responded_by_user": user and {"id": user, "name": user},
    }


@pytest.fixture
def run_of(tmp_path, monkeypatch):
    """Carry out an attempt; returns its run, and what was said to it."""
    from airflow.providers.standard.operators.hitl import HITLOperator

    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__CLUSTERS", str(tmp_path / "clusters.yaml"))
    run = Run((tmp_path / "run").as_uri())

    def write_policy(policy, fields="{kafka_conn_id: k}"):
        (tmp_path / "clusters.yaml").write_text(f"clusters:\n  c: {fields}\n{policy}\n")

    def carry_out(attempt):
        write_policy(attempt.policy)
        snapshot = snapshot_of(
            [(1, None, True), (2, None, True), (3, None, True), (4, None, not attempt.down)],
            [("orders", 0, 0, 2, True, False, attempt.size), ("orders", 0, 1, 1, False, False, attempt.size)],
        )
        run.write_snapshot(snapshot)
        publish_plan(run.artifacts / "plan", Plan.from_assignment({TopicPartition("orders", 0): [2, 3]}), snapshot)
        context = {
            "dag": SimpleNamespace(dag_id="kafka_rebalance"),
            "dag_run": SimpleNamespace(
                start_date=datetime.now(UTC), triggering_user_name=attempt.by, run_type=attempt.run_type
            ),
            "run_id": "manual__1",
            "ti": SimpleNamespace(get_dr_count=lambda **_: 0, skip=lambda **_: None),
        }
        try:
            write_policy(attempt.policy, attempt.fields)
            entry, *_ = read_clusters().clusters
            if entry.problem:
                raise ValueError(entry.problem)  # as check_form refuses it
            defaults = entry.fields
            params = {name: param.resolve() for name, param in rebalance_params(defaults).items()}
            form = read_form({**params, **attempt.conf})

            def review():
                return ReviewPlanOperator(
                    task_id="review_plan",
                    subject="?",
                    kafka_conn_id="k",
                    run_uri=run.uri,
                    settings=form.settings,
                    review=form.review,
                )

            review().execute(context)
            for answer in attempt.answers:
                if isinstance(answer, str):
                    write_policy(answer)
                else:
                    review().execute_complete(context, answer)
        except (AirflowFailException, ValueError) as error:
            return run, str(error)
        return run, said(run)

    return carry_out


def said(run):
    """Why what was asked for was refused."""
    if not run.artifacts.exists("approvals.json"):
        return ""
    found = run.artifacts.read_json("approvals.json")
    conditions = [*found["automatic"], *(one for answer in found["answers"] for one in answer["conditions"])]
    return "; ".join(one["why"] for one in conditions if not one["held"])


ATTEMPTS = {
    # over the REST API, as conf, or in the form
    "a limit of an exabyte for automatic approval without a policy": (
        Attempt("", conf=AUTOMATIC),
        "there is no automatic approval by the approval policy (no approval policy is configured)",
    ),
    "automatic approval where the policy has none": (
        Attempt(ONE, conf=AUTOMATIC),
        "there is no automatic approval by the approval policy (approval: default)",
    ),
    "a limit of bytes above the policy's": (
        Attempt(SMALL, conf=AUTOMATIC),
        "bytes moved 1,000,000,000,000,000 is above 1,000",
    ),
    "a limit of replicas above the policy's": (
        Attempt(SMALL.replace("max_replicas: 1", "max_replicas: 0"), conf={**AUTOMATIC, "max_replicas": 99}, size=1),
        "replicas moved 1 is above 0",
    ),
    "a limit of time above the policy's": (
        Attempt(
            SMALL.replace("max_bytes: 1000", "max_bytes: 1000000000000000, max_seconds: 60"),
            conf={**AUTOMATIC, "max_seconds": 10**7},
        ),
        "seconds 10,000,000 is above 60",
    ),
    "automatic approval of a plan with a risk": (Attempt(SMALL, conf=AUTOMATIC, size=1, down=True), RISK),
    "automatic approval without a limit of bytes": (
        Attempt(SMALL, conf={"review": "automatic"}),
        "automatic review needs a limit in bytes: set max_bytes",
    ),
    "a limit of NaN bytes": (
        Attempt(SMALL, conf={**AUTOMATIC, "max_bytes": math.nan}),
        "max_bytes is nan: give a finite number",
    ),
    "a limit of infinite bytes": (
        Attempt(SMALL, conf={**AUTOMATIC, "max_bytes": math.inf}),
        "max_bytes is inf: give a finite number",
    ),
    "a limit of more bytes than Kafka can count": (
        Attempt(SMALL, conf={**AUTOMATIC, "max_bytes": 2**63}),
        f"max_bytes of limits of automatic approval is {2**63}: give a number of 0 to {2**63 - 1}",
    ),
    "a negative limit": (Attempt(SMALL, conf={**AUTOMATIC, "max_leaders": -1}), "is -1: give a number of 0 to"),
    "a limit of NaN seconds": (
        Attempt(SMALL, conf={**AUTOMATIC, "max_seconds": math.nan}),
        "max_seconds is nan: give a finite number",
    ),
    "a threshold of NaN": (
        Attempt(conf={"threshold_bytes": math.nan}),
        "threshold_bytes is nan: give a finite number",
    ),
    "a timeout of NaN hours": (Attempt(conf={"timeout_hours": math.nan}), "timeout_hours is nan: give a finite number"),
    "an approver of one's own": (
        Attempt(conf={"approvers": ["mallory"]}),
        "the form lets mallory approve, the policy only anna, ben",
    ),
    "an approver of one's own beside one of the policy's": (
        Attempt(conf={"approvers": ["anna", "mallory"]}),
        "the form lets mallory approve, the policy only anna, ben",
    ),
    "one approver where two must approve": (
        Attempt(TWO, conf={"approvers": ["anna", "anna"]}),
        "the policy requires 2 approvals, and the form names 1 approver",
    ),
    # in the fields of a cluster in the file, which are the defaults of its form
    "automatic approval by the fields of the cluster": (
        Attempt(ONE, "{kafka_conn_id: k, review: automatic, max_bytes: 1000000000000000000}"),
        "there is no automatic approval by the approval policy (approval: default)",
    ),
    "a limit of .nan bytes in the file": (
        Attempt(SMALL, "{kafka_conn_id: k, review: automatic, max_bytes: .nan}"),
        "cluster c: max_bytes cannot be nan: give a finite number",
    ),
    "a limit of .inf seconds in the file": (
        Attempt(SMALL, "{kafka_conn_id: k, review: automatic, max_bytes: 1, max_seconds: .inf}"),
        "cluster c: max_seconds cannot be inf: give a finite number",
    ),
    "a threshold of .nan in the file": (
        Attempt(fields="{kafka_conn_id: k, threshold_bytes: .nan}"),
        "cluster c: threshold_bytes cannot be nan: give a finite number",
    ),
    "approvers of their own in the fields of the cluster": (
        Attempt(fields="{kafka_conn_id: k, approvers: [mallory]}"),
        "the form lets mallory approve, the policy only anna, ben",
    ),
    "a policy among the fields of the cluster": (
        Attempt(fields="{kafka_conn_id: k, approval: {approvals: 1}}"),
        "cluster c: there is no field 'approval'",
    ),
    # a policy that cannot be read, or that is no policy for this cluster
    "a policy with a limit of .nan bytes": (
        Attempt("approval: {default: {automatic: {max_bytes: .nan}}}", conf=AUTOMATIC),
        "approval: default: max_bytes of limits of automatic approval is nan: give a number of 0 to",
    ),
    "a policy with no limit of bytes": (
        Attempt("approval: {default: {automatic: {max_seconds: 60}}}", conf=AUTOMATIC),
        "approval: default: automatic is {'max_seconds': 60}: give an object with max_bytes in it, or false",
    ),
    "a policy with a field that is misspelt": (
        Attempt("approval: {default: {aprovals: 2}}"),
        "approval: default: there is no 'aprovals': use some of approvers, approvals",
    ),
    "a policy with no approvals": (
        Attempt("approval: {default: {approvals: 0}}"),
        "approval: default: approvals is 0: give 1 or 2",
    ),
    "a policy whose list of approvers is empty": (
        Attempt("approval: {default: {approvers: }}"),
        "approval: default: approvers is None: give a list of at least one id of a user",
    ),
    "a policy that is empty": (Attempt("approval:"), "approval is None: give an object with default and clusters"),
    "a policy that is given twice": (
        Attempt("approval: {default: {approvals: 2, approvals: 1}}"),
        "approval: default: approvals is there twice",
    ),
    "policies for other clusters alone": (
        Attempt("approval: {clusters: {other: {approvals: 2}}}", answers=(says("mallory"),)),
        "approval has no policy for the cluster c, and no default: add one of them",
    ),
    "a file that is damaged while the plan waits": (
        Attempt(answers=("approval: {default: {approvers: [", says("anna"))),
        "the approval policy cannot be read, so that nothing is approved",
    ),
    "a section of the file that is misspelt": (
        Attempt("aproval: {default: {approvals: 2}}", answers=(says("anna"),)),
        "there is no 'aproval': use snapshots, spark, approval and clusters",
    ),
    "a policy behind an entry that is no YAML": (
        Attempt(answers=('  d: {kafka_conn_id: "k}\napproval: {default: {approvers: [anna]}}', says("mallory"))),
        "the approval policy cannot be read, so that nothing is approved",
    ),
    # in the answer
    "an answer of the requester": (
        Attempt(by="anna", answers=(says("anna"),)),
        "anna requested this run, and the policy lets no requester approve",
    ),
    "an answer of the requester, whose name is written otherwise": (
        Attempt("approval: {default: {}}", by="Anna ", answers=(says("anna"),)),
        "Anna  requested this run, and the policy lets no requester approve",
    ),
    "an answer over the REST API of a user who is no approver": (
        Attempt(answers=(says("mallory"),), by="anna"),
        "mallory is no approver: the policy lets anna, ben approve",
    ),
    "an answer of an approver whom the form leaves out": (
        Attempt(conf={"approvers": ["ben"]}, answers=(says("anna"),)),
        "anna is no approver: the form lets ben approve",
    ),
    "an answer of a user with the name of an approver in capitals": (
        Attempt(answers=(says("ANNA"),)),
        "ANNA is no approver: the policy lets anna, ben approve",
    ),
    "an answer of nobody": (Attempt(ANYBODY, answers=(says(None),)), "the answer names no user: only a user can"),
    "an answer of nobody without a policy": (Attempt("", answers=(says(None),)), "the answer names no user"),
    "a run of an unknown requester": (
        Attempt(by=None, run_type="operator_triggered", answers=(says("anna"),)),
        "Airflow does not know who requested this run, and the policy lets no requester approve",
    ),
    "the same user twice": (
        Attempt(TWO, answers=(says("anna"), says("anna"))),
        "anna approved already: another user must approve, too",
    ),
    "a second user with another throttle": (
        Attempt(TWO, answers=(says("anna"), says("ben", throttle=10**9))),
        "anna approved it with throttle 50000000, not 1000000000: give the same, or reject",
    ),
    "one of two approvals after the first approver was removed from the policy": (
        Attempt(TWO, answers=(says("anna"), TWO.replace("anna", "carl"), says("ben"), says("anna"))),
        "anna is no approver: the policy lets carl, ben approve",
    ),
    "an answer without a reason": (
        Attempt("approval: {default: {reason_required: true}}", answers=(says("anna"), says("anna", reason="  "))),
        "the policy requires a reason: fill in the field reason",
    ),
    "a plan with a risk that the policy does not allow": (
        Attempt("approval: {default: {allowed_risks: [Racks*]}}", down=True, answers=(says("anna"),)),
        f"the policy does not allow the risk: {RISK}",
    ),
    "a plan that does not meet a goal": (
        Attempt("approval: {default: {required_goals: [disk]}}", answers=(says("anna"),)),
        "the policy requires the goal disk, and the plan does not meet it",
    ),
    "a plan that was made without a goal": (
        Attempt("approval: {default: {required_goals: [cpu_of_next_year]}}", answers=(says("anna"),)),
        "the policy requires the goal cpu_of_next_year, and the plan is without it",
    ),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_to_loosen_the_policy_is_refused_with_its_sentence(run_of, name):
    attempt, sentence = ATTEMPTS[name]
    run, text = run_of(attempt)
    assert sentence in text
    assert run.review() == {}, "nothing is approved"
    with pytest.raises(AirflowFailException, match="is approved for the cluster c: clear review_plan"):
        arm(run)


def arm(run):
    ArmOperator(task_id="arm", kafka_conn_id="k", run_uri=run.uri, approved_digest=run.plan().digest).execute(
        {"dag_run": SimpleNamespace(start_date=None)}
    )


HOURS = {
    "a window of the form": ({"window": "08:00-18:00"}, None),
    "no window at all": ({}, None),
    "quiet hours of one's own in conf": ({"quiet_hours": None}, None),
    "quiet hours of one's own in the answer": ({}, {"quiet_hours": None, "window": ""}),
}


@pytest.mark.parametrize("name", HOURS)
@pytest.mark.parametrize("then", ["", "08:00-18:00"], ids=["no window later", "another window later"])
def test_quiet_hours_cannot_be_widened(run_of, name, then):
    conf, changed = HOURS[name]
    run, _ = run_of(Attempt(QUIET, conf=conf, answers=(says("anna", **(changed or {})),)))
    settings = Settings.from_dict(run.review()["settings"])
    make_request(run.artifacts, Kind.WINDOW, then, by="mallory")
    for one in (settings, Controls.of(settings, read_requests(run.artifacts)).settings):
        assert one.closed_at(NOON) == "these are the quiet hours 07:00-20:00 UTC of the approval policy"
        assert one.quiet_hours is not None


# -- what the policy allows -------------------------------------------------------------------------------------------


def test_two_users_approve_and_the_record_has_both_and_every_rule(run_of):
    run, _ = run_of(Attempt(TWO, by="carl", answers=(says("mallory"), says("anna", reason="full disks"), says("ben"))))
    review = run.review()
    assert (review["candidate"], review["digest"]) == ("given", run.plan().digest)
    assert (review["responded_by"], review["requested_by"], review["cluster_id"]) == ("anna, ben", "carl", "c")
    assert [(one["person"]["id"], one["counts"], one["reason"]) for one in review["answers"]] == [
        ("mallory", False, ""),
        ("anna", True, "full disks"),
        ("ben", True, ""),
    ]
    assert review["policy"]["source"] == "approval: default"
    assert {one["rule"] for one in review["conditions"]} >= {"approvers", "approvals", "requester_may_approve"}
    assert all(one["held"] for one in review["conditions"])


def test_a_scheduled_run_has_no_requester_and_is_approved_by_one_user(run_of):
    run, _ = run_of(Attempt(by=None, run_type="scheduled", answers=(says("anna"),)))
    assert (run.review()["responded_by"], run.review()["requested_by"]) == ("anna", "scheduled")


def test_automatic_approval_within_the_limits_of_policy_and_form(run_of):
    run, _ = run_of(Attempt(SMALL, conf={"review": "automatic", "max_bytes": 500}, size=500))
    assert run.review()["responded_by"] == "automatic approval, within its limits"
    assert run.review()["conditions"] == [
        {"rule": "automatic", "held": True, "why": "the plan has no risk, and is within all limits"}
    ]


def test_a_form_may_tighten_the_limits(run_of):
    run, text = run_of(Attempt(SMALL, conf={"review": "automatic", "max_bytes": 499}, size=500))
    assert (run.review(), text) == ({}, "bytes moved 500 is above 499")


def test_without_a_policy_the_requester_may_approve_as_before(run_of):
    review = run_of(Attempt("", by="anna", answers=(says("anna"),)))[0].review()
    assert (review["responded_by"], review["policy"]["source"]) == ("anna", "no approval policy is configured")


def test_a_rejection_needs_no_permission_and_no_policy_that_can_be_read(run_of):
    run, _ = run_of(Attempt(answers=("approval: [", {**says("mallory", "Reject"), "params_input": {}})))
    assert (run.review()["candidate"], run.review()["responded_by"]) == (None, "mallory")


def test_asking_again_does_not_put_off_the_deadline(run_of):
    run, _ = run_of(Attempt(conf={"timeout_hours": 2}, answers=(says("mallory"),)))
    found = run.artifacts.read_json("approvals.json")
    left = datetime.fromisoformat(found["deadline"]) - datetime.now(UTC)
    assert 7100 < left.total_seconds() <= 7200
