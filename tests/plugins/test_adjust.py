"""Pause, resume and adjust a run: one way to ask, checked by the library, recorded with who asked."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.fields import adjust_params
from kafka_rebalance_airflow.operators.adjustment import AdjustRunOperator
from rebalance_lib.execution import Kind, Run, Settings
from rebalance_lib.execution.requests import SETTINGS, Controls, read_requests

EMPTY = {name: param.resolve() for name, param in adjust_params().items() if name != "action"}


@pytest.fixture
def adjust(tmp_path, monkeypatch):
    """Trigger the DAG about the active run ``one`` with this form; returns the settings that the run has then."""
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())

    def adjust(action="adjust", run_id="one", **changes):
        active = lambda dag_id, run_ids, states=None: int(run_ids == ["one"] or (run_ids == ["old"] and not states))  # noqa: E731
        step = AdjustRunOperator(
            task_id="adjust_run",
            of_dag_id="kafka_rebalance",
            of_run_id=run_id,
            action=action,
            changes=json.dumps({**EMPTY, **changes}),
        )
        step.execute(
            {
                "dag_run": SimpleNamespace(triggering_user_name="ada"),
                "run_id": "adjusts",
                "ti": SimpleNamespace(get_dr_count=active, get_task_states=lambda **_: {}),
            }
        )
        return Controls.of(Settings(), requests())

    def requests():
        from kafka_rebalance_airflow.config import run_uri

        return read_requests(Run(run_uri("kafka_rebalance", "one")).artifacts)

    adjust.requests = requests
    return adjust


def test_the_form_has_everything_that_can_be_asked_of_a_run():
    assert set(EMPTY) == {*map(str, SETTINGS), str(Kind.EXCLUDE_TOPICS)}


def test_what_is_filled_in_changes_and_the_rest_does_not(adjust):
    before = Settings().as_dict()
    controls = adjust(
        throttle=7_000_000, moves_in=3, moves_in_cluster=0, exclude_topics=["logs-*", " "], max_run_time=60
    )
    changed = {"throttle": 7_000_000, "moves_in": 3, "moves_in_cluster": 0, "max_run_time": 60.0}
    assert controls.settings.as_dict() == {**before, **changed}
    assert controls.excludes("logs-1")
    assert {request.by for request in adjust.requests()} == {"ada"}


def test_a_run_is_paused_and_resumed(adjust):
    assert str(adjust("pause").paused).startswith("pause requested by ada at ")
    assert adjust("resume").paused is None


def test_a_window_is_changed_and_lifted(adjust):
    assert str(adjust(window="22:00-06:00").settings.window) == "22:00-06:00 UTC"
    assert str(adjust(order="smallest-first").settings.window) == "22:00-06:00 UTC"
    assert adjust(window="always").settings.window is None


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({}, "nothing is to change: give at least one value"),
        ({"throttle": 0}, "throttle: throttle is 0: give a whole number above 0"),
        ({"throttle": 2**63}, "throttle: throttle is .*: give .* at most"),
        ({"window": "at night"}, "window: .*write it as 22:00-06:00"),
        ({"order": "shuffled"}, "order: order is 'shuffled': give one of"),
        ({"max_run_time": -1}, "max_run_time: max run time is -1.0 seconds"),
        ({"moves_in": "x", "moves_out": "y"}, "moves_in: .*; moves_out: "),
        ({"throtle": 7}, "throtle: there is no such setting, only .*throttle"),
        ({"cancel": True}, "cancel: there is no such setting"),
        ({"action": "pause", "throttle": 7}, "pause takes no values, but throttle was given"),
        ({"run_id": "old", "throttle": 7}, "the run old of kafka_rebalance has ended"),
        ({"run_id": "nothing", "throttle": 7}, "no run 'nothing' of 'kafka_rebalance' has left anything"),
    ],
)
def test_a_form_that_is_not_acceptable_asks_for_nothing_and_names_the_field(adjust, given, refused):
    with pytest.raises(AirflowFailException, match=refused):
        adjust(**given)
    assert adjust.requests() == []
