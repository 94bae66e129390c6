"""Cancel a run by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.clean_up import clean_up_run, pending_cancels
from kafka_rebalance_airflow.cluster_lock import ACTIVE
from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.operators.plan import find_run
from kafka_rebalance_airflow.sensors.cancellation import EXECUTION_TASKS, tasks_at_work
from kafka_rebalance_airflow.sensors.review import WAITING

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.execution import Run

REVIEW_TASK = "review_plan"


class OfRunOperator(BaseOperator):
    """A step about another run.

    :param of_dag_id: the DAG of the run.
    :param of_run_id: the run.
    """

    template_fields: Sequence[str] = ("of_dag_id", "of_run_id")
    ui_color = "#f6e6e4"

    def __init__(self, *, of_dag_id: str, of_run_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.of_dag_id = of_dag_id
        self.of_run_id = of_run_id

    def find_run(self, context: Context) -> Run:
        """The run, which may have written nothing yet if Airflow knows it.

        Raises:
            AirflowFailException: Airflow does not know it, and it has written nothing; or it is no rebalance.
        """
        from rebalance_lib.execution import Run

        if context["ti"].get_dr_count(dag_id=self.of_dag_id, run_ids=[self.of_run_id]):
            states = context["ti"].get_task_states(dag_id=self.of_dag_id, run_ids=[self.of_run_id])
            tasks = states.get(self.of_run_id, {})
            if tasks and not set(tasks) & set(EXECUTION_TASKS):
                raise AirflowFailException(
                    f"the run {self.of_run_id} of {self.of_dag_id} is no rebalance, it has none of the tasks "
                    f"{', '.join(EXECUTION_TASKS)}: check both names"
                )
            return Run(run_uri(self.of_dag_id, self.of_run_id))
        return find_run(self.of_dag_id, self.of_run_id)

    def is_active(self, context: Context) -> bool:
        """Whether the run goes on."""
        return bool(context["ti"].get_dr_count(dag_id=self.of_dag_id, run_ids=[self.of_run_id], states=ACTIVE))

    def task_state(self, context: Context, task_id: str) -> str:
        """The state of a task of the run."""
        found = context["ti"].get_task_states(dag_id=self.of_dag_id, task_ids=[task_id], run_ids=[self.of_run_id])
        return str(found.get(self.of_run_id, {}).get(task_id))


def triggered_by(context: Context) -> str:
    """Who triggered the run of this task: the user, or what Airflow calls the run where it knows none."""
    return str(getattr(context["dag_run"], "triggering_user_name", None) or context["run_id"])


class AskToCancelOperator(OfRunOperator):
    """Request that a run ends: at its next check it cancels its moves under way and restores the throttles."""

    def execute(self, context: Context) -> str:
        """Write the request."""
        from rebalance_lib.execution import Kind, make_request

        run = self.find_run(context)
        self.log.info("%s: %s", run.uri, make_request(run.artifacts, Kind.CANCEL, by=triggered_by(context)))
        return run.uri


class CleanUpOperator(OfRunOperator):
    """Make sure that nothing of a run is left: if it died, its moves under way are cancelled and throttles restored.

    It fails, and is tried again, while a step of the run is at work. Where artifacts are files, the lock of the run
    tells whether one that waits in the triggerer is.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Clean up in the run's place; does nothing if the run did."""
        from rebalance_lib.execution.requests import forget_requests

        run = self.find_run(context)
        if self.task_state(context, REVIEW_TASK) in WAITING:
            raise AirflowFailException(
                f"the run {self.of_run_id} of {self.of_dag_id} cannot be approved any more, but still waits for its "
                "review, and holds the cluster lock until then: reject it there"
            )
        busy = tasks_at_work(context, self.of_dag_id, self.of_run_id)
        if run.artifacts.is_local:
            busy = {task: state for task, state in busy.items() if state != "deferred"}
        if busy:
            listed = ", ".join(f"{task} is {state}" for task, state in busy.items())
            raise RuntimeError(
                f"the run {self.of_run_id} of {self.of_dag_id} is still at work ({listed}): this task is tried again; "
                "if the triggerer or worker of that task died, mark it failed there, then clear this one"
            )
        cleaned = clean_up_run(run, context, self.log, of=(self.of_dag_id, self.of_run_id))
        if not self.is_active(context):
            forget_requests(run.artifacts, pending_cancels(run))  # it has ended: when it is cleared, it starts anew
        return cleaned
