"""Connections to clusters that ask who a client is: every way in, and what is said where there is none."""

from __future__ import annotations

import base64
import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from rebalance_lib.cluster import take_snapshot
from rebalance_lib.errors import ClusterError, InvalidInputError
from sandbox.certificates import make_certificates
from sandbox.security import unsecured_token
from tests.plugins.conftest import PASSWORD, WRONG
from tests.waiting import wait_for

PATIENT = "600000"  # longer than a test may take: what could never connect must not wait for it


@pytest.fixture
def connect(monkeypatch, secured):
    """Make the hook for a connection to the secured cluster with these fields and this extra."""

    def make(extra, **fields):
        host = fields.get("host") or secured.secure_servers(extra["security.protocol"])
        connection = {"conn_type": "kafka", "host": host, "extra": extra, **fields}
        monkeypatch.setenv("AIRFLOW_CONN_SECURED", json.dumps(connection))
        return KafkaAdminHook("secured")

    return make


@pytest.fixture
def identity_provider():
    """An identity provider that gives ``rebalance`` tokens for its secret, and counts what it gave."""
    given: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            basic = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            known = basic == f"rebalance:{PASSWORD}" and form == "grant_type=client_credentials&scope=kafka"
            answer = {"error": "invalid_client", "error_description": f"not {basic}"}
            if known:
                given.append(unsecured_token("rebalance"))
                answer = {"access_token": given[-1], "expires_in": 3600}
            body = json.dumps(answer).encode()
            self.send_response(200 if known else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token", given
    server.shutdown()
    server.server_close()


def ca(secured):
    return {"ssl.ca.location": str(secured.certificates / "ca.pem")}


def certificate(secured):
    here = secured.certificates
    return {
        "ssl.certificate.location": str(here / "rebalance.pem"),
        "ssl.key.location": str(here / "rebalance.key"),
        "ssl.key.password": PASSWORD,
    }


def oauth(url):
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.scope": "kafka",
    }


def signs_in(hook, secured):
    with hook.get_conn() as cluster:
        assert cluster.cluster_id() == secured.cluster_id
        assert cluster.missing_operations() == []  # only the user that was meant may do everything


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_sign_in(connect, secured, mechanism, protocol):
    extra = {"security.protocol": protocol, "sasl.mechanism": mechanism}
    if protocol == "SASL_SSL":
        extra |= ca(secured)
    signs_in(connect(extra, login="rebalance", password=PASSWORD), secured)


def test_a_login_module_signs_in(connect, secured):
    jaas = (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="rebalance" password="{PASSWORD}";'
    )
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    signs_in(connect(extra), secured)


def test_a_certificate_signs_in(connect, secured):
    signs_in(connect({"security.protocol": "SSL", **ca(secured), **certificate(secured)}), secured)


def test_a_given_token_signs_in(connect, secured):
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    signs_in(connect(extra, password=unsecured_token("rebalance")), secured)


def test_tokens_of_an_identity_provider_sign_in_and_are_used_again(connect, secured, identity_provider):
    url, given = identity_provider
    signs_in(connect(oauth(url), login="rebalance", password=PASSWORD), secured)
    assert len(given) == 1  # for the bootstrap connection and the one after it


def client_threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith("kafka-io")}


def is_refused(hook, *words, secret):
    """The hook says these words, and the secret nowhere, not even in what caused its error; no thread stays."""
    before = client_threads()
    with pytest.raises((ClusterError, InvalidInputError)) as caught:
        hook.get_conn()
    for word in ("connection 'secured': ", *words):
        assert word in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        assert secret not in f"{error!r} {error}"
        error = error.__cause__ or error.__context__
    assert hook.test_connection() == (False, f"{caught.type.__name__}: {caught.value}")
    wait_for(client_threads, lambda left: left <= before)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_said_at_once(connect, mechanism):
    extra = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "default.api.timeout.ms": PATIENT,
    }
    hook = connect(extra, login="rebalance", password=WRONG)
    words = (
        "SaslAuthenticationFailedError",
        f"check the user and the password or token, and that the cluster knows the user for {mechanism}",
    )
    is_refused(hook, *words, secret=WRONG)


def test_a_listener_without_sasl_is_said_at_once(connect, secured):
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "default.api.timeout.ms": PATIENT}
    hook = connect(extra, host=secured.bootstrap_servers, login="rebalance", password=PASSWORD)
    is_refused(hook, "sasl.mechanism is PLAIN: this listener has another, or none", secret=PASSWORD)


def test_a_broker_that_the_ca_does_not_vouch_for_is_said_at_once(connect, secured, tmp_path):
    make_certificates(tmp_path, {})
    extra = {"security.protocol": "SSL", **certificate(secured), "default.api.timeout.ms": PATIENT}
    hook = connect({**extra, "ssl.ca.location": str(tmp_path / "ca.pem")})
    is_refused(hook, "CERTIFICATE_VERIFY_FAILED", "signed by the CA in ssl.ca.location", secret=PASSWORD)


