"""Who is told what: real notifiers, configured by the Variable."""

from __future__ import annotations

import json

import pytest
from airflow.sdk import BaseNotifier

from kafka_rebalance_airflow import notifications
from kafka_rebalance_airflow.notifications import EVENTS, VARIABLE, notify

told = []


class Notebook(BaseNotifier):
    """Writes down what it is told."""

    template_fields = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context):
        told.append((context["kafka_rebalance"]["event"], self.text))


class Broken(BaseNotifier):
    """Reaches nobody, and says with what."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address

    def notify(self, context):
        raise ConnectionError(f"{self.address} does not answer")


@pytest.fixture(autouse=True)
def configured(monkeypatch):
    told.clear()

    def configure(*entries):
        monkeypatch.setenv(f"AIRFLOW_VAR_{VARIABLE.upper()}", json.dumps(list(entries)))

    return configure


NOTEBOOK = {
    "notifier": f"{__name__}.Notebook",
    "with": {"text": "{{ kafka_rebalance.text }} ({{ kafka_rebalance.run_id }})"},
}


def test_all_events_reach_a_notifier_with_its_templates_rendered(configured):
    configured(NOTEBOOK)
    for event in EVENTS:
        notify(event, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert told == [(event, "look (manual__1)") for event in EVENTS]


def test_a_notifier_is_told_of_its_events_alone(configured):
    configured({**NOTEBOOK, "on": ["failed"]})
    for event in EVENTS:
        notify(event, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert [event for event, _ in told] == ["failed"]


@pytest.mark.parametrize("entry", [{"notifier": "os.system"}, {"notifier": "no.such.Thing"}, {}, "x"])
def test_what_is_no_notifier_is_logged_and_fails_nothing(configured, entry, caplog):
    configured(entry)
    notify(notifications.FAILED, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert f"look at the Variable {VARIABLE}" in caplog.text


def test_what_a_notifier_is_made_with_is_not_logged_when_it_fails(configured, caplog):
    secret = "https://hooks.example/planted-secret"  # noqa: S105
    configured(
        {"notifier": f"{__name__}.Broken", "with": {"address": secret}}, {"notifier": "os.system", "with": secret}
    )
    notify(notifications.FAILED, "look", dag_id="kafka_rebalance", run_id="manual__1")
    assert f"{__name__}.Broken was not told of 'failed' (ConnectionError)" in caplog.text
    assert "planted" not in caplog.text
