"""The connection to a Kafka cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

if TYPE_CHECKING:
    from rebalance_lib.cluster import Cluster


class KafkaAdminHook(BaseHook):
    """Admin access to a Kafka cluster.

    Reads connections made for ``apache-airflow-providers-apache-kafka`` (type ``kafka``, everything in extra under
    Kafka's dotted names) as well as plain ones: host and port, or a list of servers as host; login and password for
    SASL.

    :param kafka_conn_id: the connection to use.
    """

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "kafka"
    hook_name = "Apache Kafka (kafka-rebalance)"

    def __init__(self, kafka_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.kafka_conn_id = kafka_conn_id

    def settings(self) -> dict[str, Any]:
        """What kafka-python's clients take, secrets included: never to be logged or kept."""
        from rebalance_lib.cluster import client_settings

        connection = self.get_connection(self.kafka_conn_id)
        extra = {key: value for key, value in connection.extra_dejson.items() if value not in (None, "")}
        servers = extra.get("bootstrap.servers") or connection.host
        if not servers:
            raise ValueError(
                f"connection {self.kafka_conn_id!r} names no Kafka servers: "
                'set its host, or "bootstrap.servers" in its extra'
            )
        names = [server.strip() for server in servers.split(",")]
        if connection.port:
            names = [name if ":" in name else f"{name}:{connection.port}" for name in names]
        settings = client_settings(extra)
        if connection.login:
            if "sasl_mechanism" not in settings:
                raise ValueError(
                    f"connection {self.kafka_conn_id!r} has a login, which only SASL uses: "
                    'set "security.protocol" and "sasl.mechanism" in its extra, or remove the login'
                )
            settings["sasl_plain_username"] = connection.login
            settings["sasl_plain_password"] = connection.password
        return {"bootstrap_servers": names, **settings}

    def get_conn(self) -> Cluster:
        """Open the cluster; use it as a context manager."""
        from rebalance_lib.cluster import Cluster

        return Cluster(self.settings())

    def test_connection(self) -> tuple[bool, str]:
        """Answer the Test button of the connection form."""
        try:
            with self.get_conn() as cluster:
                described = cluster.describe()
        except Exception as error:
            return False, f"{type(error).__name__}: {error}"
        return True, f"cluster {described['cluster_id']} with {len(described['brokers'])} brokers"
