"""What Spark does with the history once a day: one file of each day that is over, and when disks will be full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.config import history_uri, run_uri
from kafka_rebalance_airflow.operators.spark_job import SparkJobOperator
from kafka_rebalance_airflow.templates import as_list

if TYPE_CHECKING:
    from airflow.sdk import Context


class CompactHistoryOperator(SparkJobOperator):
    """Make one file of each day of the history that is over, of all clusters.

    All parameters are those of SparkJobOperator.
    """

    JOB = "compact_history.py"

    def execute(self, context: Context) -> None:
        """Submit the job."""
        self.submit(["--history", history_uri()], context)


class ForecastCapacityOperator(SparkJobOperator):
    """Forecast when log dirs, brokers and clusters are full; the forecast is kept with the run.

    Fails, once it is written, if a cluster has no snapshot.

    :param clusters: how many clusters there are.
    :param run_uris: artifacts with the snapshots of those that were reached: a list, or its JSON.
    :param cluster_ids: Kafka's ids of the same clusters; likewise.

    All else is as in SparkJobOperator.
    """

    JOB = "forecast_capacity.py"

    template_fields: Sequence[str] = (*SparkJobOperator.template_fields, "run_uris", "cluster_ids")

    def __init__(
        self, *, clusters: int, run_uris: list[str] | str, cluster_ids: list[str] | str, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.clusters = clusters
        self.run_uris = run_uris
        self.cluster_ids = cluster_ids

    def execute(self, context: Context) -> None:
        """Submit the job."""
        runs, out = as_list(self.run_uris), run_uri(context["dag"].dag_id, context["run_id"])
        arguments = [
            *("--history", history_uri(), "--out", out),
            *(word for uri in runs for word in ("--run", uri)),
            *(word for cluster_id in as_list(self.cluster_ids) for word in ("--cluster", cluster_id)),
        ]
        self.submit(arguments, context)
        if missing := self.clusters - len(runs):
            raise AirflowFailException(
                f"{missing} of {self.clusters} clusters have no snapshot and no forecast: check the tasks before; "
                f"the forecast of the others is in {out}"
            )
        self.log.info("the forecast is in %s", out)
