"""A Spark job of this project: what it is given, from all places that say it, and how it is submitted."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

import rebalance_lib
from kafka_rebalance_airflow.links import SparkUiLink
from kafka_rebalance_airflow.spark import checked, connection_of, of_connection, submitted
from kafka_rebalance_airflow.spark_connect import ConnectJob
from kafka_rebalance_airflow.storage import handed_over

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context

JOBS = Path(rebalance_lib.__file__).parent / "jobs"


class SparkJobOperator(SparkSubmitOperator):
    """Run one of the programs in ``rebalance_lib/jobs``.

    Where the connection is of type ``spark_connect``, the job runs on that server, without spark-submit.

    :param spark: what the job is given, as `kafka_rebalance_airflow.spark` has it; goes before the next one.
    :param spark_by_connection: by connection to a cluster, likewise; empty text stands for all clusters.
    :param kafka_conn_id: the connection whose part of it counts; empty for a job about all clusters.

    All else is as in SparkSubmitOperator, and goes before ``spark``.
    """

    JOB: str  # its file

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "kafka_conn_id")
    operator_extra_links: Collection[BaseOperatorLink] = (SparkUiLink(),)
    ui_color = "#fbe9d7"

    def __init__(
        self,
        *,
        spark: Mapping[str, Any] | None = None,
        spark_by_connection: Mapping[str, Mapping[str, Any]] | None = None,
        kafka_conn_id: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(application=str(JOBS / self.JOB), name=kwargs.pop("name", "kafka-rebalance"), **kwargs)
        self.spark = checked(spark)
        self.spark_by_connection = {name: checked(block) for name, block in (spark_by_connection or {}).items()}
        self.kafka_conn_id = kafka_conn_id
        if (named := connection_of(self.spark)) and "conn_id" not in kwargs:
            self._conn_id = named
        self._conn_id_is_given = "conn_id" in kwargs or bool(named)
        self._connect_job: ConnectJob | None = None

    def submit(self, arguments: Sequence[str], context: Context) -> None:
        """Run the job with these arguments to its end; it fails if the job does."""
        with handed_over(arguments) as self.application_args:
            connection = self._connection()
            if connection is not None and connection.conn_type == ConnectJob.CONN_TYPE:
                self._connect_job = ConnectJob(self._conn_id, self.application, self.application_args, self.log)
                self._connect_job.run()
            else:
                with spark_submit_on_path():
                    super().execute(context)

    def on_kill(self) -> None:
        """End the job."""
        if self._connect_job is not None:
            self._connect_job.end()
        else:
            super().on_kill()

    def _of_file(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """What the file of clusters says of this cluster, and of all."""
        return self.spark_by_connection.get(self.kafka_conn_id, {}), self.spark_by_connection.get("", {})

    def _connection(self) -> Any:
        """The connection to Spark, None if there is no such; the one of a cluster is known only now."""
        if not self._conn_id_is_given:
            of_cluster, of_all = map(connection_of, self._of_file())
            self._conn_id = of_cluster or of_all or self._conn_id
        try:
            return BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            return None  # the hook says that it goes on with YARN

    def _get_hook(self) -> SparkSubmitHook:
        """What runs spark-submit, with the properties of all places."""
        from rebalance_lib.jobs.archive import driver_java_options

        connection = self._connection()
        extra = connection.extra_dejson if connection is not None else {}
        try:
            found = submitted(self.spark, *self._of_file(), of_connection(extra))
        except ValueError as error:
            raise AirflowFailException(f"connection {self._conn_id}: {error}") from error
        if "cluster" not in (self._deploy_mode, extra.get("deploy-mode")):
            found.setdefault("spark.driver.extraJavaOptions", driver_java_options())
        self.conf = {**found, **(self.conf or {})}
        return super()._get_hook()


@contextmanager
def spark_submit_on_path() -> Iterator[None]:
    """Where ``PATH`` has no spark-submit, put the directory of this Python first, in which pip installs pyspark's.

    Spark's driver, and executors on this machine, then have this Python too, as in an active virtual environment.
    """
    before = os.environ.get("PATH", os.defpath)
    if shutil.which("spark-submit", path=before) is None:
        os.environ["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before
