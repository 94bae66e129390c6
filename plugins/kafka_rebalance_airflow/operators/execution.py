"""The steps that change the cluster, and those that clean up after them. Each can be run again at any moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_rebalance_airflow.clean_up import clean_up_run, honour_cancels, refuse_if_cancelled
from kafka_rebalance_airflow.cluster_lock import lock_cluster
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.links import PlanPageLink
from kafka_rebalance_airflow.notifications import FINISHED, STARTED, notify_from
from kafka_rebalance_airflow.run_lock import execution_lock
from kafka_rebalance_airflow.templates import as_object

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.cluster import Cluster
    from rebalance_lib.execution import Job, Settings


class PlanOperator(BaseOperator):
    """A step on an approved plan.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param approved_digest: the digest of the plan that was approved.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "run_uri", "approved_digest")
    ui_color = "#dff3e8"
    operator_extra_links = (PlanPageLink(),)

    def __init__(self, *, kafka_conn_id: str, run_uri: str, approved_digest: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.approved_digest = approved_digest

    def open_cluster(self) -> Cluster:
        """Connect to the cluster."""
        return KafkaAdminHook(self.kafka_conn_id).get_conn()


class ArmOperator(PlanOperator):
    """Check, touching nothing, that the plan is the approved one; from here on the clean-up will run.

    The record of the review must say so, too: a review that somebody marked as a success has left none.

    This run must hold the cluster lock still: a run that is cleared much later may find another one on the cluster. A
    run that was cancelled goes on from here after it was cleared.
    """

    def execute(self, context: Context) -> None:
        """Compare the digests."""
        from rebalance_lib.errors import DriftError
        from rebalance_lib.execution import Run

        run = Run(self.run_uri)
        try:
            run.approved_plan(self.approved_digest)
        except DriftError as error:
            raise AirflowFailException(str(error)) from error
        cluster_id = run.snapshot().cluster_id
        review = run.review()
        if (review.get("digest"), review.get("cluster_id")) != (self.approved_digest, cluster_id):
            raise AirflowFailException(
                f"review.json of the run does not say that {self.approved_digest} is approved for the cluster "
                f"{cluster_id}: clear review_plan"
            )
        refuse_if_cancelled(context, run)
        lock_cluster(context, cluster_id)
        self.log.info("armed: remove_throttle and finalize now run whatever happens")


class ExecutionOperator(PlanOperator):
    """
    A step on an approved plan that depends on how the plan is executed.

    :param settings: throttle, caps, window and the rest, as `rebalance_lib.execution.Settings` reads them, or JSON of
        such an object.
    """

    template_fields = (*PlanOperator.template_fields, "settings")

    def __init__(self, *, settings: Mapping[str, Any] | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = settings

    def read_settings(self) -> Settings:
        """The settings, checked."""
        from rebalance_lib.execution import Settings

        return Settings.from_dict(as_object(self.settings))


def begin_execution(cluster: Cluster, job: Job, settings: Settings, log: Any) -> list[int]:
    """Check that the plan may be executed, note that it is, and throttle the brokers that take part; returns these.

    Raises:
        AirflowFailException: The cluster is no longer what the plan was made for.
        ClusterError: The plan must not be executed now.
    """
    from rebalance_lib.errors import DriftError
    from rebalance_lib.execution import preflight, set_throttles

    try:
        found = preflight(cluster, job, settings)
    except DriftError as error:  # waiting repairs much, but not this
        raise AirflowFailException(str(error)) from error
    for remark in found.remarks:
        log.warning(remark)
    brokers = set_throttles(cluster, job, found.status, settings, log=log.info)
    log.info("throttled to %s bytes/s on brokers %s", settings.pace.throttle, brokers)
    return brokers


class ApplyThrottleOperator(ExecutionOperator):
    """Check that the plan may be executed, and throttle the brokers that take part."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Set the throttle."""
        from rebalance_lib.execution import Run

        run = Run(self.run_uri)
        job, settings = run.job(self.approved_digest), self.read_settings()
        lock_cluster(context, job.cluster_id)
        with self.open_cluster() as cluster, execution_lock(run, cluster.clock):
            brokers = begin_execution(cluster, job, settings, self.log)
        return {"rate": settings.pace.throttle, "brokers": brokers}


class ExecutePlanOperator(ExecutionOperator):
    """
    Begin the first moves of the plan, as many as the caps allow; the sensor that follows begins the others.

    The throttle is set here too: cleared on its own, this task runs after the clean-up has removed it.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Check that the plan may be executed, then begin."""
        from rebalance_lib.execution import Executor, Run, add_partitions

        run = Run(self.run_uri)
        job, settings = run.job(self.approved_digest), self.read_settings()
        lock_cluster(context, job.cluster_id)
        with self.open_cluster() as cluster, execution_lock(run, cluster.clock) as watch:
            begin_execution(cluster, job, settings, self.log)
            if added := add_partitions(cluster, job):
                self.log.info("%s partitions were added", len(added))
            report = Executor(cluster, job, settings, log=self.log.info, watch=watch).check()
        self.log.info("%s", report)
        notify_from(context, STARTED, f"a rebalance of {self.kafka_conn_id} has begun: {report}")
        return {"state": str(report.state), "text": str(report)}


class TeardownOperator(BaseOperator):
    """A step that runs whatever happened: what it needs is in the run's directory, and no XCom of another task.

    :param run_uri: the run's artifacts.
    :param kafka_conn_id: connection to the cluster; the one that the run began with if it is empty.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "run_uri")
    operator_extra_links = (PlanPageLink(),)
    ui_color = "#f6e6e4"

    def __init__(self, *, run_uri: str, kafka_conn_id: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri


class RemoveThrottleOperator(TeardownOperator):
    """The clean-up: moves still under way are cancelled, and the throttles that were set before the run are restored.

    Does nothing for a run that was never approved. A plan that was completed has no move under way.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Restore what was saved; fails, and is retried, while something cannot be reached."""
        from rebalance_lib.execution import Run

        run = Run(self.run_uri)
        cleaned = clean_up_run(run, context, self.log, kafka_conn_id=self.kafka_conn_id)
        honour_cancels(context, run)
        return cleaned


class FinalizeOperator(TeardownOperator):
    """Elect the preferred leaders, compare the cluster with the plan, write the record of the run and the report.

    Fails if any step of the run failed: a run whose clean-up went well would otherwise end as a success. So would one
    that is marked failed before it is armed, since Airflow skips all that follows; nothing else is to be done then.

    :param ignored_tasks: tasks whose failure does not fail the run.
    :param armed_by: the task without whose success there is nothing to finish.
    :param required_tasks: tasks that nothing but a mark skips.
    """

    def __init__(
        self,
        *,
        ignored_tasks: Sequence[str] = (),
        armed_by: str = "",
        required_tasks: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.ignored_tasks = ignored_tasks
        self.armed_by = armed_by
        self.required_tasks = required_tasks

    def execute(self, context: Context) -> dict[str, Any]:
        """Finish what can be finished, and say how it ended."""
        from rebalance_lib.artifacts import RUN
        from rebalance_lib.execution import Run, finalize_run

        states = self._states(context)
        failed = sorted(task for task, state in states.items() if self._has_failed(task, state))
        if self.armed_by and states.get(self.armed_by) != "success":
            if failed:
                raise AirflowFailException(f"failed: {', '.join(failed)}. Nothing was changed.")
            raise AirflowSkipException("nothing was approved, and nothing was changed")
        run = Run(self.run_uri)
        review = run.review()
        conn_id = self.kafka_conn_id or run.artifacts.read_json(RUN)["kafka_conn_id"]
        with KafkaAdminHook(conn_id).get_conn() as cluster:
            outcome = finalize_run(
                cluster,
                run,
                run.settings(),
                approved_by=str(review.get("responded_by")),
                approved_at=str(review.get("responded_at")),
                failed_steps=failed,
            )
        self.log.info("%s; report in %s", outcome.verdict, outcome.report)
        if failed:
            raise AirflowFailException(f"failed: {', '.join(failed)}. {outcome.verdict} Report: {outcome.report}")
        if not outcome.completed:
            raise AirflowFailException(f"{outcome.verdict} Report: {outcome.report}")
        notify_from(context, FINISHED, f"the rebalance of {conn_id} is done: {outcome.verdict}")
        return {"verdict": outcome.verdict, "report": outcome.report}

    def _states(self, context: Context) -> dict[str, str]:
        run_id = context["run_id"]
        states = context["ti"].get_task_states(dag_id=context["dag"].dag_id, run_ids=[run_id])[run_id]
        return {task: str(state) for task, state in states.items() if task not in self.ignored_tasks}

    def _has_failed(self, task: str, state: str) -> bool:
        return state in ("failed", "upstream_failed") or (state == "skipped" and task in self.required_tasks)
