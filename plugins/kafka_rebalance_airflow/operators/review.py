"""The step where people decide, or limits do, as the approval policy of the cluster says.

Airflow keeps one answer of a task, and lets anybody answer who may, over its API, too. So each answer is judged here
(`rebalance_lib.approval`). One that the policy refuses moves nothing: it is written down with the sentence that says
why, and the task asks again. One that counts, where the policy wants two, is written down likewise, and the task asks
again for the second. A rejection needs no permission. When the task is cleared or tried again, all approvals are void.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_rebalance_airflow import notifications
from kafka_rebalance_airflow.approval import (
    APPROVALS,
    TIME_IS_UP,
    Approvals,
    as_records,
    read_policy,
    requested,
    responder,
)
from kafka_rebalance_airflow.clean_up import clean_up_run, refuse_if_cancelled
from kafka_rebalance_airflow.links import PlanPageLink, plan_page_url
from kafka_rebalance_airflow.templates import as_object
from rebalance_lib.approval.conditions import (
    Answer,
    Condition,
    Requested,
    answer_conditions,
    automatic_conditions,
    plan_conditions,
    refusals,
    request_conditions,
)
from rebalance_lib.approval.limits import ApprovalLimits, Thresholds
from rebalance_lib.approval.policy import NOT_CONFIGURED, ApprovalPolicy

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.execution import Run


class ReviewPlanOperator(ApprovalOperator):
    """Show the candidates to a person, who approves one of them or rejects all.

    A plan with nothing to do, or for a cluster that is even enough, is skipped. One within the limits of automatic
    approval waits for nobody, if the approval policy of the cluster allows that. What was approved is the digest of the
    plan that was shown: later steps refuse any other.

    Airflow keeps text and options of the first time that a task asks, and shows them again when it is cleared. So what
    was shown is kept with the run, answers are judged by it, and other plans are not asked for.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param settings: how the plan is executed; the person may change throttle and caps.
    :param review: ``automatic``, ``limits``, ``approvers``, ``timeout_hours``, as `form.read_form` makes them.
    :param thresholds: under these the cluster is even enough.
    :param clusters_file: the clusters' file with the approval policies, if the installation sets none.

    ``settings``, ``review`` and ``thresholds`` may be JSON of such an object. Returns what ``review.json`` has:
    candidate, digest, settings, who answered when, and which rules of the policy let it pass.
    """

    template_fields = (
        *ApprovalOperator.template_fields,
        "kafka_conn_id",
        "run_uri",
        "settings",
        "review",
        "thresholds",
    )
    ui_color = "#fdf3d8"
    operator_extra_links = (PlanPageLink(),)

    def __init__(
        self,
        *,
        kafka_conn_id: str,
        run_uri: str,
        settings: Mapping[str, Any] | str,
        review: Mapping[str, Any] | str = "{}",
        thresholds: Mapping[str, Any] | str = "{}",
        clusters_file: str = "",
        **kwargs: Any,
    ) -> None:
        # Fields of the DAG's form are none of the review's.
        super().__init__(**{**kwargs, "params": _changeable({})})
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.settings = settings
        self.review = review
        self.thresholds = thresholds
        self.clusters_file = clusters_file

    def execute(self, context: Context) -> Any:
        """Put the candidates on the page and wait, unless there is nothing to ask."""
        from rebalance_lib.artifacts import PROGRESS, REVIEW
        from rebalance_lib.report import of_candidate, render_review

        run, summary = self._planned()
        refuse_if_cancelled(context, run)
        # What had begun before the review was cleared is cleaned up, and its answer is void.
        clean_up_run(run, context, self.log, kafka_conn_id=self.kafka_conn_id)
        run.artifacts.remove_files([REVIEW, PROGRESS, APPROVALS])
        self._skip_if_even(summary)
        policy = self._policy(summary)
        review = as_object(self.review)
        self._refuse_request(policy, context, summary)
        conditions: list[Condition] = []
        if review.get("automatic"):
            limits = ApprovalLimits.from_dict(review.get("limits") or {})
            conditions = automatic_conditions(policy, limits, summary)
            if not (objections := refusals(conditions)):
                answered = _answered("automatic approval, within its limits")
                record = {**answered, **_record(policy, summary), "conditions": as_records(conditions)}
                settings = _under(policy, as_object(self.settings))
                return self._keep(run, summary["recommended"], settings, [self.APPROVE], record)
            self.log.info("a person is needed: %s", "; ".join(objections))
        page = plan_page_url(context["dag"].dag_id, context["run_id"])
        self.body = "\n\n".join(
            [render_review(of_candidate(summary, summary["recommended"]), page), *_described(policy)]
        )
        hours = review.get("timeout_hours")
        deadline = datetime.now(UTC) + timedelta(hours=float(hours)) if hours else None
        approvals = Approvals(deadline.isoformat() if deadline else None, as_records(conditions))
        approvals.write(run.artifacts)
        self._prepare(run, summary, policy, approvals)
        notifications.notify_from(context, notifications.REVIEW, f"{self.subject} A plan waits for its review.")
        return super().execute(context)

    def _prepare(self, run: Run, summary: dict[str, Any], policy: ApprovalPolicy, approvals: Approvals) -> None:
        """Set what Airflow asks with."""
        self.options = list(self._show(run, summary))
        self.params = ParamsDict(_changeable(as_object(self.settings)))
        if approvers := as_object(self.review).get("approvers") or policy.approvers:
            self.assigned_users = [{"id": name, "name": name} for name in approvers]
        if seconds := approvals.seconds_left():
            self.response_timeout = timedelta(seconds=seconds)
            self.defaults = [self.REJECT]

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Resume with the answer: keep it with the run, and pass on the digest that was shown.

        A rejection skips what follows by raising, so that all of this comes before.
        """
        from rebalance_lib.artifacts import REVIEW, SHOWN

        if "error" in event:
            return super().execute_complete(context, event)
        run, summary = self._planned()
        shown = run.artifacts.read_json(SHOWN)
        chosen = event["chosen_options"][0]
        person = responder(event)
        answered = _answered(person.name if person else TIME_IS_UP, event["responded_at"])
        self.options = list(shown["options"])
        self.validate_chosen_options([chosen])
        candidate = shown["options"][chosen]
        clean_up_run(run, context, self.log, kafka_conn_id=self.kafka_conn_id)
        if candidate is None:
            record = {"candidate": None, "chosen_options": [chosen], **answered, **_reason(event)}
            run.artifacts.write_json(REVIEW, {**record, "answers": Approvals.read(run.artifacts).answers})
            return self._end(context, event, self.REJECT)
        refuse_if_cancelled(context, run)
        digest = shown["digests"][candidate]
        if _digests(summary).get(candidate) != digest:
            raise AirflowFailException(f"{candidate} is not the plan that was shown, {digest}: trigger a new run")
        policy = self._policy(summary)
        settings = _under(policy, self._changed(event.get("params_input") or {}))
        answer = Answer(person, candidate, settings, _reason(event)["reason"], answered["responded_at"])
        return self._judge(context, event, run, policy, answer)

    def _judge(
        self, context: Context, event: dict[str, Any], run: Run, policy: ApprovalPolicy, answer: Answer
    ) -> dict[str, Any]:
        """Let an answer count, or refuse it; ask again until there are as many approvals as the policy wants."""
        _, summary = self._planned()
        approvals, wanted = Approvals.read(run.artifacts), self._requested(context)

        def judged(one: Answer, earlier: list[Answer]) -> list[Condition]:
            found = summary["candidates"][one.candidate]
            return [*request_conditions(policy, wanted), *answer_conditions(policy, wanted, one, found, earlier)]

        # The policy may be another one than when the first approved.
        approvals.counted = [one for one in approvals.counted if not refusals(judged(one, []))]
        conditions = judged(answer, approvals.counted)
        refused = refusals(conditions)
        approvals.note(answer, conditions, counts=not refused)
        approvals.write(run.artifacts)
        if refused or len(approvals.counted) < policy.approvals:
            again = f"The answer is refused: {'; '.join(refused)}." if refused else _first(answer)
            return self._ask_again(context, run, policy, approvals, again)
        people = [one.person.name for one in approvals.counted if one.person]
        record = {
            **_answered(", ".join(people), event["responded_at"]),
            **_record(policy, summary),
            "requested_by": wanted.by or wanted.run_type,
            "automatic": approvals.automatic,
            "conditions": as_records(conditions),
            "answers": approvals.answers,
        }
        given = self._keep(run, answer.candidate, dict(answer.settings), list(event["chosen_options"]), record)
        self._end(context, event, self.APPROVE)
        return given

    def _ask_again(
        self, context: Context, run: Run, policy: ApprovalPolicy, approvals: Approvals, why: str
    ) -> dict[str, Any]:
        """Wait for another answer; Airflow shows the same text and options."""
        _, summary = self._planned()
        self.log.warning("%s The review is asked again.", why)
        self._prepare(run, summary, policy, approvals)
        notifications.notify_from(context, notifications.REVIEW, f"{self.subject} {why} The plan waits for an answer.")
        return dict(super().execute(context) or {})

    def _end(self, context: Context, event: dict[str, Any], option: str) -> Any:
        """Let Airflow's own operator end the task: after a rejection, it skips what follows."""
        self.options = [self.APPROVE, self.REJECT]
        return super().execute_complete(context, {**event, "chosen_options": [option], "params_input": {}})

    def _policy(self, summary: dict[str, Any]) -> ApprovalPolicy:
        return read_policy(self.clusters_file, str(summary["cluster_id"]))

    def _requested(self, context: Context) -> Requested:
        return requested(context, as_object(self.review).get("approvers") or ())

    def _refuse_request(self, policy: ApprovalPolicy, context: Context, summary: dict[str, Any]) -> None:
        """Refuse a form that asks for more than the policy allows, and plans that nobody may approve.

        Raises:
            AirflowFailException: It does, or no candidate may be approved.
        """
        refused = refusals(request_conditions(policy, self._requested(context)))
        of_plans = [refusals(plan_conditions(policy, one)) for one in summary["candidates"].values()]
        if all(of_plans):
            refused += list(dict.fromkeys(why for some in of_plans for why in some))
        if refused:
            raise AirflowFailException(
                f"the approval policy ({policy.source}) refuses this run: {'; '.join(refused)}. Trigger a new run that "
                "it allows, or ask those who own the cluster to change the policy"
            )

    def _planned(self) -> tuple[Run, dict[str, Any]]:
        """The run and its summary, if the plan is one of those in it."""
        from rebalance_lib.execution import Run

        run = Run(self.run_uri)
        plan, summary = run.plan(), run.summary()
        if plan.digest not in [one["digest"] for one in summary["candidates"].values()]:
            raise AirflowFailException(
                f"the plan {plan.digest} is none of those in the summary: clear compute_placement"
            )
        return run, summary

    def _skip_if_even(self, summary: dict[str, Any]) -> None:
        full = summary["candidates"][summary["recommended"]]
        even = Thresholds.from_dict(as_object(self.thresholds)).under(full["figures"])
        if even:
            raise AirflowSkipException(f"the cluster is even enough: {even}")
        if not any(one["figures"]["partitions_changed"] for one in summary["candidates"].values()):
            raise AirflowSkipException("the cluster already is as planned: nothing to move, nothing to approve")

    def _show(self, run: Run, summary: dict[str, Any]) -> dict[str, str | None]:
        """Note what is shown, once; returns the options.

        Raises:
            AirflowFailException: Airflow would show other plans, those of the first time.
        """
        from rebalance_lib.artifacts import SHOWN

        options = self._options(summary)
        shown = {"options": options, "digests": _digests(summary)}
        if not run.artifacts.exists(SHOWN):
            run.artifacts.write_json(SHOWN, shown)
        elif run.artifacts.read_json(SHOWN) != shown:
            raise AirflowFailException(
                "the plans are not those that this run was first asked about, and Airflow would still show these: "
                "trigger a new run"
            )
        return options

    def _options(self, summary: dict[str, Any]) -> dict[str, str | None]:
        """What a person can choose: a way to approve each candidate that changes anything, and Reject."""
        found, best = summary["candidates"], summary["recommended"]
        offered = [name for name, one in found.items() if one["figures"]["partitions_changed"]]
        names = sorted(offered, key=lambda name: (name != best, -found[name]["figures"]["bytes_moved"]))
        if len(names) == 1:
            return {self.APPROVE: names[0], self.REJECT: None}
        return {**{f"{self.APPROVE} {name}": name for name in names}, self.REJECT: None}

    def _changed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings as the person wants them: an emptied field is no limit. What the API brings is checked here."""
        from rebalance_lib.errors import RebalanceError
        from rebalance_lib.execution import Settings

        values = {name: given[name] for name in ("throttle", "bytes_in_flight") if name in given}
        if "moves_per_broker" in given:
            values |= dict.fromkeys(("moves_in", "moves_out"), given["moves_per_broker"])
        values = {name: 0 if value is None and name != "throttle" else value for name, value in values.items()}
        try:
            return Settings.from_dict({**as_object(self.settings), **values}).as_dict()
        except RebalanceError as error:
            raise AirflowFailException(
                f"the review cannot be taken: {error}; clear review_plan to answer again"
            ) from error

    def _keep(
        self, run: Run, candidate: str, settings: dict[str, Any], chosen: list[str], record: dict[str, Any]
    ) -> dict[str, Any]:
        """Make the candidate the plan of the run, and write down who wanted it, and which rules let it pass."""
        from rebalance_lib.artifacts import REVIEW

        plan = run.choose(candidate)
        if not len(plan):
            raise AirflowSkipException(f"candidate {candidate} changes nothing: nothing to move")
        given = {
            "candidate": candidate,
            "digest": plan.digest,
            "chosen_options": chosen,
            "settings": settings,
            **record,
        }
        run.artifacts.write_json(REVIEW, given)
        self.log.info("%s is approved by %s: %s", candidate, record["responded_by"], plan.digest)
        return given


def _digests(summary: dict[str, Any]) -> dict[str, str]:
    return {name: one["digest"] for name, one in summary["candidates"].items()}


def _answered(by: str, at: datetime | None = None) -> dict[str, str]:
    return {"responded_by": by, "responded_at": (at or datetime.now(UTC)).isoformat(timespec="seconds")}


def _record(policy: ApprovalPolicy, summary: dict[str, Any]) -> dict[str, Any]:
    return {"cluster_id": summary["cluster_id"], "policy": policy.as_dict()}


def _reason(event: Mapping[str, Any]) -> dict[str, str]:
    given = (event.get("params_input") or {}).get("reason")
    return {"reason": given.strip() if isinstance(given, str) else ""}


def _under(policy: ApprovalPolicy, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the quiet hours of the policy, which no form has a field for."""
    return {**settings, "quiet_hours": None if policy.quiet_hours is None else str(policy.quiet_hours)}


