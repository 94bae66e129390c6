"""The DAG that undoes a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, chain

from kafka_rebalance_airflow.factories.cancel import run_params
from kafka_rebalance_airflow.factories.steps import KAFKA, MACROS, RETRY_DELAY, first_steps, form_field, last_steps
from kafka_rebalance_airflow.fields import connection_param, review_params, settings_params
from kafka_rebalance_airflow.notifications import notify_of_failure
from kafka_rebalance_airflow.operators.plan import PrepareRollbackOperator

DOC = """
### Undo a rebalance

Give the connection of the cluster, and the DAG and the id of the run. The rollback is a plan of its own: what the run's
partitions had before, from where they are now. It is reviewed, executed and verified like any other. Partitions that
the run never moved, or that somebody else has moved since, are left out. A run that is still moving must be cancelled
first.
"""


def rollback_dag(
    dag_id: str = "kafka_rebalance_rollback", *, clusters: Path | None = None, **dag_arguments: Any
) -> DAG:
    """A DAG that undoes a run by its id.

    Args:
        dag_id: Its id.
        clusters: The file of clusters, if the installation sets none, for what it says of approvals.
        **dag_arguments: What else `airflow.sdk.DAG` takes.
    """
    with DAG(
        dag_id=dag_id,
        schedule=None,
        params={**run_params(), "kafka_conn_id": connection_param(), **settings_params(), **review_params()},
        tags=["kafka", "rebalance"],
        user_defined_macros=MACROS,
        **{
            "doc_md": DOC,
            "is_paused_upon_creation": False,
            "on_failure_callback": notify_of_failure,
            **dag_arguments,
        },
    ) as dag:
        claim_cluster = first_steps()
        prepare_rollback = PrepareRollbackOperator(
            task_id="prepare_rollback",
            kafka_conn_id=KAFKA,
            of_dag_id="{{ params.dag_id }}",
            of_run_id="{{ params.run_id }}",
            pace=form_field("pace"),
            retries=2,
            retry_delay=RETRY_DELAY,
        )
        chain(claim_cluster, prepare_rollback)
        subject = "Approve the rollback of {{ params.run_id }} on {{ params.kafka_conn_id }}?"
        last_steps(prepare_rollback, subject, clusters)
    return dag
