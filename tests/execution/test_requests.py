"""What people ask of a run while it is under way: checked when it is asked, folded in order, kept over a restart."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution.requests import (
    REQUESTS,
    Controls,
    Kind,
    check_request,
    forget_requests,
    make_request,
    read_requests,
)
from rebalance_lib.plan.pace import Order
from tests.execution.running import settings


@pytest.fixture
def run(tmp_path):
    return Artifacts.at(tmp_path)


def controls(run, **approved):
    """What the requests of a run come to, over the settings that were approved."""
    return Controls.of(settings(**approved), read_requests(run))


def test_requests_are_read_in_the_order_in_which_they_were_made(run):
    for rate in (30, 10, 20):
        make_request(run, Kind.THROTTLE, rate, by="ada")
    assert [request.value for request in read_requests(run)] == [30, 10, 20]
    assert controls(run, throttle=5).settings.pace.throttle == 20


def test_a_request_says_what_by_whom_and_when(run):
    request = make_request(run, Kind.THROTTLE, 90_000_000, by="ada")
    assert str(request) == f"throttle 90000000 requested by ada at {request.at}"
    assert read_requests(run) == [request]


def test_two_who_ask_at_the_same_moment_both_count(run):
    make_request(run, Kind.PAUSE, by="ada")
    [name] = (run / REQUESTS).files()
    (run / REQUESTS).write_json(f"{name[:6]}-ffffffff.json", {"kind": "throttle", "value": 7, "by": "bob", "at": "now"})
    assert [request.by for request in read_requests(run)] == ["ada", "bob"]


def test_later_requests_change_what_earlier_ones_asked_for_and_nothing_else(run):
    make_request(run, Kind.MOVES_IN, 3, by="ada")
    make_request(run, Kind.MOVES_IN, 0, by="ada")  # no limit
    make_request(run, Kind.ORDER, "largest-first", by="ada")
    make_request(run, Kind.WINDOW, "", by="ada")
    make_request(run, Kind.MAX_RUN_TIME, 3600, by="ada")
    now = controls(run, throttle=5, moves_in=7, moves_out=8, window="22:00-06:00").settings
    assert (now.pace.moves_in, now.pace.moves_out, now.pace.order) == (None, 8, Order.LARGEST_FIRST)
    assert (now.pace.throttle, now.window, now.max_run_time) == (5, None, 3600.0)


def test_a_run_is_paused_until_it_is_resumed(run):
    first = make_request(run, Kind.PAUSE, by="ada")
    make_request(run, Kind.PAUSE, by="bob")
    assert controls(run).paused == first
    make_request(run, Kind.RESUME, by="bob")
    assert controls(run).paused is None


def test_a_cancel_is_not_taken_back(run):
    cancel = make_request(run, Kind.CANCEL, by="ada")
    make_request(run, Kind.RESUME, by="bob")
    make_request(run, Kind.CANCEL, by="bob")
    assert controls(run).cancelled == cancel


def test_topics_are_excluded_by_name_or_pattern(run):
    make_request(run, Kind.EXCLUDE_TOPICS, ["orders"], by="ada")
    make_request(run, Kind.EXCLUDE_TOPICS, ["logs-*"], by="bob")
    found = controls(run)
    assert [(one := found.excludes(topic)) and one.by for topic in ("orders", "logs-eu", "orders-2")] == [
        "ada",
        "bob",
        None,
    ]


def test_a_ceiling_grows_with_the_throttle_that_is_requested(run):
    make_request(run, Kind.THROTTLE, 100, by="ada")
    assert controls(run, throttle=5, throttle_ceiling=10).settings.throttle_ceiling == 100


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        '{"kind": "throttle", "value": 7',
        "null",
        "[]",
        "{}",
        '{"kind": "throttle", "value": 7}',
        '{"kind": "faster", "value": 7, "by": "ada", "at": "now"}',
        '{"kind": "throttle", "value": -7, "by": "ada", "at": "now"}',
        '{"kind": "throttle", "value": NaN, "by": "ada", "at": "now"}',
        '{"kind": "exclude_topics", "value": "orders", "by": "ada", "at": "now"}',
        "\ud800".encode("utf-16-le", "surrogatepass"),
    ],
)
def test_a_damaged_request_is_left_out_and_the_others_count(run, damaged):
    make_request(run, Kind.THROTTLE, 5, by="ada")
    data = damaged if isinstance(damaged, bytes) else damaged.encode()
    (run / REQUESTS).write_bytes("000002-damaged.json", data)
    make_request(run, Kind.PAUSE, by="ada")
    assert [request.kind for request in read_requests(run)] == [Kind.THROTTLE, Kind.PAUSE]


def test_files_that_are_no_requests_are_left_alone(run):
    (run / REQUESTS).write_text("notes.txt", "")
    (run / REQUESTS).write_text("_000001-a.json.1f3a.tmp", "")
    assert read_requests(run) == []
    assert make_request(run, Kind.PAUSE, by="ada").name.startswith("000001-")


NUMBERS = [kind for kind in Kind if kind not in (Kind.PAUSE, Kind.RESUME, Kind.CANCEL, Kind.WINDOW, Kind.ORDER)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -1, "fast", True, None])
@pytest.mark.parametrize("kind", NUMBERS)
def test_a_value_that_is_no_amount_is_refused_when_it_is_asked_for(run, kind, value):
    with pytest.raises(InvalidInputError):
        make_request(run, kind, value, by="ada")
    assert read_requests(run) == []


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Kind.THROTTLE, 0, "above 0"),
        (Kind.LOG_DIR_THROTTLE, 0, "above 0"),
        (Kind.WINDOW, "22-06", "cannot be read"),
        (Kind.ORDER, "random", "give one of"),
        (Kind.EXCLUDE_TOPICS, [], "give a list of names or patterns"),
        (Kind.EXCLUDE_TOPICS, [""], "give a list of names or patterns"),
        (Kind.EXCLUDE_TOPICS, "orders", "give a list of names or patterns"),
        (Kind.PAUSE, 1, "pause takes no value"),
        (Kind.CANCEL, "now", "cancel takes no value"),
        (Kind.MOVES_IN, None, "moves in is missing"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_in_words(kind, value, message):
    with pytest.raises(InvalidInputError, match=message):
        check_request(kind, value)


def test_a_run_that_ended_leaves_no_request_but_those_made_since(run):
    make_request(run, Kind.PAUSE, by="ada")
    ended = read_requests(run)
    make_request(run, Kind.THROTTLE, 7, by="bob")
    forget_requests(run, ended)
    assert [request.by for request in read_requests(run)] == ["bob"]
