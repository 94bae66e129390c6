"""What the triggerer does while `VerifyPlanSensor` waits: execute the plan, and report at every check."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kafka_rebalance_airflow.clean_up import clean_up_mark
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.notifications import HELD, STALLED, notify
from kafka_rebalance_airflow.run_lock import execution_lock

if TYPE_CHECKING:
    from rebalance_lib.execution import Report

log = logging.getLogger(__name__)

LOST = "lost"
ENDED = ("completed", "incomplete", "cancelled", LOST)
STOP_SECONDS = 20.0
LASTING_SECONDS = 60.0  # with a low throttle data comes in bursts: a stall that lasts longer is worth a notification
# Brokers that restart one after the other, and other tools, hold a run back for some minutes each, and nobody has to do
# anything about it. What lasts longer waits for somebody.
LASTING_HOLD_SECONDS = 600.0
SET_ASIDE_SHOWN = 20  # of possibly very many: events are kept in Airflow's database


class PlanTrigger(BaseTrigger):
    """Execute the plan until the run has ended: completed, incomplete or cancelled.

    It begins moves as others end, and reports at every check. What it does follows from the plan and the cluster, so
    that another triggerer can take over at any moment.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    :param approved_digest: the digest of the plan that was approved.
    :param interval: seconds between two checks.
    :param settings: throttle, caps, window and the rest, as `rebalance_lib.execution.Settings` reads them.
    :param clean_up_mark: what the last clean-up of the run left, as the sensor read it: one that comes between the
        sensor and the triggerer ends the run.
    """

    def __init__(
        self,
        *,
        kafka_conn_id: str,
        run_uri: str,
        approved_digest: str,
        interval: float,
        settings: dict[str, Any],
        clean_up_mark: str = "",
    ) -> None:
        super().__init__()
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri
        self.approved_digest = approved_digest
        self.interval = interval
        self.settings = settings
        self.clean_up_mark = clean_up_mark
        self._stalls: dict[str, float] = {}
        self._stalls_notified: set[str] = set()
        self._held_since: float | None = None
        self._hold_notified = False

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
                "clean_up_mark": self.clean_up_mark,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Pass on what the executor reports."""
        reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def report(event: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(reports.put_nowait, event)

        executor = threading.Thread(target=self._execute_plan, args=(report, stop), daemon=True)
        executor.start()
        try:
            while True:
                event = await reports.get()
                self.log.info(event["text"])
                await self._publish(event)
                await self._notify_of_stalls(event)
                await self._notify_of_holds(event)
                if event["status"] in ENDED:
                    yield TriggerEvent(event)
                    return
        finally:
            stop.set()  # it begins nothing any more, and ends with the request that is under way
            await asyncio.to_thread(executor.join, STOP_SECONDS)

    def _execute_plan(self, report: Callable[[dict[str, Any]], None], stop: threading.Event) -> None:
        """The executor, in a thread of its own; its last report is one of an end.

        A run that was cleaned up between the sensor and this has ended, and nothing begins any more.
        """
        from rebalance_lib.execution import Executor, Run, Settings
        from rebalance_lib.execution.clean_up import CleanedUpError

        try:
            run, settings = Run(self.run_uri), Settings.from_dict(self.settings)
            job = run.job(self.approved_digest)
            with (
                KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster,
                execution_lock(run, cluster.clock) as watch,
            ):
                if clean_up_mark(run.artifacts) != self.clean_up_mark:
                    raise CleanedUpError("it was cleaned up before the triggerer went on with it")
                executor = Executor(cluster, job, settings, log=self.log.info, watch=watch)
                executor.run(self.interval, lambda found: report(as_event(found)), stop=stop)
        except CleanedUpError as error:
            report({"status": "cancelled", "text": str(error)})
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            report({"status": LOST, "message": message, "text": message})

    async def _notify_of_stalls(self, event: dict[str, Any]) -> None:
        """Notify people, once, of moves that stall for long."""
        now, stalls = time.monotonic(), event.get("stalls", ())
        self._stalls = {stall: self._stalls.get(stall, now) for stall in stalls}
        lasting = {
            stall for stall, since in self._stalls.items() if now - since >= LASTING_SECONDS
        } - self._stalls_notified
        self._stalls_notified = (self._stalls_notified | lasting) & self._stalls.keys()
        if lasting:
            await self._notify(STALLED, f"moves on {self.kafka_conn_id} have stalled: {'; '.join(sorted(lasting))}")

    async def _notify_of_holds(self, event: dict[str, Any]) -> None:
        """Notify people, once, of a run that is held back for long; again only after moves began again."""
        now, holds = time.monotonic(), event.get("holds", ())
        if not holds:
            self._held_since, self._hold_notified = None, False
            return
        self._held_since = now if self._held_since is None else self._held_since
        if not self._hold_notified and now - self._held_since >= LASTING_HOLD_SECONDS:
            self._hold_notified = True
            minutes = (now - self._held_since) / 60
            text = f"the rebalance of {self.kafka_conn_id} has been held back for {minutes:.0f} min: {'; '.join(holds)}"
            await self._notify(HELD, text)

    async def _notify(self, what: str, text: str) -> None:
        if (ti := self.task_instance) is not None:
            await asyncio.to_thread(notify, what, text, dag_id=ti.dag_id, run_id=ti.run_id)

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
    """A report as data: ``status`` is the state of the run, ``text`` is for people, ``throttle`` the allowed rate."""
    progress = report.progress
    set_aside = list(report.set_aside.items())[:SET_ASIDE_SHOWN]
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
        "foreign_throttles": {str(broker): rate for broker, rate in report.foreign_throttles.items()},
        "set_aside": {str(partition): reason for partition, reason in set_aside},
        "set_aside_count": len(report.set_aside),
    }
