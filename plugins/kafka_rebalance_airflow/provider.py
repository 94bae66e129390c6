"""What Airflow reads of this package: its connection form and its section of the configuration.

Airflow reads it through the entry point ``apache_airflow_provider`` of the installed package, in every process that it
starts, so it imports nothing of the project.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

PACKAGE = "kafka-rebalance"
INTEGRATION = "Apache Kafka"
HOME = "kafka_rebalance_airflow"
KAFKA_PROVIDER = "apache-airflow-providers-apache-kafka"


def connection_type() -> str:
    """The connection type whose form is ours: ``kafka``, unless Airflow's own Kafka provider is there to have it.

    Airflow gives each type to one provider, and warns of a second one. The hook reads connections of any type.
    """
    try:
        metadata.distribution(KAFKA_PROVIDER)
    except metadata.PackageNotFoundError:
        return "kafka"
    return "kafkaadmin"


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata, in the shape of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": PACKAGE,
        "name": "Kafka Rebalance",
        "description": "Rebalances Apache Kafka clusters: planned on Spark, approved by a person, run and verified.",
        "integrations": [
            {"integration-name": INTEGRATION, "external-doc-url": "https://kafka.apache.org/", "tags": ["apache"]}
        ],
        "hooks": [_modules("hooks.kafka_admin")],
        "operators": [
            _modules(
                "operators.cancellation",
                "operators.execution",
                "operators.fleet",
                "operators.form",
                "operators.history",
                "operators.plan",
                "operators.recording",
                "operators.review",
                "operators.spark_job",
            )
        ],
        "sensors": [_modules("sensors.cancellation", "sensors.cluster_lock", "sensors.reassignment", "sensors.review")],
        "triggers": [_modules("triggers.reassignment")],
        "connection-types": [
            {
                "connection-type": connection_type(),
                "hook-class-name": f"{HOME}.hooks.kafka_admin.KafkaAdminHook",
                "hook-name": "Apache Kafka (kafka-rebalance)",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema"],
                    "relabeling": {
                        "host": "Servers",
                        "login": "User, or OAuth client id",
                        "password": "Password, or OAuth client secret or token",
                    },
                    "placeholders": {"host": "kafka-1:9092,kafka-2:9092", "port": "9092"},
                },
                "conn-fields": _fields(),
            }
        ],
        "config": {"kafka_rebalance": {"description": "Where runs keep what they leave.", "options": _options()}},
    }


def _modules(*names: str) -> dict[str, Any]:
    return {"integration-name": INTEGRATION, "python-modules": [f"{HOME}.{name}" for name in names]}


def _fields() -> dict[str, Any]:
    """The fields of the connection form that are kept in extra, by the names that Kafka's clients know."""
    path = "A path that every worker and the triggerer can read."
    return {
        "security.protocol": _field(
            "Security protocol",
            "PLAINTEXT if empty. The one of the listener that the servers name.",
            enum=["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        ),
        "sasl.mechanism": _field(
            "SASL mechanism",
            "How to sign in where the security protocol is a SASL one.",
            enum=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"],
        ),
        "ssl.ca.location": _field(
            "CA file", f"PEM with the CAs that sign the brokers' certificates; this machine's own if empty. {path}"
        ),
        "ssl.certificate.location": _field("Certificate file", f"PEM with this client's certificate. {path}"),
        "ssl.key.location": _field("Key file", f"PEM with the key of this client's certificate. {path}"),
        "ssl.key.password": _field("Key password", "What the key file is encrypted with.", format="password"),
        "ssl.endpoint.identification.algorithm": _field(
            "Check of host names",
            "https if empty; none does not compare certificate and host name.",
            enum=["https", "none"],
        ),
        "sasl.oauthbearer.token.endpoint.url": _field(
            "OAuth token endpoint",
            "Where tokens are asked for with client id and secret; without it, the password is one.",
        ),
        "sasl.oauthbearer.scope": _field("OAuth scope", "What the token is to be good for, if it must be said."),
        "request.timeout.ms": _field("Request timeout", "Milliseconds for one request; 15000 if empty.", "integer"),
        "default.api.timeout.ms": _field(
            "Connect timeout", "Milliseconds in all until the cluster is reached; 10000 if empty.", "integer"
        ),
    }


def _field(label: str, description: str, kind: str = "string", **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": [kind, "null"], **schema}}


def _options() -> dict[str, Any]:
    return {
        "artifacts": _option(
            "Below which URI runs keep their artifacts. Airflow and Spark must both reach it. "
            "If empty, a directory in AIRFLOW_HOME.",
            example="file:///shared/kafka-rebalance",
        ),
        "history": _option(
            "Below which URI the history of all snapshots is kept. If empty, beside the runs.",
            example="file:///shared/kafka-history",
        ),
        "clusters": _option(
            "The file of clusters: which there are, when each is rebalanced, and how. Empty: kafka_clusters.yaml "
            "beside the DAGs.",
            example="/opt/airflow/config/kafka_clusters.yaml",
        ),
        "spark_ui": _option(
            "Where Spark's jobs can be seen, for the links of tasks: a history server, or a master. Empty: the master "
            "of the connection, if it is a standalone one.",
            example="http://spark-history:18080",
        ),
        "keep_runs_days": _option("For how many days the artifacts of a run are kept.", "integer", "90", "30"),
        "keep_history_days": _option("For how many days the history of a cluster is kept.", "integer", "30", "365"),
        "thin_history_after_days": _option(
            "After how many days one snapshot of each hour is enough.", "integer", "2", "7"
        ),
    }


def _option(description: str, kind: str = "string", default: str = "", example: str = "") -> dict[str, Any]:
    return {
        "description": description,
        "version_added": "0.1.0",
        "type": kind,
        "default": default,
        "example": example,
    }
