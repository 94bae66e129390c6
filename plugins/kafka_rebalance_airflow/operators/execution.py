"""The steps that change the cluster, and those that put it right again. Each can be run again at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.cluster import Cluster
    from rebalance_lib.execution import PlanStatus, Run, Throttle


class PlanOperator(BaseOperator):
    """A step on an approved plan.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param approved_digest: the digest of the plan that was approved.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "run_uri", "approved_digest")
    ui_color = "#dff3e8"

    def __init__(self, *, kafka_conn_id: str, run_uri: str, approved_digest: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.approved_digest = approved_digest

    def open_cluster(self) -> Cluster:
        """Connect to the cluster."""
        return KafkaAdminHook(self.kafka_conn_id).get_conn()


class ArmOperator(PlanOperator):
    """Check, touching nothing, that the plan is the approved one; from here on the clean-up will run."""

    def execute(self, context: Context) -> None:
        """Compare the digests."""
        from rebalance_lib.execution import Run

        Run(self.run_uri).approved_plan(self.approved_digest)
        self.log.info("armed: remove_throttle and finalize now run whatever happens")


class ThrottledOperator(PlanOperator):
    """
    A step on an approved plan whose moves are throttled.

    :param rate: bytes per second on each broker that takes part.
    """

    template_fields = (*PlanOperator.template_fields, "rate")

    def __init__(self, *, rate: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def throttle(self, cluster: Cluster, run: Run, status: PlanStatus) -> Throttle:
        """Throttle what is left of the plan; what stood before is saved with the run's artifacts first."""
        from rebalance_lib.execution import apply_throttle

        throttle = apply_throttle(cluster, run.plan(), status, int(self.rate), run.artifacts)
        self.log.info("throttled to %s bytes/s on brokers %s", self.rate, throttle.brokers)
        return throttle


class ApplyThrottleOperator(ThrottledOperator):
    """Check that the plan still fits, and throttle its moves."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Set the throttle."""
        from rebalance_lib.execution import Run

        run = Run(self.run_uri)
        with self.open_cluster() as cluster:
            throttle = self.throttle(cluster, run, run.preflight(cluster, self.approved_digest))
        return {"rate": int(self.rate), "brokers": throttle.brokers, "topics": len(throttle.replicas)}


class ExecutePlanOperator(ThrottledOperator):
    """
    Hand the controller what is left of the plan.

    The throttle is made sure of first: cleared on its own, this task runs after the clean-up took the throttle off.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Check that the plan still fits, then submit it."""
        from rebalance_lib.execution import Run, submit

        run = Run(self.run_uri)
        with self.open_cluster() as cluster:
            status = run.preflight(cluster, self.approved_digest)
            self.throttle(cluster, run, status)
            submitted = asdict(submit(cluster, run.plan(), status))
        self.log.info("handed to the controller: %s", submitted)
        return submitted


class RemoveThrottleOperator(PlanOperator):
    """Put back every throttle setting that stood before the run. Does nothing if there is nothing to put back."""

    ui_color = "#f6e6e4"

    def execute(self, context: Context) -> dict[str, Any]:
        """Restore what was saved; fails, and is retried, while something cannot be reached."""
        from rebalance_lib.execution import Run, Status, restore_throttles

        run = Run(self.run_uri)
        with self.open_cluster() as cluster:
            restored = restore_throttles(cluster, run.artifacts)
            if moving := run.status(cluster).having(Status.MOVING):
                self.log.warning("%s partitions are still moving, from now on without a throttle", len(moving))
        if restored.left:
            raise RuntimeError(f"throttles are left on the cluster: {restored.left}")
        self.log.info("put back on topics %s and brokers %s", restored.topics, restored.brokers)
        return {"topics": len(restored.topics), "brokers": restored.brokers}


class FinalizeOperator(ThrottledOperator):
    """Elect the preferred leaders, compare the cluster with the plan, write the report.

    Fails if any step of the run failed: a run whose clean-up went well would otherwise end as a success.

    :param review_task_id: the task whose answer says who approved the plan.
    """

    ui_color = "#f6e6e4"

    def __init__(self, *, review_task_id: str = "review_plan", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.review_task_id = review_task_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Finish what can be finished, and say how it ended."""
        from rebalance_lib.execution import Run, conclude

        failed = self._failed(context)
        review = context["ti"].xcom_pull(task_ids=self.review_task_id) or {}
        with self.open_cluster() as cluster:
            outcome = conclude(
                cluster,
                Run(self.run_uri),
                approved_by=str(review.get("responded_by")),
                approved_at=str(review.get("responded_at")),
                rate=int(self.rate),
                failed_steps=failed,
            )
        self.log.info("%s; report in %s", outcome.verdict, outcome.report)
        if failed:
            raise AirflowFailException(f"failed: {', '.join(failed)}. {outcome.verdict}. Report: {outcome.report}")
        if not outcome.reached:
            raise AirflowFailException(f"{outcome.verdict}. Report: {outcome.report}")
        return {"verdict": outcome.verdict, "report": outcome.report}

    def _failed(self, context: Context) -> list[str]:
        run_id = context["run_id"]
        states = context["ti"].get_task_states(dag_id=context["dag"].dag_id, run_ids=[run_id])[run_id]
        return sorted(task for task, state in states.items() if str(state) in ("failed", "upstream_failed"))
