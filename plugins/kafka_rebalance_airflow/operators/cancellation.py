"""End a run by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.operators.plan import find_run
from kafka_rebalance_airflow.sensors.review import WAITING
from kafka_rebalance_airflow.way_out import take_way_out

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.execution import Run

REVIEW_TASK = "review_plan"


class _OfRunOperator(BaseOperator):
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
        """The run, which may have left nothing yet if Airflow knows it.

        Raises:
            AirflowFailException: Airflow does not know it, and it has left nothing.
        """
        from rebalance_lib.execution import Run

        if context["ti"].get_dr_count(dag_id=self.of_dag_id, run_ids=[self.of_run_id]):
            return Run(run_uri(self.of_dag_id, self.of_run_id))
        return find_run(self.of_dag_id, self.of_run_id)


class AskToCancelOperator(_OfRunOperator):
    """Ask a run to end: at its next check it cancels its moves under way and puts back the throttles."""

    def execute(self, context: Context) -> str:
        """Leave the wish with the run."""
        from rebalance_lib.execution import ask_to_cancel

        run = self.find_run(context)
        by = getattr(context["dag_run"], "triggering_user_name", None) or context["run_id"]
        ask_to_cancel(run.artifacts, str(by))
        self.log.info("%s is asked to end", run.uri)
        return run.uri


class CleanUpOperator(_OfRunOperator):
    """Make sure that nothing of a run is left: if it died, its moves under way are cancelled and throttles put back."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Take the run's way out in its place; does nothing if the run took it."""
        run = self.find_run(context)
        self._refuse_if_reviewed(context)
        return take_way_out(run, context, self.log, of=(self.of_dag_id, self.of_run_id))

    def _refuse_if_reviewed(self, context: Context) -> None:
        """A person must end a run that waits for one: nothing else can answer in its place."""
        states = context["ti"].get_task_states(dag_id=self.of_dag_id, task_ids=[REVIEW_TASK], run_ids=[self.of_run_id])
        if states.get(self.of_run_id, {}).get(REVIEW_TASK) in WAITING:
            raise AirflowFailException(
                f"the run {self.of_run_id} of {self.of_dag_id} cannot be approved any more, but still waits for its "
                "review, and has the cluster until then: reject it there"
            )
