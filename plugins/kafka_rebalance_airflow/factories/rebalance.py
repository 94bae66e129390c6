"""The DAG that rebalances one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, chain

from kafka_rebalance_airflow.clusters import Clusters, read_clusters
from kafka_rebalance_airflow.factories.steps import KAFKA, MACROS, RETRY_DELAY, RUN, first_steps, form_field, last_steps
from kafka_rebalance_airflow.fields import rebalance_params
from kafka_rebalance_airflow.notifications import notify_of_failure
from kafka_rebalance_airflow.operators.plan import ComputePlacementOperator, SnapshotTopologyOperator

DOC = """
### Rebalance a Kafka cluster

Trigger it with the form. It takes a snapshot of the cluster, plans the placement on Spark, and asks for your approval:
the plans to choose from wait under **Required Actions**. Nothing moves before you approve one, and exactly the plan you
saw is executed.

| step | what it does |
|---|---|
| `check_form` | refuses a form that makes no sense, before anything is read |
| `claim_cluster` | locks the cluster; while another run or tool is at work on it, waits, or fails with its name |
| `snapshot_topology` | restores throttles that a dead run left; writes down the cluster, for the history too |
| `compute_placement` | plans on Spark; plans, summary and review text go to the run's artifacts |
| `review_plan` | you approve one of the plans, or reject; after a rejection all other steps are skipped |
| `remind_reviewers` | reminds the notifiers of a plan that waits, if the form says so |
| `arm` | checks that the plan is the approved one; from here on the last two steps run whatever happens |
| `apply_throttle` | checks that the cluster is fit for the plan; saves what was set before, sets the throttle |
| `execute_plan` | begins the first moves, as many as the caps allow |
| `verify_plan` | begins the others as these end, until all is in sync; sets aside what cannot be moved |
| `remove_throttle` | cancels moves if the run failed meanwhile; restores the throttles that were set before |
| `finalize` | elects preferred leaders, compares cluster and plan, writes the record and the report |

Every step can be cleared and run again at any moment. While moves are under way,
`kafka_rebalance_adjust` pauses and resumes the run, and changes its throttle, caps, window, order, excluded topics and
maximum run time. `kafka_rebalance_cancel` ends a run, `kafka_rebalance_rollback` undoes one.
"""
SUBJECT = "Approve a plan of mode {{ params.mode }} for {{ params.kafka_conn_id }}?"


def rebalance_dag(
    dag_id: str = "kafka_rebalance",
    *,
    defaults: Mapping[str, Any] | None = None,
    schedule: Any = None,
    tags: Iterable[str] = (),
    clusters: Path | None = None,
    spark: Mapping[str, Any] | None = None,
    problem: str = "",
    **dag_arguments: Any,
) -> DAG:
    """A DAG that rebalances a cluster, from the form to the report.

    Args:
        dag_id: Its id.
        defaults: Other defaults for fields of the form; a scheduled run uses them.
        schedule: When it runs by itself.
        tags: Tags besides ``kafka`` and ``rebalance``.
        clusters: The file of clusters, if the installation sets none, for what it says of brokers, of Spark and of
            approvals.
        spark: What the Spark job is given (`kafka_rebalance_airflow.spark`); goes before what the file says.
        problem: Why new runs are refused, if they are; what is wrong in the file of clusters refuses them too.
        **dag_arguments: What else `airflow.sdk.DAG` takes.

    Raises:
        ValueError: A default is not acceptable, or something in ``spark`` is wrong.
    """
    try:
        known = read_clusters(clusters)
    except ValueError as error:  # the steps of a run that is under way must be there whatever the file has
        known = Clusters(None, (), problem=str(error))
    with DAG(
        dag_id=dag_id,
        schedule=schedule,
        params=rebalance_params(defaults),
        tags=["kafka", "rebalance", *tags],
        user_defined_macros=MACROS,
        **{
            "doc_md": DOC,
            "catchup": False,
            "is_paused_upon_creation": None if schedule else False,  # None: as the installation has it
            "on_failure_callback": notify_of_failure,
            **dag_arguments,
        },
    ) as dag:
        claim_cluster = first_steps(problem or known.problem)
        snapshot_topology = SnapshotTopologyOperator(
            task_id="snapshot_topology",
            kafka_conn_id=KAFKA,
            of_brokers=known.brokers_by_connection(),
            retries=2,
            retry_delay=RETRY_DELAY,
        )
        compute_placement = ComputePlacementOperator(
            task_id="compute_placement",
            run_uris=RUN,
            request=form_field("request"),
            pace=form_field("pace"),
            loads=form_field("loads"),
            spark=spark,
            spark_by_connection={"": known.spark, **known.spark_by_connection()},
            kafka_conn_id=KAFKA,
            retries=1,
            retry_delay=RETRY_DELAY,
        )
        chain(claim_cluster, snapshot_topology, compute_placement)
        last_steps(compute_placement, SUBJECT, clusters)
    return dag