def _first(answer: Answer) -> str:
    who = answer.person.name if answer.person else ""
    return f"{who} approved {answer.candidate}, and a second user must approve it."


def _described(policy: ApprovalPolicy) -> list[str]:
    """What reviewers should know of the policy, as a paragraph; none if nothing is configured."""
    if policy is NOT_CONFIGURED:
        return []
    approvers = f", of {', '.join(policy.approvers)}" if policy.approvers else ""
    said = [
        f"{policy.approvals} approval{'s' if policy.approvals > 1 else ''}{approvers}",
        *(() if policy.requester_may_approve else ("not of the user who requested the run",)),
        *(("a reason is required",) if policy.reason_required else ()),
        *((f"no move begins in the quiet hours {policy.quiet_hours}",) if policy.quiet_hours else ()),
    ]
    return [f"**Approval policy:** {'; '.join(said)}."]


def _changeable(settings: Mapping[str, Any]) -> dict[str, Param]:
    """The fields that a reviewer can change, as they are set."""
    fields = {
        "throttle": ("Throttle (bytes/s)", settings.get("throttle")),
        "moves_per_broker": ("Moves per broker, 0 for no limit", settings.get("moves_in")),
        "bytes_in_flight": ("Bytes in flight, 0 for no limit", settings.get("bytes_in_flight")),
    }
    numbers = {
        name: Param(value, type=["integer", "null"], minimum=0, title=title) for name, (title, value) in fields.items()
    }
    return {**numbers, "reason": Param(None, type=["string", "null"], title="Reason")}
