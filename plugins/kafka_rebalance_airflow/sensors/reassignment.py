"""Wait until the plan is reached."""

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


class VerifyPlanSensor(BaseSensorOperator):
    """Carry the plan on until every partition is where it shall be, with all replicas in sync.

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
        """Check once; if the plan is not reached yet, leave the rest to the triggerer."""
        from kafka_rebalance_airflow.claims import take_claim
        from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
        from kafka_rebalance_airflow.triggers.reassignment import ENDED, PlanReachedTrigger, as_event, keep_progress
        from kafka_rebalance_airflow.wishes import asking
        from rebalance_lib.errors import ClusterError
        from rebalance_lib.execution import Executor, Run, Settings

        job, settings = Run(self.run_uri).job(self.approved_digest), Settings.from_dict(as_object(self.settings))
        take_claim(context, job.cluster_id)
        try:
            with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
                event = as_event(
                    Executor(cluster, job, settings, tell=self.log.info, ask_rate=asking(self.kafka_conn_id)).check()
                )
        except ClusterError as error:
            self.log.warning("the first check failed, the triggerer goes on: %s", error)
        else:
            self.log.info(event["text"])
            keep_progress(self.run_uri, event)
            if event["status"] in ENDED:
                return self.execute_complete(context, event)
        return self.defer(
            trigger=PlanReachedTrigger(
                kafka_conn_id=self.kafka_conn_id,
                run_uri=self.run_uri,
                approved_digest=self.approved_digest,
                interval=float(self.interval),
                settings=as_object(self.settings),
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """End with what the last check found."""
        if event["status"] == "drifted":
            raise AirflowFailException(f"somebody else moved partitions of this plan: {event['drifted']}")
        if event["status"] == "cancelled":
            raise AirflowFailException(f"the run was cancelled: {event['text']}")
        if event["status"] == "lost":
            raise RuntimeError(f"the plan could not be carried on: {event['message']}")
        self.log.info("the plan is reached: %s", event["text"])
        return event
