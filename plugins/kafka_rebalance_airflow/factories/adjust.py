"""The DAG that pauses, resumes and adjusts a run."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG

from kafka_rebalance_airflow.factories.cancel import run_params
from kafka_rebalance_airflow.fields import adjust_params
from kafka_rebalance_airflow.operators.adjustment import AdjustRunOperator

DOC = """
### Pause, resume or adjust a rebalance

Give the DAG and the id of the run, and what to do:

- `pause`: nothing begins any more; what is under way goes on, with its throttle.
- `resume`: moves begin again.
- `adjust`: the fields that are filled in change, at the next check. Empty fields do not change.

Requests are kept with the run, and recorded with your name. They outlive a restart of the triggerer, and end with the
run.
"""


def adjust_dag(dag_id: str = "kafka_rebalance_adjust", **dag_arguments: Any) -> DAG:
    """A DAG that pauses, resumes or adjusts a run by its id.

    Args:
        dag_id: Its id.
        **dag_arguments: What else `airflow.sdk.DAG` takes.
    """
    with DAG(
        dag_id=dag_id,
        schedule=None,
        params={**run_params(), **adjust_params()},
        tags=["kafka", "rebalance"],
        **{"doc_md": DOC, "is_paused_upon_creation": False, **dag_arguments},
    ) as dag:
        # What is no setting is handed over too, and refused by name.
        beside = [*run_params(), "action"]
        AdjustRunOperator(
            task_id="adjust_run",
            of_dag_id="{{ params.dag_id }}",
            of_run_id="{{ params.run_id }}",
            action="{{ params.action }}",
            changes=f"{{{{ dict(params.items() | rejectattr(0, 'in', {beside})) | tojson }}}}",
        )
    return dag
