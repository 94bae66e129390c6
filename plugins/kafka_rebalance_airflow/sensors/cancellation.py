"""Wait until a run that was asked to end has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

EXECUTION_TASKS = ("apply_throttle", "execute_plan", "verify_plan", "remove_throttle")
AT_WORK = ("running", "deferred", "queued", "scheduled", "up_for_retry", "up_for_reschedule", "restarting")


class RunAtRestSensor(BaseSensorOperator):
    """Wait until no step of a run is at work on the cluster any more.

    A poll that fails is logged, and the next one comes.

    :param of_dag_id: the DAG of the run.
    :param of_run_id: the run.
    """

    template_fields: Sequence[str] = ("of_dag_id", "of_run_id")

    def __init__(self, *, of_dag_id: str, of_run_id: str, **kwargs: Any) -> None:
        super().__init__(**{"mode": "reschedule", "silent_fail": True, **kwargs})
        self.of_dag_id = of_dag_id
        self.of_run_id = of_run_id

    def poke(self, context: Context) -> bool:
        """Look at the run's steps."""
        busy = tasks_at_work(context, self.of_dag_id, self.of_run_id)
        if busy:
            self.log.info("still at work: %s", ", ".join(busy))
        return not busy


def tasks_at_work(context: Context, of_dag_id: str, of_run_id: str) -> dict[str, str]:
    """The steps of a run that are at work on the cluster, with their states."""
    found = context["ti"].get_task_states(dag_id=of_dag_id, task_ids=list(EXECUTION_TASKS), run_ids=[of_run_id])
    return {task: str(state) for task, state in sorted(found.get(of_run_id, {}).items()) if str(state) in AT_WORK}
