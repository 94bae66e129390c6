"""The form: what it takes, what it refuses, and what it is taken apart into."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.fields import LOADS, rebalance_params, request_params
from kafka_rebalance_airflow.form import read_form
from kafka_rebalance_airflow.operators.form import CheckFormOperator
from rebalance_lib.history import LoadOptions, Statistic
from rebalance_lib.planner import Request


@cache
def defaults():
    return {name: param.resolve() for name, param in rebalance_params().items()}


def filled(**given):
    return {**defaults(), **given}


def test_the_defaults_are_a_form_that_is_all_right():
    form = read_form(filled())
    assert form.request == {"mode": "balance"}
    assert (form.settings["throttle"], form.settings["moves_in"], form.settings["moves_out"]) == (50_000_000, 10, 10)
    assert (form.settings["moves_in_cluster"], form.settings["give_up_after"]) == (1000, 1800.0)
    assert form.settings["max_run_time"] is None
    assert form.review == {
        "automatic": False,
        "limits": dict.fromkeys(("max_bytes", "max_replicas", "max_leaders", "max_seconds")),
        "approvers": [],
        "timeout_hours": 72,
        "reminder_hours": 0,
    }


def test_lists_come_as_lines_and_ids_become_numbers():
    form = read_form(filled(mode="drain", brokers=["1", " 2 ", ""], topics=["orders-*", ""], approvers=["ada"]))
    assert form.request == {"mode": "drain", "brokers": [1, 2], "topics": ["orders-*"]}
    assert form.review["approvers"] == ["ada"]


def test_log_dirs_come_as_lines():
    form = read_form(filled(mode="drain-log-dirs", log_dirs=["1:/disk2", " 2:/disk2 ", ""]))
    assert form.request == {"mode": "drain-log-dirs", "log_dirs": ["1:/disk2", "2:/disk2"]}


def test_the_form_has_a_field_for_everything_that_a_request_can_say():
    of_requests = {field.name for field in dataclasses.fields(Request)}
    assert of_requests == set(request_params()) - set(LOADS)


def test_texts_in_lines_are_read_without_the_blanks_around_them():
    lines = {"goals": [" disk=0.02 ", ""], "leader_racks": ["a ", ""], "min_topic_leaders": [" metrics-*=1"]}
    assert read_form(filled(**lines)).request == {
        "mode": "balance",
        "goals": ["disk=0.02"],
        "leader_racks": ["a"],
        "min_topic_leaders": ["metrics-*=1"],
    }


def test_a_drain_may_even_out_the_others_too():
    form = read_form(filled(mode="drain", brokers=["1"], balance=True, min_topic_leaders=["metrics=1"], shards=2))
    asked = {"brokers": [1], "balance": True, "min_topic_leaders": ["metrics=1"], "shards": 2}
    assert form.request == {"mode": "drain", **asked}


def test_which_loads_count_is_as_the_planner_reads_it():
    assert read_form(filled()).loads == {"hours": 24, "statistic": "mean", "horizon_days": 0}
    form = read_form(filled(history_hours=168, load="p95", horizon_days=7))
    assert form.loads == {"hours": 168, "statistic": "p95", "horizon_days": 7}
    assert LoadOptions.from_dict(form.loads) == LoadOptions(168, Statistic.P95, 7)
    assert read_form(filled(history_hours=0)).loads == {}
    assert form.request == {"mode": "balance"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"history_hours": 0, "horizon_days": 7}, "set history_hours above 0"),
        ({"load": "median"}, "there is no load 'median': give one of mean, p95, last"),
        ({"history_hours": float("nan")}, "the window is nan hours"),
        ({"mode": "drain"}, "mode drain needs brokers"),
        ({"mode": "drain", "brokers": ["one"]}, "give the ids of brokers, one per line"),
        ({"brokers": [3]}, "mode balance has no use for brokers"),
        ({"mode": "light"}, "mode light needs a fill level"),
        ({"mode": "replace", "brokers": [1]}, "one replacement for each broker"),
        ({"window": "at night"}, "write it as 22:00-06:00"),
        ({"throttle": 100, "throttle_ceiling": 10}, "the throttle ceiling of 10 bytes/s is below the throttle"),
        ({"give_up_after": 1e300}, "give up after is 1e.300 seconds: give 0.1 to"),
        ({"max_run_time": 10**9}, "max run time is 1000000000.0 seconds"),
        ({"check_interval": float("nan")}, "check_interval is nan seconds: give 0.1 to"),
        ({"review": "automatic"}, "automatic review needs a limit in bytes"),
        ({"throttle": 2**63}, f"throttle is {2**63}: give {2**63 - 1} at most"),
        ({"throttle": 10**400}, "throttle is 1000.*: give a whole number"),
        ({"log_dir_throttle": 2**63}, "log dir throttle is .*: give .* at most"),
        ({"throttle_ceiling": 2**63}, "throttle ceiling is .*: give .* at most"),
        ({"mode": "drain", "brokers": [-1]}, "brokers has .-1.; ids of brokers are 0 to 2147483647"),
        ({"allowed_brokers": [2**31]}, "allowed_brokers has .2147483648."),
        (
            {"mode": "replace", "brokers": [1, 2], "replacements": [3, 2]},
            "brokers .2. are to be replaced and to replace",
        ),
        ({"allowed_brokers": [1, 2], "excluded_brokers": [2]}, "brokers .2. are allowed and excluded"),
        (
            {"mode": "drain", "brokers": [1, 2], "allowed_brokers": [2]},
            "brokers .2. are to be drained, and no others are allowed",
        ),
    ],
)
def test_what_does_not_hold_together_is_refused(given, told):
    with pytest.raises(ValueError, match=told):
        read_form(filled(**given))


def test_all_reasons_are_told_at_once():
    with pytest.raises(ValueError, match=r"needs brokers.*the window.*limit in bytes"):
        read_form(filled(mode="drain", window="?", review="automatic"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "shuffle"),
        ("throttle", -1),
        ("throttle", "fast"),
        ("tolerance", "x"),
        ("max_fill", 1.5),
        ("kafka_conn_id", ""),
        ("give_up_after", 0),
        ("max_run_time", -1),
        ("load", "median"),
        ("horizon_days", -1),
        ("horizon_days", 10**6),
        ("check_interval", 0),
        ("check_interval", 10**9),
    ],
)
def test_a_default_that_is_not_acceptable_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} cannot be"):
        rebalance_params({name: value})


def test_a_field_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="there is no field 'x': use some of kafka_conn_id, mode"):
        rebalance_params({"x": "balance"})


@pytest.mark.parametrize(("wrong", "right"), [("throtle", "throttle"), ("exclude_topics", "excluded_topics")])
def test_a_field_that_is_misspelt_is_refused_with_the_name_that_is_meant(wrong, right, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", '{"conn_type": "kafka", "host": "a"}')
    step = CheckFormOperator(task_id="check_form")
    dag = DAG("kafka_rebalance", params=rebalance_params())
    assert step.execute({"dag": dag, "params": filled()})["kafka_conn_id"] == "kafka_default"
    with pytest.raises(AirflowFailException, match=f"there is no field '{wrong}': use {right}; there is no field 'y'"):
        step.execute({"dag": dag, "params": filled(**{wrong: 1, "y": 2})})


NUMBERS = [
    name
    for name, param in rebalance_params().items()
    if {"number", "integer"} & set(param.schema["type"] if isinstance(param.schema["type"], list) else ())
    or param.schema["type"] in ("number", "integer")
]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_of_the_form_may_be_nan_or_infinite(name, value):
    """A threshold of ``.nan`` in the file of clusters meant that its cluster was never rebalanced."""
    with pytest.raises(ValueError, match=f"{name} cannot be {value}"):
        rebalance_params({name: value})
    with pytest.raises(ValueError, match=f"{name} is {value}: give a finite number"):
        read_form(filled(**{name: value}))
