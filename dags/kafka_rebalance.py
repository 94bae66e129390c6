"""
### Rebalance a Kafka cluster

Trigger it with the form. It takes a snapshot of the cluster, plans the placement on Spark, and asks for your approval:
the plan waits under **Required Actions**. Nothing moves before you approve, and exactly the plan you saw is executed.

| step | what it does |
|---|---|
| `snapshot_topology` | puts back throttles that a dead run left; writes down brokers, racks, replicas and sizes |
| `compute_placement` | plans on Spark; the plan, its summary and the review text go to the run's artifacts |
| `review_plan` | you approve or reject; after a rejection all other steps are skipped |
| `arm` | checks that the plan is the approved one; from here on the last two steps run whatever happens |
| `apply_throttle` | limits replication traffic; saves what stood there before |
| `execute_plan` | hands the plan to Kafka's controller |
| `verify_plan` | checks now and then until every replica is in place and in sync |
| `remove_throttle` | puts back the throttles that stood before |
| `finalize` | elects preferred leaders, compares cluster and plan, writes the report |

Every step can be cleared and run again at any moment.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Param

import rebalance_lib
from kafka_rebalance_airflow.operators.execution import (
    ApplyThrottleOperator,
    ArmOperator,
    ExecutePlanOperator,
    FinalizeOperator,
    RemoveThrottleOperator,
)
from kafka_rebalance_airflow.operators.plan import ReviewPlanOperator, SnapshotTopologyOperator
from kafka_rebalance_airflow.sensors.reassignment import VerifyPlanSensor

JOB = Path(rebalance_lib.__file__).parent / "jobs" / "compute_placement.py"
RUN = "{{ ti.xcom_pull(task_ids='snapshot_topology')['run'] }}"
DIGEST = "{{ ti.xcom_pull(task_ids='review_plan')['digest'] }}"
KAFKA = "{{ params.kafka_conn_id }}"

with DAG(
    dag_id="kafka_rebalance",
    schedule=None,
    max_active_runs=1,
    doc_md=__doc__,
    tags=["kafka", "rebalance"],
    params={
        "kafka_conn_id": Param(
            "kafka_default",
            type="string",
            title="Cluster",
            description="The Airflow connection of the Kafka cluster.",
        ),
        "topics": Param(
            [],
            type=["array", "null"],
            items={"type": "string", "pattern": "^[a-zA-Z0-9._-]{1,249}$"},
            title="Topics",
            description="The topics to place, one per line. Empty: all but Kafka's internal ones.",
        ),
        "brokers": Param(
            [],
            type=["array", "null"],
            title="Brokers",
            description="The ids of the brokers to place on, one per line. Empty: all that are alive.",
        ),
        "throttle": Param(
            50_000_000,
            type="integer",
            minimum=1,
            title="Throttle (bytes/s)",
            description="Replication traffic of the moves on each broker, in and out. Above the topics' write rate.",
            section="How",
        ),
        "check_interval": Param(
            30,
            type="integer",
            minimum=1,
            title="Check every (s)",
            description="How often the cluster is compared with the plan while data moves.",
            section="How",
        ),
        "seed": Param(
            0,
            type="integer",
            minimum=0,
            title="Seed",
            description="Where the stripes start; the same seed gives the same plan.",
            section="How",
        ),
    },
) as dag:
    snapshot_topology = SnapshotTopologyOperator(
        task_id="snapshot_topology",
        kafka_conn_id=KAFKA,
        artifacts_uri="{{ var.value.get('kafka_rebalance_artifacts', '') }}",
        retries=2,
        retry_delay=timedelta(seconds=10),
    )
    compute_placement = SparkSubmitOperator(
        task_id="compute_placement",
        application=str(JOB),
        name="kafka-rebalance",
        application_args=[
            "--run",
            RUN,
            "--topics",
            "{{ (params.topics or []) | join(',') }}",
            "--brokers",
            "{{ (params.brokers or []) | join(',') }}",
            "--seed",
            "{{ params.seed }}",
        ],
        conf={"spark.log.level": "WARN", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"},
        retries=1,
        retry_delay=timedelta(seconds=10),
    )
    review_plan = ReviewPlanOperator(
        task_id="review_plan",
        subject="Approve this rebalance of {{ params.kafka_conn_id }}, throttled to {{ params.throttle }} bytes/s?",
        kafka_conn_id=KAFKA,
        run_uri=RUN,
        retries=2,  # an answer that comes the moment the task parks can cost a try; it then asks again
        retry_delay=timedelta(seconds=5),
    )
    step = {"kafka_conn_id": KAFKA, "run_uri": RUN, "approved_digest": DIGEST, "retry_delay": timedelta(seconds=10)}
    rate = "{{ params.throttle }}"
    arm = ArmOperator(task_id="arm", retries=2, **step)
    apply_throttle = ApplyThrottleOperator(task_id="apply_throttle", rate=rate, retries=2, **step)
    execute_plan = ExecutePlanOperator(task_id="execute_plan", rate=rate, retries=2, **step)
    verify_plan = VerifyPlanSensor(
        task_id="verify_plan",
        kafka_conn_id=KAFKA,
        run_uri=RUN,
        interval="{{ params.check_interval }}",
        timeout=timedelta(days=7).total_seconds(),
        retries=3,  # it only looks, so that a retry costs nothing
        retry_delay=timedelta(seconds=5),
    )
    remove_throttle = RemoveThrottleOperator(
        task_id="remove_throttle", retries=5, retry_exponential_backoff=True, **step
    )
    finalize = FinalizeOperator(task_id="finalize", rate=rate, retries=2, **step)

    snapshot_topology >> compute_placement >> review_plan >> arm >> apply_throttle >> execute_plan >> verify_plan
    (
        verify_plan
        >> remove_throttle.as_teardown(setups=arm)
        >> finalize.as_teardown(setups=arm, on_failure_fail_dagrun=True)
    )
