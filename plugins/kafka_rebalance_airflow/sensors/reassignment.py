"""Wait until the plan is reached."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context


class VerifyPlanSensor(BaseSensorOperator):
    """Check the cluster against the plan until every partition is where it shall be, with all replicas in sync.

    Between checks it waits in the triggerer and holds no worker slot.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param interval: seconds between two checks.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "run_uri", "interval")
    ui_color = "#dff3e8"

    def __init__(self, *, kafka_conn_id: str, run_uri: str, interval: float | str = 30, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.interval = interval

    def execute(self, context: Context) -> Any:
        """Look once; if the plan is not reached yet, leave the rest to the triggerer."""
        from kafka_rebalance_airflow.triggers.reassignment import ENDED, PlanReachedTrigger, check
        from rebalance_lib.errors import ClusterError

        try:
            event = check(self.kafka_conn_id, self.run_uri)
        except ClusterError as error:
            self.log.warning("the first check failed, the triggerer goes on: %s", error)
        else:
            self.log.info(event["text"])
            if event["status"] in ENDED:
                return self.execute_complete(context, event)
        return self.defer(
            trigger=PlanReachedTrigger(
                kafka_conn_id=self.kafka_conn_id, run_uri=self.run_uri, interval=float(self.interval)
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """End with what the last check found."""
        if event["status"] == "drifted":
            raise AirflowFailException(f"somebody else moved partitions of this plan: {event['drifted']}")
        if event["status"] == "stopped":
            raise AirflowFailException(
                f"nothing is under way any more: {event['text']}. Were the moves cancelled? Clear execute_plan to go on"
            )
        if event["status"] == "lost":
            raise RuntimeError(f"the cluster could not be looked at: {event['message']}")
        self.log.info("the plan is reached: %s", event["text"])
        return event
