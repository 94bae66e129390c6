"""The connection to a Kafka cluster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from kafka_rebalance_airflow.provider import connection_type

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from rebalance_lib.cluster import Cluster

SHOWN = 5  # rights that lack, in the answer of the connection test


class KafkaAdminHook(BaseHook):
    """Admin access to a Kafka cluster.

    Reads connections made for ``apache-airflow-providers-apache-kafka`` (type ``kafka``, everything in extra under
    Kafka's dotted names) as well as plain ones: host and port, or a list of servers as host; login and password for
    SASL. What can be set is in ``docs/connections.md``.

    :param kafka_conn_id: the connection to use.
    """

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = connection_type()
    hook_name = "Apache Kafka (kafka-rebalance)"

    def __init__(self, kafka_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.kafka_conn_id = kafka_conn_id

    def settings(self) -> dict[str, Any]:
        """What kafka-python's clients take, secrets included: never to be logged or kept."""
        from airflow.sdk.log import mask_secret

        from rebalance_lib.cluster import client_settings, secrets
        from rebalance_lib.errors import InvalidInputError

        connection = self.get_connection(self.kafka_conn_id)
        extra = {key: value for key, value in connection.extra_dejson.items() if value not in (None, "")}
        servers = _servers(extra.get("bootstrap.servers") or connection.host, connection)
        if not servers:
            raise ValueError(
                f"connection {self.kafka_conn_id!r} names no Kafka servers: "
                'set its host, or "bootstrap.servers" in its extra'
            )
        if connection.login or connection.password:
            extra.pop("sasl.jaas.config", None)
            extra |= {"sasl.username": connection.login, "sasl.password": connection.password}
        try:
            settings = client_settings(extra)
        except InvalidInputError as error:
            raise InvalidInputError(f"connection {self.kafka_conn_id!r}: {error}") from error
        if connection.login and "sasl_mechanism" not in settings:
            raise ValueError(
                f"connection {self.kafka_conn_id!r} has a login, which only SASL uses: "
                'set "security.protocol" and "sasl.mechanism" in its extra, or remove the login'
            )
        for secret in secrets(settings):  # Airflow masks what it knows to be one; it does not look into a login module
            mask_secret(secret)
        return {"bootstrap_servers": servers, **settings}

    def get_conn(self) -> Cluster:
        """Open the cluster; use it as a context manager."""
        from rebalance_lib.cluster import Cluster
        from rebalance_lib.errors import ClusterError, InvalidInputError

        settings = self.settings()
        if (logger := logging.getLogger("kafka")).level == logging.NOTSET:
            logger.setLevel(logging.WARNING)  # some thirty lines for each connection hide those of the task
        try:
            return Cluster(settings)
        except (ClusterError, InvalidInputError) as error:
            raise type(error)(f"connection {self.kafka_conn_id!r}: {error}") from error

    def test_connection(self) -> tuple[bool, str]:
        """Answer the Test button of the connection form.

        It is printed too: ``airflow connections test`` shows a failure's answer alone, and no logs.
        """
        try:
            with self.get_conn() as cluster:
                described = cluster.describe()
                found = f"cluster {described['cluster_id']} with {len(described['brokers'])} brokers"
                found += f", Kafka {cluster.kafka_version()}{_lacks(cluster.missing_operations())}"
        except Exception as error:
            return False, f"{type(error).__name__}: {error}"
        print(f"connection {self.kafka_conn_id!r}: {found}")
        return True, found


def _servers(named: str | None, connection: Connection) -> list[str]:
    names = [server.strip() for server in (named or "").split(",") if server.strip()]
    if connection.port:
        return [name if ":" in name else f"{name}:{connection.port}" for name in names]
    return names


def _lacks(missing: list[str]) -> str:
    if not missing:
        return ""
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    return f"; to rebalance it, this user lacks {', '.join(missing[:SHOWN])}{more}"
