"""What Airflow is told of this package, as Airflow reads it."""

from __future__ import annotations

import json
import logging

import pytest
from airflow.configuration import conf
from airflow.providers_manager import ProvidersManager, _create_provider_info_schema_validator
from airflow.sdk._shared.secrets_masker import should_hide_value_for_key
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.provider import get_provider_info
from rebalance_lib.cluster import client_settings

FORM = get_provider_info()["connection-types"][0]
FIELDS = FORM["conn-fields"]
VALUES = {
    "ssl.endpoint.identification.algorithm": "none",
    "request.timeout.ms": 1000,
    "default.api.timeout.ms": 2000,
    "sasl.oauthbearer.token.endpoint.url": "https://id/token",
    "sasl.mechanism": "OAUTHBEARER",
    "security.protocol": "SASL_SSL",
}


def test_airflow_takes_the_metadata_and_loads_the_hook_without_a_word(caplog):
    _create_provider_info_schema_validator().validate(get_provider_info())
    with caplog.at_level(logging.WARNING):
        found = ProvidersManagerTaskRuntime().hooks["kafka"]
    assert "kafka-rebalance" in ProvidersManager().providers
    assert found.hook_class_name == f"{KafkaAdminHook.__module__}.{KafkaAdminHook.__name__}"
    assert (found.hook_name, found.connection_testable) == (FORM["hook-name"], True)
    assert KafkaAdminHook.hook_name == FORM["hook-name"]
    assert [record.getMessage() for record in caplog.records if "kafka" in record.getMessage()] == []


def test_the_connection_form_has_its_fields_and_hides_what_is_secret():
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

    (form,) = [form for form in HookMetaService.hook_meta_data() if form.connection_type == "kafka"]
    assert list(form.extra_fields) == list(FIELDS)
    assert form.standard_fields.host.title == "Servers"
    assert form.standard_fields.url_schema.hidden
    secret = [name for name, field in form.extra_fields.items() if field["schema"].get("format") == "password"]
    assert secret == ["ssl.key.password"]
    assert all(should_hide_value_for_key(name) for name in secret)
    assert all(field["description"] and field["schema"]["title"] for field in form.extra_fields.values())


def test_every_field_of_the_form_is_one_that_the_client_takes():
    given = {name: VALUES.get(name, "given") for name in FIELDS}
    settings = client_settings({**given, "sasl.username": "me", "sasl.password": "hidden"})
    assert len(settings) == len(FIELDS) - 1  # endpoint and scope are both in what gets tokens
    for name, value in VALUES.items():
        assert value in FIELDS[name]["schema"].get("enum", [value])


@pytest.mark.parametrize("empty", [None, ""])
def test_fields_left_empty_in_the_form_are_as_if_they_were_not_there(monkeypatch, empty):
    connection = {"conn_type": "kafka", "host": "a:1", "extra": dict.fromkeys(FIELDS, empty)}
    monkeypatch.setenv("AIRFLOW_CONN_EMPTY", json.dumps(connection))
    assert KafkaAdminHook("empty").settings() == {"bootstrap_servers": ["a:1"]}


def test_the_configuration_has_its_defaults():
    ProvidersManager().initialize_providers_configuration()
    assert conf.getint("kafka_rebalance", "keep_runs_days") == 90
    assert conf.getint("kafka_rebalance", "keep_history_days") == 30
    assert conf.getint("kafka_rebalance", "thin_history_after_days") == 2
    assert conf.get("kafka_rebalance", "artifacts") == ""
    assert conf.get("kafka_rebalance", "clusters") == ""
