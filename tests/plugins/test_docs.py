"""The connections that the docs show are read as the docs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from rebalance_lib.cluster.client import NEEDED_ON_CLUSTER, NEEDED_ON_TOPICS
from rebalance_lib.cluster.oauth import ClientCredentials

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "connections.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"AIRFLOW_CONN_KAFKA_DEFAULT='(.*?)'\n", TEXT, re.DOTALL)
SASL_SSL = {"bootstrap_servers": ["kafka-1:9093"], "security_protocol": "SASL_SSL"}
READ = [
    {"bootstrap_servers": ["kafka-1:9092", "kafka-2:9092"]},
    {
        **SASL_SSL,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "rebalance",
        "sasl_plain_password": "...",
        "ssl_cafile": "/etc/kafka/ca.pem",
    },
    {
        "bootstrap_servers": ["kafka-1:9094"],
        "security_protocol": "SSL",
        "ssl_cafile": "/etc/kafka/ca.pem",
        "ssl_certfile": "/etc/kafka/rebalance.pem",
        "ssl_keyfile": "/etc/kafka/rebalance.key",
        "ssl_password": "...",
    },
    {
        **SASL_SSL,
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": ClientCredentials(
            "https://id.example.com/oauth2/token", "rebalance", "...", "kafka"
        ),
    },
]


@pytest.mark.parametrize(
    ("example", "settings"), list(zip(EXAMPLES, [one for one in READ for _ in range(2)], strict=True))
)
def test_an_example_is_read_as_it_says_both_as_json_and_as_uri(monkeypatch, example, settings):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", example)
    assert KafkaAdminHook().settings() == settings


def test_the_rights_that_are_listed_are_those_that_are_asked_for():
    def named(line: str) -> set[str]:
        row = re.search(rf"^\| {line} \| (.*?) \|", TEXT, re.MULTILINE)
        assert row
        return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper() for name in re.findall(r"`(\w+)`", row[1])}

    assert named("the cluster") == NEEDED_ON_CLUSTER
    assert named("the topics") == NEEDED_ON_TOPICS
