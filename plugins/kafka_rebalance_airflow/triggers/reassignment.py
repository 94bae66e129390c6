"""What the triggerer does while `VerifyPlanSensor` waits: carry the plan on, and look at the cluster now and then."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.notifications import STALLED, notify
from kafka_rebalance_airflow.wishes import asking

if TYPE_CHECKING:
    from rebalance_lib.execution import Report

log = logging.getLogger(__name__)

LOST = "lost"
ENDED = ("reached", "drifted", "cancelled", LOST)
STOP_SECONDS = 20.0
LASTING_SECONDS = 60.0  # a stall that lasts so long is worth a word to somebody


class PlanReachedTrigger(BaseTrigger):
    """Carry the plan on until it is reached, or until somebody else moved or cancelled its partitions.

    It begins moves as others end, and reports at every check. What it does follows from the plan and the cluster, so
    that another triggerer can take over at any moment.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param approved_digest: the digest of the plan that was approved.
    :param interval: seconds between two checks.
    :param settings: throttle, caps, window and the rest, as `rebalance_lib.execution.Settings` reads them.
    """

    def __init__(
        self, *, kafka_conn_id: str, run_uri: str, approved_digest: str, interval: float, settings: dict[str, Any]
    ) -> None:
        super().__init__()
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.approved_digest = approved_digest
        self.interval = interval
        self.settings = settings
        self._stalls: dict[str, float] = {}
        self._told: set[str] = set()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Names and numbers only: no secret leaves the connection."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "kafka_conn_id": self.kafka_conn_id,
                "run_uri": self.run_uri,
                "approved_digest": self.approved_digest,
                "interval": self.interval,
                "settings": self.settings,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check, tell, sleep."""
        reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def report(event: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(reports.put_nowait, event)

        engine = threading.Thread(target=self._carry_on, args=(report, stop), daemon=True)
        engine.start()
        try:
            while True:
                event = await reports.get()
                self.log.info(event["text"])
                await self._publish(event)
                await self._tell_stalls(event)
                if event["status"] in ENDED:
                    yield TriggerEvent(event)
                    return
        finally:
            stop.set()  # it begins nothing any more, and ends with the look that it is at
            await asyncio.to_thread(engine.join, STOP_SECONDS)

    def _carry_on(self, report: Callable[[dict[str, Any]], None], stop: threading.Event) -> None:
        """The engine, in a thread of its own; its last report is one of an end."""
        from rebalance_lib.execution import Executor, Run, Settings

        try:
            with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
                settings = Settings.from_dict(self.settings)
                job = Run(self.run_uri).job(self.approved_digest)
                engine = Executor(cluster, job, settings, tell=self.log.info, ask_rate=asking(self.kafka_conn_id))
                engine.run(self.interval, lambda found: report(as_event(found)), stop=stop)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            report({"status": LOST, "message": message, "text": message})

    async def _tell_stalls(self, event: dict[str, Any]) -> None:
        """Tell the notifiers of moves that stall for long; with a low throttle, data comes in bursts."""
        now, stalls = time.monotonic(), event.get("stalls", ())
        self._stalls = {stall: self._stalls.get(stall, now) for stall in stalls}
        lasting = {stall for stall, since in self._stalls.items() if now - since >= LASTING_SECONDS} - self._told
        self._told = (self._told | lasting) & self._stalls.keys()
        if lasting and self.task_instance is not None:
            ti = self.task_instance
            text = f"moves over {self.kafka_conn_id} have stalled: {'; '.join(sorted(lasting))}"
            await asyncio.to_thread(notify, STALLED, text, dag_id=ti.dag_id, run_id=ti.run_id)

    async def _publish(self, progress: dict[str, Any]) -> None:
        """Show the progress on the run's page and as an XCom of the waiting task; never worth failing for."""
        await asyncio.to_thread(keep_progress, self.run_uri, progress)
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


def keep_progress(run_uri: str, event: dict[str, Any]) -> None:
    """Keep what a check found with the run's artifacts, where its page reads it; never worth failing for."""
    from rebalance_lib.artifacts import PROGRESS, Artifacts

    at = datetime.now(UTC).isoformat(timespec="microseconds")
    try:
        Artifacts(run_uri).write_json(PROGRESS, {**event, "at": at})
    except Exception as error:
        log.debug("progress was not kept: %s", error)


def as_event(report: Report) -> dict[str, Any]:
    """A report as data: ``status`` is where the run stands, ``text`` is for people."""
    progress = report.progress
    return {
        "status": str(report.state),
        "text": str(report),
        "done": progress.done,
        "moving": progress.moving,
        "pending": progress.pending,
        "bytes_copied": progress.bytes_copied,
        "bytes_to_copy": progress.bytes_to_copy,
        "rate": progress.rate,
        "seconds_left": progress.seconds_left,
        "throttle": report.throttle,
        "holds": list(report.holds),
        "stalls": [str(stall) for stall in report.stalls[:10]],
        "brokers": {
            str(broker): {"copied": one.copied, "to_copy": one.to_copy, "rate": one.rate}
            for broker, one in progress.brokers.items()
        },
        "drifted": [str(partition) for partition in progress.drifted[:10]],
    }
