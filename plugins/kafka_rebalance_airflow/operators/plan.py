"""The steps before anything changes: snapshot and review."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

if TYPE_CHECKING:
    from airflow.sdk import Context


def default_artifacts_uri() -> str:
    """A directory beside Airflow's own files, for installations of one machine."""
    from airflow.configuration import AIRFLOW_HOME

    return f"file://{Path(AIRFLOW_HOME, 'kafka-rebalance').absolute()}"


def run_uri(artifacts_uri: str, dag_id: str, run_id: str) -> str:
    """Where a run keeps its artifacts. A run id may hold characters that are no good in a path, hence the digest."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", run_id)
    digest = hashlib.sha256(run_id.encode()).hexdigest()[:8]
    return f"{artifacts_uri.rstrip('/')}/{dag_id}/{readable}-{digest}"


class SnapshotTopologyOperator(BaseOperator):
    """Write down what the cluster is, for the planner and for every later check.

    :param kafka_conn_id: connection to the cluster.
    :param artifacts_uri: below which URI runs keep their artifacts; empty for a directory in ``AIRFLOW_HOME``.

    Returns the run's URI and a few figures.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "artifacts_uri")
    ui_color = "#e3eefa"

    def __init__(self, *, kafka_conn_id: str, artifacts_uri: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.artifacts_uri = artifacts_uri

    def execute(self, context: Context) -> dict[str, Any]:
        """Take the snapshot."""
        from rebalance_lib.artifacts import Artifacts
        from rebalance_lib.cluster import take_snapshot
        from rebalance_lib.execution import Run, restore_left_behind

        run = Run(run_uri(self.artifacts_uri or default_artifacts_uri(), context["dag"].dag_id, context["run_id"]))
        with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
            for uri, restored in restore_left_behind(cluster, Artifacts(run.uri.rsplit("/", 1)[0])).items():
                self.log.warning("throttles that %s had left were put back: %s", uri, restored)
            snapshot = take_snapshot(cluster)
        run.write_snapshot(snapshot)
        found = {
            "run": run.uri,
            "cluster_id": snapshot.cluster_id,
            "brokers": snapshot.brokers.num_rows,
            "replicas": snapshot.replicas.num_rows,
        }
        self.log.info("snapshot of %(brokers)s brokers and %(replicas)s replicas in %(run)s", found)
        return found


class ReviewPlanOperator(ApprovalOperator):
    """Show the plan to a person and wait for Approve or Reject; a plan with nothing to do is skipped.

    What was approved is the digest of the plan that was shown: later steps refuse any other.

    :param kafka_conn_id: connection to the cluster.
    :param run_uri: the run's artifacts.
    """

    template_fields = (*ApprovalOperator.template_fields, "kafka_conn_id", "run_uri")
    ui_color = "#fdf3d8"

    def __init__(self, *, kafka_conn_id: str, run_uri: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.run_uri = run_uri

    def execute(self, context: Context) -> Any:
        """Put the plan's review text on the page and wait."""
        from rebalance_lib.execution import Run

        run = Run(self.run_uri)
        plan = run.plan()
        if not len(plan):
            raise AirflowSkipException("the cluster already is as planned: nothing to move, nothing to approve")
        self.body = run.review()
        if plan.digest not in self.body:
            raise AirflowFailException(f"the review text is not that of {plan.digest}: clear compute_placement")
        context["ti"].xcom_push(key="digest", value=plan.digest)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Resume with the answer: keep it with the run, and pass on the digest that was shown.

        A rejection skips what follows by raising, so that all of this comes before.
        """
        from rebalance_lib.execution import Run

        if "error" in event:
            return super().execute_complete(context, event)
        user = event.get("responded_by_user") or {}
        given = {
            "chosen_options": event["chosen_options"],
            "responded_at": event["responded_at"].isoformat(timespec="seconds"),
            "responded_by": user.get("name") or "time-out default",
            "digest": context["ti"].xcom_pull(task_ids=self.task_id, key="digest"),
        }
        Run(self.run_uri).artifacts.write_json("review.json", given)
        if self.APPROVE not in event["chosen_options"]:
            self._undo()
        super().execute_complete(context, event)
        return given

    def _undo(self) -> None:
        """Put back what this run set: its review may have been cleared, and rejected, while moves were under way."""
        from rebalance_lib.execution import Run, left_behind, restore_throttles

        run = Run(self.run_uri)
        if left_behind(run.artifacts):
            with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
                self.log.warning("rejected after it had begun; put back: %s", restore_throttles(cluster, run.artifacts))
