"""Remind people of a plan that waits for its review."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowSkipException

from kafka_rebalance_airflow.notifications import REMINDER, notify_from

if TYPE_CHECKING:
    from airflow.sdk import Context

WAITING = ("awaiting_input", "deferred")
TO_COME = (None, "None", "none", "scheduled", "queued", "running", "up_for_retry", "restarting")
REMINDED = "reminded.json"


class RemindReviewersSensor(BaseSensorOperator):
    """Tell the notifiers, now and then, that a plan waits; ends when it waits no more.

    It stands beside the review, and nothing depends on it.

    :param run_uri: the run's artifacts, where the moment of the last reminder is kept.
    :param review_task_id: the task that waits.
    :param hours: how long between two reminders; 0 for none.
    """

    template_fields: Sequence[str] = ("run_uri", "hours")
    ui_color = "#fdf3d8"

    def __init__(
        self, *, run_uri: str, review_task_id: str = "review_plan", hours: float | str = 0, **kwargs: Any
    ) -> None:
        super().__init__(**{"mode": "reschedule", "silent_fail": True, "never_fail": True, **kwargs})
        self.run_uri = run_uri
        self.review_task_id = review_task_id
        self.hours = hours

    def poke(self, context: Context) -> bool:
        """Remind, if it is time."""
        every = 3600 * float(self.hours)
        if not every:
            raise AirflowSkipException("no reminder is wanted")
        ti, run_id = context["ti"], context["run_id"]
        states = ti.get_task_states(dag_id=context["dag"].dag_id, task_ids=[self.review_task_id], run_ids=[run_id])
        state = states.get(run_id, {}).get(self.review_task_id)
        if state not in (*WAITING, *TO_COME):
            return True
        if state in WAITING:
            self._remind(context, every)
        return False

    def _remind(self, context: Context, every: float) -> None:
        from rebalance_lib.artifacts import Artifacts

        run, now = Artifacts(self.run_uri), time.time()
        since = run.read_json(REMINDED)["at"] if run.exists(REMINDED) else None
        if since is not None and now - since >= every:
            notify_from(context, REMINDER, f"the plan of {context['run_id']} still waits for its review")
            since = None
        if since is None:
            run.write_json(REMINDED, {"at": now})
