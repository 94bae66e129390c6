"""End a run by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.operators.plan import find_run

if TYPE_CHECKING:
    from airflow.sdk import Context


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


class AskToCancelOperator(_OfRunOperator):
    """Ask a run to end: at its next check it cancels its moves under way and puts back the throttles."""

    def execute(self, context: Context) -> str:
        """Leave the wish with the run."""
        from rebalance_lib.execution import ask_to_cancel

        run = find_run(self.of_dag_id, self.of_run_id)
        by = getattr(context["dag_run"], "triggering_user_name", None) or context["run_id"]
        ask_to_cancel(run.artifacts, str(by))
        self.log.info("%s is asked to end", run.uri)
        return run.uri


class CleanUpOperator(_OfRunOperator):
    """Make sure that nothing of a run is left: if it died, its moves under way are cancelled and throttles put back."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Take the run's way out in its place; does nothing if the run took it."""
        from rebalance_lib.artifacts import REVIEW, RUN
        from rebalance_lib.execution import leave

        run = find_run(self.of_dag_id, self.of_run_id)
        if not run.artifacts.exists(REVIEW):
            self.log.info("the run had begun nothing")
            return {"topics": 0, "brokers": []}
        conn_id = run.artifacts.read_json(RUN)["kafka_conn_id"]
        with KafkaAdminHook(conn_id).get_conn() as cluster:
            restored = leave(cluster, run.job(), run.settings(), tell=self.log.info)
        if restored.left:
            raise RuntimeError(f"throttles are left on the cluster: {restored.left}")
        return {"topics": len(restored.topics), "brokers": restored.brokers}
