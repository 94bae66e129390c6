"""What the triggerer does while `VerifyPlanSensor` waits: look at the cluster now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

ENDED = ("reached", "drifted")
STOPPED_CHECKS = 3  # checks in a row with moves left but none under way
LOST_CHECKS = 20  # checks in a row that may fail: brokers restart, controllers fail over


class PlanReachedTrigger(BaseTrigger):
    """Fire when the plan is reached, when its moves were cancelled, or when somebody else moved its partitions.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param interval: seconds between two checks.
    """

    def __init__(self, *, kafka_conn_id: str, run_uri: str, interval: float) -> None:
        super().__init__()
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.interval = interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Names and numbers only: no secret leaves the connection."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {"kafka_conn_id": self.kafka_conn_id, "run_uri": self.run_uri, "interval": self.interval},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check, tell, sleep."""
        lost = stopped = 0
        while True:
            try:
                progress = await asyncio.to_thread(check, self.kafka_conn_id, self.run_uri)
            except Exception as error:
                lost += 1
                message = f"{type(error).__name__}: {error}"
                self.log.warning("check failed, %s in a row: %s", lost, message)
                if lost >= LOST_CHECKS:
                    yield TriggerEvent({"status": "lost", "message": message})
                    return
            else:
                lost = 0
                self.log.info(progress["text"])
                await self._publish(progress)
                stopped = stopped + 1 if progress["status"] == "stopped" else 0
                if progress["status"] in ENDED or stopped >= STOPPED_CHECKS:
                    yield TriggerEvent(progress)
                    return
            await asyncio.sleep(self.interval)

    async def _publish(self, progress: dict[str, Any]) -> None:
        """Show the progress as an XCom of the waiting task; never worth failing for."""
        ti = self.task_instance
        if ti is None:
            return
        try:
            from airflow.sdk.execution_time.xcom import XCom

            await asyncio.to_thread(
                XCom.set,
                key="progress",
                value=progress,
                dag_id=ti.dag_id,
                task_id=ti.task_id,
                run_id=ti.run_id,
                map_index=ti.map_index,
            )
        except Exception as error:
            self.log.debug("progress was not shown: %s", error)


def check(kafka_conn_id: str, run_uri: str) -> dict[str, Any]:
    """One look at the cluster: ``status`` is reached, moving, stopped or drifted; ``text`` is for people."""
    from rebalance_lib.execution import Run

    with KafkaAdminHook(kafka_conn_id).get_conn() as cluster:
        progress = Run(run_uri).progress(cluster)
    kinds = {"drifted": progress.drifted, "reached": progress.finished, "stopped": progress.stopped}
    return {
        "status": next((kind for kind, so in kinds.items() if so), "moving"),
        "text": str(progress),
        "done": progress.done,
        "moving": progress.moving,
        "pending": progress.pending,
        "bytes_copied": progress.bytes_copied,
        "bytes_to_copy": progress.bytes_to_copy,
        "drifted": [str(partition) for partition in progress.drifted[:10]],
    }
