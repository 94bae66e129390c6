"""Kafka's client settings, as kafka-python takes them."""

from __future__ import annotations

import pytest

from rebalance_lib.cluster import Cluster, client_settings, read_properties, secrets
from rebalance_lib.cluster.oauth import ClientCredentials
from rebalance_lib.errors import InvalidInputError

MODULE = "org.apache.kafka.common.security"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", ENDPOINT: "https://id/token"}


def test_a_properties_file_is_read_as_java_reads_it():
    text = (
        "# a comment\n"
        "! another\n"
        "plain=value\n"
        "  colon : spaced value \n"
        "blank value\n"
        "empty=\n"
        "alone\n"
        "joined=one,\\\n"
        "    two\n"
        "escaped\\ key=tab\\tand \\u00e9 and \\\\\n"
    )
    assert read_properties(text) == {
        "plain": "value",
        "colon": "spaced value ",
        "blank": "value",
        "empty": "",
        "alone": "",
        "joined": "one,two",
        "escaped key": "tab\tand é and \\",
    }


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", f"{MODULE}.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", f"{MODULE}.scram.ScramLoginModule"),
        ("SCRAM-SHA-512", f"{MODULE}.scram.ScramLoginModule"),
    ],
)
def test_sasl_credentials_come_out_of_the_login_module(mechanism, module):
    text = (
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} required \\\n   username="al\\\\"ice" \\\n   password=\'s3 =;cret\';\n'
    )
    assert client_settings(read_properties(text)) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": 'al"ice',
        "sasl_plain_password": "s3 =;cret",
    }


def test_pem_files_and_librdkafkas_names_are_taken():
    assert client_settings(
        {
            "security.protocol": "ssl",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "/client.pem",
            "ssl.key.password": "x",
            "ssl.endpoint.identification.algorithm": "",
            "request.timeout.ms": 5000,
            "default.api.timeout.ms": "60000",
        }
    ) == {
        "security_protocol": "SSL",
        "ssl_cafile": "/ca.pem",
        "ssl_certfile": "/client.pem",
        "ssl_keyfile": "/client.pem",
        "ssl_password": "x",
        "ssl_check_hostname": False,
        "request_timeout_ms": 5000,
        "bootstrap_timeout_ms": 60000,
    }
    assert client_settings({"ssl.ca.location": "/ca.pem", "sasl.username": "u", "sasl.password": "p"}) == {
        "ssl_cafile": "/ca.pem",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }


@pytest.mark.parametrize(
    "credentials",
    [
        {"sasl.username": "me", "sasl.password": "hidden", "sasl.oauthbearer.scope": "kafka"},
        {
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": "hidden",
            "sasl.oauthbearer.scope": "kafka",
        },
        {
            "sasl.login.callback.handler.class": f"{MODULE}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.jaas.config": f"{MODULE}.oauthbearer.OAuthBearerLoginModule required "
            'clientId="me" clientSecret="hidden" scope="kafka";',
        },
    ],
)
def test_a_clients_secret_may_have_any_of_kafkas_names(credentials):
    settings = client_settings({**OAUTH, "ssl.ca.location": "/ca.pem", **credentials})
    assert settings == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "ssl_cafile": "/ca.pem",
        "sasl_oauth_token_provider": ClientCredentials("https://id/token", "me", "hidden", "kafka", "/ca.pem"),
    }
    assert "hidden" not in repr(settings)


def test_secrets_are_known_as_such():
    with_password = client_settings({"sasl.username": "u", "sasl.password": "one", "ssl.key.password": "two"})
    with_token = client_settings(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.password": "3"}
    )
    assert (secrets(with_password), secrets(with_token), secrets({})) == (["one", "two"], ["3"], [])
    assert "'3'" not in repr(with_token)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"ssl.keystore.location": "/hush.jks"}, "reads PEM files, not JKS; convert the keystore"),
        ({"ssl.truststore.location": "/a", "ssl.truststore.type": "PKCS12"}, "not PKCS12; convert the truststore"),
        ({"ssl.keystore.key": "hush"}, "ssl.keystore.key: this client has no such setting"),
        ({"sasl.login.callback.handler.class": "x"}, "sasl.login.callback.handler.class: this client has no such"),
        ({"security.protocol": "TLS"}, "security.protocol is TLS; it is one of PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is GSSAPI; this client has PLAIN"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism is GSSAPI"),
        ({**OAUTH, "sasl.username": "u"}, "sasl.oauthbearer.token.endpoint.url needs a client id and secret"),
        ({**OAUTH, ENDPOINT: "file:///hush", "sasl.username": "u", "sasl.password": "p"}, "begins with https://"),
        ({"sasl.jaas.config": "com.sun.Krb5LoginModule required hush=1;"}, "reads PlainLoginModule, Scram"),
        ({"sasl.jaas.config": 'PlainLoginModule required username="hush";'}, "sasl.jaas.config has no password"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms is 'soon', not a whole number"),
    ],
)
def test_what_cannot_be_carried_over_is_refused_without_a_secret(properties, message):
    with pytest.raises(InvalidInputError) as error:
        client_settings(properties)
    assert message in str(error.value)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"security.protocol": "SSL", "ssl.ca.location": "/no/such/ca.pem"}, "/no/such/ca.pem, named in the client"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}, "SASL needs a password"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs a token"),
    ],
)
def test_what_could_never_connect_is_said_at_once(properties, message):
    with pytest.raises(InvalidInputError, match=message):
        Cluster({"bootstrap_servers": ["127.0.0.1:1"], **client_settings(properties)})
