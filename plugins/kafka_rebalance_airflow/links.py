"""Links on the pages of tasks: to the plan's page, and to where Spark shows its jobs.

Airflow keeps the address as an XCom when the task is left, also when it only begins to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

RUN_TAB = "kafka-rebalance-run"  # the tab's place in the address of a DAG run's page
MASTER_UI_PORT = 8080  # of a Spark standalone master, unless it was told otherwise


def plan_page_url(dag_id: str, run_id: str) -> str:
    """The absolute address of a run's plan: the tab on the page of the DAG run, which asks strangers to sign in."""
    from airflow.configuration import conf

    base = str(conf.get("api", "base_url", fallback="") or "http://localhost:8080").rstrip("/")
    return f"{base}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}/plugin/{RUN_TAB}"


class PlanPageLink(BaseOperatorLink):
    """To the plan's page."""

    name = "Plan"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page of the run that the task is in."""
        return plan_page_url(ti_key.dag_id, ti_key.run_id)


class SparkUiLink(BaseOperatorLink):
    """To where Spark shows its jobs, for a `SparkSubmitOperator`.

    That is the option ``spark_ui``, such as a history server. Without it, the page of the standalone master that the
    connection names; other masters have no page that could be told from the connection, and get no link.
    """

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address, empty if there is none."""
        from airflow.sdk import BaseHook

        from kafka_rebalance_airflow.config import spark_ui

        if address := spark_ui():
            return address
        connection = BaseHook.get_connection(operator._conn_id)  # type: ignore[attr-defined]  # noqa: SLF001 - its only name
        return master_ui(connection.conn_type or "", connection.host or "")


def master_ui(conn_type: str, host: str) -> str:
    """The page of a standalone master, of the first one if there are several; empty for other kinds of masters.

    Example: ``spark://one:7077,two:7077`` has its page at ``http://one:8080``.
    """
    kind, _, rest = host.rpartition("://")
    if (kind or conn_type) != "spark" or rest.startswith(("local", "yarn")):
        return ""
    name = rest.split(",")[0].partition(":")[0]
    return f"http://{name}:{MASTER_UI_PORT}" if name else ""
