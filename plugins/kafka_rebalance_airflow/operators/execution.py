"""The steps that change the cluster, and those that put it right again. Each can be run again at any moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.claims import take_claim
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.links import PlanPageLink
from kafka_rebalance_airflow.notifications import FINISHED, STARTED, notify_from
from kafka_rebalance_airflow.templates import as_object
from kafka_rebalance_airflow.way_out import refuse_if_cancelled, take_way_out
from kafka_rebalance_airflow.wishes import asking

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

    The cluster must be this run's still: a run that is cleared much later may find another one on it. A run that was
    cancelled may go on from here.
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
        refuse_if_cancelled(context, run)
        take_claim(context, run.snapshot().cluster_id)
        self.log.info("armed: remove_throttle and finalize now run whatever happens")


class SettledOperator(PlanOperator):
    """
    A step on an approved plan that depends on how the plan is carried out.

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

    def throttled(self, cluster: Cluster, job: Job, context: Context) -> list[int]:
        """Check that the plan may be carried out, and throttle what is left of it."""
        from rebalance_lib.errors import DriftError
        from rebalance_lib.execution import preflight, set_throttles

        take_claim(context, job.cluster_id)
        settings = self.read_settings()
        try:
            found = preflight(cluster, job, settings)
        except DriftError as error:  # waiting mends much, but not this
            raise AirflowFailException(str(error)) from error
        for remark in found.remarks:
            self.log.warning(remark)
        brokers = set_throttles(cluster, job, found.status, settings)
        self.log.info("throttled to %s bytes/s on brokers %s", settings.pace.throttle, brokers)
        return brokers


class ApplyThrottleOperator(SettledOperator):
    """Check that the plan may be carried out, and throttle its moves."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Set the throttle."""
        from rebalance_lib.execution import Run

        with self.open_cluster() as cluster:
            brokers = self.throttled(cluster, Run(self.run_uri).job(self.approved_digest), context)
        return {"rate": self.read_settings().pace.throttle, "brokers": brokers}


class ExecutePlanOperator(SettledOperator):
    """
    Begin the first moves of the plan, as many as the caps allow; the sensor that follows begins the others.

    The throttle is made sure of first: cleared on its own, this task runs after the clean-up took the throttle off.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Check that the plan may be carried out, then begin."""
        from rebalance_lib.execution import Executor, Run, add_partitions

        job = Run(self.run_uri).job(self.approved_digest)
        with self.open_cluster() as cluster:
            self.throttled(cluster, job, context)
            if added := add_partitions(cluster, job):
                self.log.info("%s partitions were added", len(added))
            report = Executor(
                cluster, job, self.read_settings(), tell=self.log.info, ask_rate=asking(self.kafka_conn_id)
            ).check()
        self.log.info("%s", report)
        notify_from(context, STARTED, f"a rebalance over {self.kafka_conn_id} has begun: {report}")
        return {"state": str(report.state), "text": str(report)}


class WayOutOperator(BaseOperator):
    """A step that runs whatever happened: what it needs is in the run's directory, and no other task's answer.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "run_uri")
    operator_extra_links = (PlanPageLink(),)
    ui_color = "#f6e6e4"

    def __init__(self, *, kafka_conn_id: str, run_uri: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri


class RemoveThrottleOperator(WayOutOperator):
    """The way out: moves still under way are cancelled, and every throttle that stood before the run is put back.

    Does nothing for a run that was never approved. A plan that was reached has no move under way.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Restore what was saved; fails, and is retried, while something cannot be reached."""
        from rebalance_lib.execution import Run

        return take_way_out(Run(self.run_uri), context, self.log, kafka_conn_id=self.kafka_conn_id)


class FinalizeOperator(WayOutOperator):
    """Elect the preferred leaders, compare the cluster with the plan, write the record of the run and the report.

    Fails if any step of the run failed: a run whose clean-up went well would otherwise end as a success.

    :param beside: tasks whose failure is none of the run's.
    """

    def __init__(self, *, beside: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beside = beside

    def execute(self, context: Context) -> dict[str, Any]:
        """Finish what can be finished, and say how it ended."""
        from rebalance_lib.execution import Run, conclude

        failed = self._failed(context)
        run = Run(self.run_uri)
        review = run.review()
        with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
            outcome = conclude(
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
        if not outcome.reached:
            raise AirflowFailException(f"{outcome.verdict} Report: {outcome.report}")
        notify_from(context, FINISHED, f"the rebalance over {self.kafka_conn_id} is done: {outcome.verdict}")
        return {"verdict": outcome.verdict, "report": outcome.report}

    def _failed(self, context: Context) -> list[str]:
        run_id = context["run_id"]
        states = context["ti"].get_task_states(dag_id=context["dag"].dag_id, run_ids=[run_id])[run_id]
        ended = {task: str(state) for task, state in states.items() if task not in self.beside}
        return sorted(task for task, state in ended.items() if state in ("failed", "upstream_failed"))