@pytest.mark.parametrize("lacking", ["ssl.certificate.location", "ssl.key.password"])
def test_a_certificate_that_lacks_or_cannot_be_read_is_said_at_once(connect, secured, lacking):
    extra = {"security.protocol": "SSL", **ca(secured), **certificate(secured), "default.api.timeout.ms": PATIENT}
    if lacking == "ssl.key.password":
        extra[lacking] = WRONG
    else:
        del extra[lacking]
    is_refused(
        connect(extra),
        "check ssl.certificate.location, ssl.key.location and ssl.key.password",
        secret=extra["ssl.key.password"],
    )


def test_another_protocol_than_the_listeners_is_said(connect, secured):
    hook = connect({"default.api.timeout.ms": "1500"}, host=secured.secure_servers("SASL_SSL"))
    is_refused(hook, "check the servers", "that security.protocol (PLAINTEXT) is theirs", secret=PASSWORD)


def test_a_secret_that_the_identity_provider_does_not_know_is_said_at_once(connect, identity_provider):
    url, _ = identity_provider
    hook = connect({**oauth(url), "default.api.timeout.ms": PATIENT}, login="rebalance", password=WRONG)
    words = (
        "token.endpoint.url (127.0.0.1:",
        "gave no token: 401 invalid_client; check client id, client secret and scope",
    )
    is_refused(hook, *words, secret=WRONG)


def test_an_identity_provider_that_is_not_there_is_said_at_once(connect):
    hook = connect(
        {**oauth("http://127.0.0.1:1/token"), "default.api.timeout.ms": PATIENT}, login="rebalance", password=PASSWORD
    )
    is_refused(hook, "(127.0.0.1:1) gave no token: URLError", secret=PASSWORD)


def test_a_token_that_kafka_does_not_take_is_said_at_once(connect):
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "default.api.timeout.ms": PATIENT}
    token = unsecured_token("rebalance", seconds=-600)
    is_refused(connect(extra, password=token), "SaslAuthenticationFailedError", "for OAUTHBEARER", secret=token)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is TLS"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs a token"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/no/such/ca.pem"}, "/no/such/ca.pem, named in the client"),
    ],
)
def test_settings_that_could_never_connect_are_said_with_the_connection(connect, extra, message):
    is_refused(connect(extra, host="127.0.0.1:1"), message, secret=PASSWORD)


def test_no_secret_is_logged_at_any_level(connect, secured, identity_provider, caplog):
    url, given = identity_provider
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="kafka"):
        for extra in (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"},
            oauth(url),
        ):
            signs_in(connect(extra, login="rebalance", password=PASSWORD), secured)
        signs_in(connect({"security.protocol": "SSL", **ca(secured), **certificate(secured)}), secured)
    assert "Bootstrap complete" in caplog.text
    for secret in (PASSWORD, base64.b64encode(f"rebalance:{PASSWORD}".encode()).decode(), *given):
        assert secret not in caplog.text


def test_what_airflow_prints_of_a_secret_is_masked(connect):
    from airflow.sdk._shared.secrets_masker import redact

    jaas = 'PlainLoginModule required username="rebalance" password="hidden-in-jaas";'
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    connect(extra).settings()
    assert redact("it was hidden-in-jaas") == "it was ***"


def test_the_connection_test_tells_what_the_user_lacks(connect, secured):
    hook = connect(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, login="reader", password=PASSWORD
    )
    found = f"cluster {secured.cluster_id} with 1 brokers, Kafka 4.3; to rebalance it, this user lacks "
    rights = [("CLUSTER", "kafka-cluster", "DESCRIBE"), ("TOPIC", "orders", "DESCRIBE")]
    with secured.admin() as admin:
        admin.create_topics({"orders": {"num_partitions": 1, "replication_factor": 1}})
        admin.create_acls(
            [
                ACL(
                    "User:reader",
                    "*",
                    ACLOperation[operation],
                    ACLPermissionType.ALLOW,
                    ResourcePattern(ResourceType[kind], name),
                )
                for kind, name, operation in rights
            ]
        )
    lacks = "ALTER on the cluster, ALTER_CONFIGS on the cluster, ALTER_CONFIGS on topic orders, "
    lacks += "DESCRIBE_CONFIGS on the cluster, DESCRIBE_CONFIGS on topic orders"
    wait_for(hook.test_connection, (True, found + lacks))  # the broker hears of rights a moment later
    with hook.get_conn() as cluster:  # which is enough to look at it
        assert {partition.topic for partition in cluster.partitions()} == {"orders"}
        assert take_snapshot(cluster).replicas.num_rows == 1


def test_the_test_button_finds_the_hook(connect, secured):
    from airflow.models import Connection

    hook = connect(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, login="rebalance", password=WRONG
    )
    wrong = Connection.get_connection_from_secrets(hook.kafka_conn_id).test_connection()
    assert wrong == hook.test_connection()
    assert not wrong[0]
    connect({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, login="rebalance", password=PASSWORD)
    right = Connection.get_connection_from_secrets(hook.kafka_conn_id).test_connection()
    assert right == (True, f"cluster {secured.cluster_id} with 1 brokers, Kafka 4.3")
