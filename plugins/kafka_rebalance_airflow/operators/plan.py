"""The steps before anything changes: snapshot and plan, or the rollback of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.clean_up import clean_up_run, restore_stale
from kafka_rebalance_airflow.config import artifacts_uri, history_uri, run_uri
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.links import PlanPageLink, SparkUiLink
from kafka_rebalance_airflow.operators.spark_job import SparkJobOperator
from kafka_rebalance_airflow.templates import as_list, as_object

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.execution import Run


class SnapshotTopologyOperator(BaseOperator):
    """Write down what the cluster is, for the planner and for every later check, and append it to the history.

    Its consumer groups are kept too; if they cannot be read, a warning says so, and the snapshot is without them.

    Throttles that dead runs left are restored first, and if this run has begun before, it is cleaned up.

    :param kafka_conn_id: connection to the cluster.
    :param subdirectory: of the run's directory, for runs about several clusters; empty for none.
    :param restore: whether throttles that dead runs left are restored; without it nothing is changed.
    :param of_brokers: by connection, what the file of clusters says of brokers: ``capacities`` and ``broker_sets``.

    Returns the run's URI, the history's, and a few figures.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "subdirectory")
    ui_color = "#e3eefa"
    operator_extra_links = (PlanPageLink(),)

    def __init__(
        self,
        *,
        kafka_conn_id: str,
        subdirectory: str = "",
        restore: bool = True,
        of_brokers: Mapping[str, Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.of_brokers = dict(of_brokers or {})
        self.kafka_conn_id = kafka_conn_id
        self.subdirectory = subdirectory
        self.restore = restore

    def execute(self, context: Context) -> dict[str, Any]:
        """Take the snapshot."""
        from rebalance_lib.artifacts import Artifacts
        from rebalance_lib.cluster import groups_or_none, take_snapshot
        from rebalance_lib.history import append_snapshot
        from rebalance_lib.topology import BrokerSets, Capacities

        run = begin_run(context, self.kafka_conn_id, self.subdirectory)
        if self.restore:
            clean_up_run(run, context, self.log)
        with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
            if self.restore:
                restore_stale(cluster, context, self.log)
            snapshot = take_snapshot(cluster)
            groups = groups_or_none(cluster, tell=self.log.warning)
        said = self.of_brokers.get(self.kafka_conn_id, {})
        snapshot = Capacities.from_dict(said.get("capacities")).apply(snapshot)
        snapshot = BrokerSets.from_dict(said.get("broker_sets")).apply(snapshot)
        run.write_snapshot(snapshot)
        run.write_groups(groups)
        history = Artifacts(history_uri())
        append_snapshot(history, snapshot, groups)
        found = {
            "run": run.uri,
            "history": history.uri,
            "cluster_id": snapshot.cluster_id,
            "brokers": snapshot.brokers.num_rows,
            "replicas": snapshot.replicas.num_rows,
        }
        self.log.info("snapshot of %(brokers)s brokers and %(replicas)s replicas in %(run)s", found)
        return found


def begin_run(context: Context, kafka_conn_id: str, subdirectory: str = "") -> Run:
    """The run of this context; what it is about is noted in its directory, for those who come by its name."""
    from rebalance_lib.artifacts import RUN
    from rebalance_lib.execution import Run

    dag_id, run_id = context["dag"].dag_id, context["run_id"]
    uri = run_uri(dag_id, run_id)
    run = Run(f"{uri}/{subdirectory}" if subdirectory else uri)
    run.artifacts.write_json(RUN, {"dag_id": dag_id, "run_id": run_id, "kafka_conn_id": kafka_conn_id})
    return run


class ComputePlacementOperator(SparkJobOperator):
    """Plan one or more runs in one Spark job.

    A run that has begun is cleaned up first: from here on its plan may be another one.

    :param run_uris: the runs' artifacts, with their snapshots: one, or several as a list or its JSON.
    :param request: what is asked for, as `rebalance_lib.planner.Request` reads it, or JSON of such an object.
    :param pace: throttle and caps that the forecast counts with; likewise.
    :param loads: which loads of the history count, as `rebalance_lib.history.LoadOptions` reads them; likewise:
        ``{"hours": 24, "statistic": "p95", "horizon_days": 7}``; empty for none.

    All else is as in SparkJobOperator.
    """

    JOB = "compute_placement.py"

    template_fields: Sequence[str] = (*SparkJobOperator.template_fields, "run_uris", "request", "pace", "loads")
    operator_extra_links = (PlanPageLink(), SparkUiLink())

    def __init__(
        self,
        *,
        run_uris: list[str] | str,
        request: Mapping[str, Any] | str,
        pace: Mapping[str, Any] | str = "{}",
        loads: Mapping[str, Any] | str = "{}",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.run_uris = run_uris
        self.request = request
        self.pace = pace
        self.loads = loads

    def execute(self, context: Context) -> None:
        """Submit the job."""
        from rebalance_lib.execution import Run
        from rebalance_lib.history import LoadOptions

        uris, loads = as_list(self.run_uris), as_object(self.loads)
        for uri in uris:
            clean_up_run(Run(uri), context, self.log)
        arguments = [
            *(word for uri in uris for word in ("--run", uri)),
            *("--request", json.dumps(as_object(self.request))),
            *("--pace", json.dumps(as_object(self.pace))),
            *(("--history", history_uri(), *LoadOptions.from_dict(loads).arguments()) if loads else ()),
        ]
        self.submit(arguments, context)


class PrepareRollbackOperator(BaseOperator):
    """Plan the rollback of a run: what its partitions had before, from where they are now.

    :param kafka_conn_id: connection to the cluster.
    :param of_dag_id: the DAG of the run to undo.
    :param of_run_id: the run to undo.
    :param pace: throttle and caps that the forecast counts with, or JSON of such an object.

    Returns the URI of the rollback, a run of its own, and a few figures.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "of_dag_id", "of_run_id", "pace")
    ui_color = "#e3eefa"

    def __init__(
        self,
        *,
        kafka_conn_id: str,
        of_dag_id: str,
        of_run_id: str,
        pace: Mapping[str, Any] | str = "{}",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.of_dag_id = of_dag_id
        self.of_run_id = of_run_id
        self.pace = pace

    def execute(self, context: Context) -> dict[str, Any]:
        """Write snapshot and plan."""
        from rebalance_lib.execution import prepare_rollback
        from rebalance_lib.plan.pace import Pace

        undone, into = find_run(self.of_dag_id, self.of_run_id), begin_run(context, self.kafka_conn_id)
        clean_up_run(into, context, self.log)
        with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
            restore_stale(cluster, context, self.log)
            pace = Pace.from_dict(as_object(self.pace))
            plan = prepare_rollback(cluster, undone, into, pace, log=self.log.warning)
        self.log.info("%s partitions go back", len(plan))
        return {"run": into.uri, "undoes": undone.uri, "partitions": len(plan)}


def find_run(dag_id: str, run_id: str) -> Run:
    """The run of this name.

    Raises:
        AirflowFailException: It has left nothing.
    """
    from rebalance_lib.artifacts import RUN
    from rebalance_lib.execution import Run

    run = Run(run_uri(dag_id, run_id))
    if not run.artifacts.exists(RUN):
        raise AirflowFailException(
            f"no run {run_id!r} of {dag_id!r} has left anything in {artifacts_uri()}: check both names"
        )
    return run
