"""The steps that DAGs which change a cluster share: from the first check of the form, and from the review on.

    check_form >> claim_cluster >> (snapshot and plan, or the rollback of a run) >> review_plan ...
    ... >> arm >> apply_throttle >> execute_plan >> verify_plan >> remove_throttle >> finalize

``arm`` is a setup that touches nothing, and ``remove_throttle`` is its teardown: once it has succeeded it runs whatever
happens, and before that it does not. ``finalize`` runs at the end of every run: one that was marked failed before
``arm`` would be a success for Airflow, since all that follows is skipped.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, chain

from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.operators.execution import (
    ApplyThrottleOperator,
    ArmOperator,
    ExecutePlanOperator,
    FinalizeOperator,
    RemoveThrottleOperator,
)
from kafka_rebalance_airflow.operators.form import CheckFormOperator
from kafka_rebalance_airflow.operators.review import ReviewPlanOperator
from kafka_rebalance_airflow.sensors.cluster_lock import ClusterLockSensor
from kafka_rebalance_airflow.sensors.reassignment import VerifyPlanSensor
from kafka_rebalance_airflow.sensors.review import RemindReviewersSensor

KAFKA = "{{ params.kafka_conn_id }}"
RUN = "{{ kafka_rebalance_run(dag.dag_id, run_id) }}"  # no XCom: the clean-up must find it whatever happened
MACROS = {"kafka_rebalance_run": run_uri}
RETRY_DELAY = timedelta(seconds=10)
WEEK, YEAR = timedelta(days=7).total_seconds(), timedelta(days=365).total_seconds()


def form_field(name: str) -> str:
    """The template of a part of the form, as JSON."""
    return f"{{{{ ti.xcom_pull(task_ids='check_form')['{name}'] | tojson }}}}"


def first_steps(problem: str = "") -> BaseOperator:
    """Check the form, and wait for the cluster lock; returns the last of them.

    Args:
        problem: Why new runs are refused, if they are.
    """
    check_form = CheckFormOperator(task_id="check_form", problem=problem, retries=2, retry_delay=RETRY_DELAY)
    claim_cluster = ClusterLockSensor(
        task_id="claim_cluster",
        kafka_conn_id=KAFKA,
        on_busy="{{ params.on_busy }}",
        poke_interval=15,
        timeout=WEEK,
        retries=2,
        retry_delay=RETRY_DELAY,
    )
    check_form >> claim_cluster
    return claim_cluster


def last_steps(planned: BaseOperator, subject: str, clusters: Path | None = None) -> None:
    """From the review to the report; the DAG must have `MACROS`.

    Args:
        planned: The task that leaves the plan.
        subject: The headline of the review.
        clusters: The clusters' file with the approval policies, if the installation sets none.
    """
    of_run: dict[str, Any] = {"kafka_conn_id": KAFKA, "run_uri": RUN}
    review_plan = ReviewPlanOperator(
        task_id="review_plan",
        subject=subject,
        settings=form_field("settings"),
        review=form_field("review"),
        thresholds=form_field("thresholds"),
        clusters_file=str(clusters or ""),
        retries=5,  # an answer that comes within seconds after the task parks can cost a try; it then asks again
        retry_delay=timedelta(seconds=5),
        **of_run,
    )
    remind_reviewers = RemindReviewersSensor(
        task_id="remind_reviewers",
        run_uri=RUN,
        hours="{{ ti.xcom_pull(task_ids='check_form')['review']['reminder_hours'] }}",
        poke_interval=60,
        timeout=YEAR,
    )
    settings = "{{ ti.xcom_pull(task_ids='review_plan')['settings'] | tojson }}"
    digest = "{{ ti.xcom_pull(task_ids='review_plan')['digest'] }}"
    step = {**of_run, "approved_digest": digest, "retry_delay": RETRY_DELAY}
    arm = ArmOperator(task_id="arm", retries=2, **step)
    apply_throttle = ApplyThrottleOperator(task_id="apply_throttle", settings=settings, retries=2, **step)
    execute_plan = ExecutePlanOperator(task_id="execute_plan", settings=settings, retries=2, **step)
    verify_plan = VerifyPlanSensor(
        task_id="verify_plan",
        settings=settings,
        interval="{{ params.check_interval }}",
        timeout=YEAR,  # large plans in short windows take long; `max_run_time` of the form ends a run in good order
        retries=3,  # it goes on where the last try was, so that a retry costs nothing
        **{**step, "retry_delay": timedelta(seconds=5)},
    )
    remove_throttle = RemoveThrottleOperator(
        task_id="remove_throttle", retries=5, retry_exponential_backoff=True, retry_delay=RETRY_DELAY, run_uri=RUN
    )
    finalize = FinalizeOperator(
        task_id="finalize",
        run_uri=RUN,
        ignored_tasks=[remind_reviewers.task_id],
        armed_by=arm.task_id,
        required_tasks=sorted({planned.task_id, *planned.get_flat_relative_ids(upstream=True)}),
        retries=2,
        retry_delay=RETRY_DELAY,
    )
    planned >> remind_reviewers
    chain(planned, review_plan, arm, apply_throttle, execute_plan, verify_plan)
    (verify_plan >> remove_throttle.as_teardown(setups=arm) >> finalize.as_teardown(on_failure_fail_dagrun=True))
