"""What Airflow's UI gets: a tab "Rebalance" on each DAG run, and an entry of the navigation that lists runs.

Every part of Airflow loads its plugins, tasks included, but only the api-server serves pages: the application behind
them is imported with the first request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

from kafka_rebalance_airflow.links import RUN_TAB

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

PREFIX = "kafka-rebalance"


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application of the pages."""
    from kafka_rebalance_airflow.pages.app import app

    await app(scope, receive, send)


class KafkaRebalancePlugin(AirflowPlugin):
    """Pages of rebalances, with Airflow's own access checks."""

    name = "kafka_rebalance"
    fastapi_apps: list[Any] = [{"app": pages, "url_prefix": f"/{PREFIX}", "name": "Kafka rebalance"}]  # noqa: RUF012
    # Addresses are relative: Airflow may live below a path of its own.
    external_views: list[Any] = [  # noqa: RUF012
        {
            "name": "Rebalance",
            "href": f"{PREFIX}/runs/{{DAG_ID}}/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": RUN_TAB,
        },
        {
            "name": "Kafka rebalance",
            "href": f"{PREFIX}/runs",
            "destination": "nav",
            "category": "browse",
            "url_route": PREFIX,
        },
    ]
