"""The step where a person decides, or limits do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_rebalance_airflow import notifications
from kafka_rebalance_airflow.clean_up import clean_up_run, refuse_if_cancelled
from kafka_rebalance_airflow.links import PlanPageLink, plan_page_url
from kafka_rebalance_airflow.templates import as_object

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.execution import Run


class ReviewPlanOperator(ApprovalOperator):
    """Show the candidates to a person, who approves one of them or rejects all.

    A plan with nothing to do, or for a cluster that is even enough, is skipped. One within the limits of automatic
    approval waits for nobody. What was approved is the digest of the plan that was shown: later steps refuse any other.

    Airflow keeps text and options of the first time that a task asks, and shows them again when it is cleared. So what
    was shown is kept with the run, answers are judged by it, and other plans are not asked for.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param settings: how the plan is executed; the person may change throttle and caps.
    :param review: ``automatic``, ``limits``, ``approvers``, ``timeout_hours``, as `form.read_form` makes them.
    :param thresholds: under these the cluster is even enough.

    Each may be JSON of such an object. Returns candidate, digest, settings, and who answered when.
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
        **kwargs: Any,
    ) -> None:
        # Fields of the DAG's form are none of the review's.
        super().__init__(**{**kwargs, "params": _changeable({})})
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.settings = settings
        self.review = review
        self.thresholds = thresholds

    def execute(self, context: Context) -> Any:
        """Put the candidates on the page and wait, unless there is nothing to ask."""
        from rebalance_lib.artifacts import PROGRESS, REVIEW
        from rebalance_lib.report import of_candidate, render_review

        run, summary = self._planned()
        refuse_if_cancelled(context, run)
        # What had begun before the review was cleared is cleaned up, and its answer is void.
        clean_up_run(run, context, self.log, kafka_conn_id=self.kafka_conn_id)
        run.artifacts.remove_files([REVIEW, PROGRESS])
        self._skip_if_even(summary)
        review = as_object(self.review)
        if review.get("automatic"):
            objections = self._objections(summary, review)
            if not objections:
                answered = _answered("automatic approval, within its limits")
                return self._keep(run, summary["recommended"], as_object(self.settings), self.APPROVE, answered)
            self.log.info("a person is needed: %s", "; ".join(objections))
        self.options = list(self._show(run, summary))
        self.params = ParamsDict(_changeable(as_object(self.settings)))
        page = plan_page_url(context["dag"].dag_id, context["run_id"])
        self.body = render_review(of_candidate(summary, summary["recommended"]), page)
        if approvers := review.get("approvers"):
            self.assigned_users = [{"id": name, "name": name} for name in approvers]
        if hours := review.get("timeout_hours"):
            self.response_timeout = timedelta(hours=float(hours))
            self.defaults = [self.REJECT]
        notifications.notify_from(context, notifications.REVIEW, f"{self.subject} A plan waits for its review.")
        return super().execute(context)

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
        user = (event.get("responded_by_user") or {}).get("name") or "nobody: the time is up"
        answered = _answered(user, event["responded_at"])
        self.options = list(shown["options"])
        self.validate_chosen_options([chosen])
        candidate = shown["options"][chosen]
        self.options = [self.APPROVE, self.REJECT]  # from here on it is one or the other
        clean_up_run(run, context, self.log, kafka_conn_id=self.kafka_conn_id)
        if candidate is None:
            run.artifacts.write_json(REVIEW, {"candidate": None, "chosen_options": [chosen], **answered})
            return super().execute_complete(context, {**event, "params_input": {}})
        refuse_if_cancelled(context, run)
        digest = shown["digests"][candidate]
        if _digests(summary).get(candidate) != digest:
            raise AirflowFailException(f"{candidate} is not the plan that was shown, {digest}: trigger a new run")
        settings = self._changed(event.get("params_input") or {})
        given = self._keep(run, candidate, settings, chosen, answered)
        super().execute_complete(context, {**event, "chosen_options": [self.APPROVE], "params_input": {}})
        return given

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
        from rebalance_lib.plan.limits import Thresholds

        full = summary["candidates"][summary["recommended"]]
        even = Thresholds.from_dict(as_object(self.thresholds)).under(full["figures"])
        if even:
            raise AirflowSkipException(f"the cluster is even enough: {even}")
        if not any(one["figures"]["partitions_changed"] for one in summary["candidates"].values()):
            raise AirflowSkipException("the cluster already is as planned: nothing to move, nothing to approve")

    def _objections(self, summary: dict[str, Any], review: dict[str, Any]) -> list[str]:
        from rebalance_lib.plan.limits import ApprovalLimits

        limits = ApprovalLimits.from_dict(review.get("limits") or {})
        return limits.objections(summary)

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
        self, run: Run, candidate: str, settings: dict[str, Any], chosen: str, answered: dict[str, str]
    ) -> dict[str, Any]:
        """Make the candidate the plan of the run, and write down who wanted it."""
        from rebalance_lib.artifacts import REVIEW

        plan = run.choose(candidate)
        if not len(plan):
            raise AirflowSkipException(f"candidate {candidate} changes nothing: nothing to move")
        given = {
            "candidate": candidate,
            "digest": plan.digest,
            "chosen_options": [chosen],
            "settings": settings,
            **answered,
        }
        run.artifacts.write_json(REVIEW, given)
        self.log.info("%s is approved by %s: %s", candidate, answered["responded_by"], plan.digest)
        return given


def _digests(summary: dict[str, Any]) -> dict[str, str]:
    return {name: one["digest"] for name, one in summary["candidates"].items()}


def _answered(by: str, at: datetime | None = None) -> dict[str, str]:
    return {"responded_by": by, "responded_at": (at or datetime.now(UTC)).isoformat(timespec="seconds")}


def _changeable(settings: Mapping[str, Any]) -> dict[str, Param]:
    """The fields that a reviewer can change, as they are set."""
    fields = {
        "throttle": ("Throttle (bytes/s)", settings.get("throttle")),
        "moves_per_broker": ("Moves per broker, 0 for no limit", settings.get("moves_in")),
        "bytes_in_flight": ("Bytes in flight, 0 for no limit", settings.get("bytes_in_flight")),
    }
    return {
        name: Param(value, type=["integer", "null"], minimum=0, title=title) for name, (title, value) in fields.items()
    }
