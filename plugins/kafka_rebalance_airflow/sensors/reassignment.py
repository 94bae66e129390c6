"""Wait until the plan is completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.links import PlanPageLink
from kafka_rebalance_airflow.templates import as_object

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.execution import Job, Run, Settings


class VerifyPlanSensor(BaseSensorOperator):
    """Execute the plan until every partition is at its target, with all replicas in sync.

    It waits in the triggerer and holds no worker slot: there, moves begin as others end, and at every check the cluster
    is compared with the plan.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param approved_digest: the digest of the plan that was approved.
    :param interval: seconds between two checks.
    :param settings: throttle, caps, window and the rest, as `rebalance_lib.execution.Settings` reads them, or JSON of
        such an object.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "run_uri", "approved_digest", "interval", "settings")
    ui_color = "#dff3e8"
    operator_extra_links = (PlanPageLink(),)

    def __init__(
        self,
        *,
        kafka_conn_id: str,
        run_uri: str,
        approved_digest: str,
        settings: Mapping[str, Any] | str,
        interval: float | str = 30,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.approved_digest = approved_digest
        self.settings = settings
        self.interval = interval

    def execute(self, context: Context) -> Any:
        """Check once; if the run has not ended by then, leave the rest to the triggerer."""
        from kafka_rebalance_airflow.clean_up import clean_up_mark
        from kafka_rebalance_airflow.cluster_lock import lock_cluster
        from kafka_rebalance_airflow.triggers.reassignment import ENDED, PlanTrigger, keep_progress
        from rebalance_lib.errors import InvalidInputError
        from rebalance_lib.execution import Run, Settings
        from rebalance_lib.execution.settings import check_seconds

        interval = float(self.interval)
        try:
            check_seconds("interval", interval)
        except InvalidInputError as error:
            raise AirflowFailException(str(error)) from error
        run, settings = Run(self.run_uri), Settings.from_dict(as_object(self.settings))
        job = run.job(self.approved_digest)
        lock_cluster(context, job.cluster_id)
        mark = clean_up_mark(run.artifacts)
        event = self._check(run, job, settings)
        if event is not None:
            self.log.info(event["text"])
            keep_progress(self.run_uri, event)
            if event["status"] in ENDED:
                return self.execute_complete(context, event)
        return self.defer(
            trigger=PlanTrigger(
                kafka_conn_id=self.kafka_conn_id,
                run_uri=self.run_uri,
                approved_digest=self.approved_digest,
                interval=interval,
                settings=as_object(self.settings),
                clean_up_mark=mark,
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def _check(self, run: Run, job: Job, settings: Settings) -> dict[str, Any] | None:
        """What the first check finds; None if it failed, and the triggerer goes on.

        A run that has ended, of which this task alone was cleared, begins again as in ``execute_plan``.
        """
        from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
        from kafka_rebalance_airflow.operators.execution import begin_execution
        from kafka_rebalance_airflow.run_lock import execution_lock
        from kafka_rebalance_airflow.triggers.reassignment import as_event
        from rebalance_lib.errors import ClusterError
        from rebalance_lib.execution import Executor
        from rebalance_lib.execution.records.execution import read_execution

        with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster, execution_lock(run, cluster.clock) as watch:
            execution = read_execution(job.artifacts)
            if execution is not None and execution.ended:
                begin_execution(cluster, job, settings, self.log)
            try:
                return as_event(Executor(cluster, job, settings, log=self.log.info, watch=watch).check())
            except ClusterError as error:
                self.log.warning("the first check failed, the triggerer goes on: %s", error)
                return None

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """End with what the last check found."""
        if event["status"] == "incomplete":
            raise AirflowFailException(
                f"{describe_set_aside(event)}. Repair what it says, then clear execute_plan and what follows it to go "
                f"on with them. {event['text']}"
            )
        if event["status"] == "cancelled":
            raise AirflowFailException(f"the run was cancelled: {event['text']}")
        if event["status"] == "lost":
            raise RuntimeError(f"the plan could not be executed: {event['message']}")
        self.log.info("the plan is completed: %s", event["text"])
        return event


def describe_set_aside(event: Mapping[str, Any]) -> str:
    """Which partitions a run set aside and why, in words; of many, the first ones."""
    found, count = event["set_aside"], event["set_aside_count"]
    listed = "; ".join(f"{partition}: {reason}" for partition, reason in found.items())
    more = f"; and {count - len(found)} more" if count > len(found) else ""
    return f"{count} partitions were set aside ({listed}{more})"
