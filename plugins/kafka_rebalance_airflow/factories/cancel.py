"""The DAG that ends a run."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, chain

from kafka_rebalance_airflow.factories.steps import RETRY_DELAY
from kafka_rebalance_airflow.operators.cancellation import AskToCancelOperator, CleanUpOperator
from kafka_rebalance_airflow.sensors.cancellation import RunAtRestSensor

DOC = """
### Cancel a rebalance

Give the DAG and the id of the run. At its next check the run cancels its moves under way, where no partition is worse
off for it, and restores the throttles; it then ends as failed. What has been moved stays. `clean_up` does the same in
its place if it died. Moves that somebody else began are never touched.
A run that waits for its review cannot be approved any more: reject it there.

To go on with a cancelled run after all, clear its `arm`; to undo what it moved, trigger `kafka_rebalance_rollback`.
"""


def run_params() -> dict[str, Param]:
    """Which run."""
    return {
        "dag_id": Param(
            "kafka_rebalance",
            type="string",
            pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$",
            title="DAG",
            description="The DAG of the run.",
        ),
        "run_id": Param(
            type="string",
            minLength=1,
            title="Run id",
            description="As the run's page shows it, such as manual__2026-11-17T03:00:00+00:00.",
        ),
    }


def cancel_dag(dag_id: str = "kafka_rebalance_cancel", **dag_arguments: Any) -> DAG:
    """A DAG that ends a run by its id.

    Args:
        dag_id: Its id.
        **dag_arguments: What else `airflow.sdk.DAG` takes.
    """
    with DAG(
        dag_id=dag_id,
        schedule=None,
        params=run_params(),
        tags=["kafka", "rebalance"],
        **{"doc_md": DOC, "is_paused_upon_creation": False, **dag_arguments},
    ) as dag:
        of_run = {"of_dag_id": "{{ params.dag_id }}", "of_run_id": "{{ params.run_id }}"}
        chain(
            AskToCancelOperator(task_id="ask_to_cancel", **of_run),
            RunAtRestSensor(
                task_id="wait_for_run", poke_interval=5, timeout=3600, retries=2, retry_delay=RETRY_DELAY, **of_run
            ),
            CleanUpOperator(
                task_id="clean_up",
                trigger_rule="all_done",  # also if the run did not come to rest: its triggerer may be dead
                retries=5,
                retry_delay=RETRY_DELAY,
                retry_exponential_backoff=True,
                **of_run,
            ),
        )
    return dag
