"""How a plan is executed, as people and forms write it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution import Kind, Settings
from rebalance_lib.execution.settings import OnStall, check_seconds
from rebalance_lib.plan.pace import Order
from rebalance_lib.window import Window


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_form_gives_text_and_0_is_no_limit():
    given = {
        "throttle": "50000000",
        "moves_in": "0",
        "moves_out": 5,
        "order": "smallest-first",
        "one_replica_at_a_time": "True",
        "window": "22:00-06:00 Europe/Berlin",
        "throttle_ceiling": "",
        "on_stall": "pause",
    }
    read = Settings.from_dict(given)
    assert (read.pace.throttle, read.pace.moves_in, read.pace.moves_out) == (50_000_000, None, 5)
    assert (read.pace.order, read.pace.one_replica_at_a_time) == (Order.SMALLEST_FIRST, True)
    assert (read.throttle_ceiling, read.on_stall) == (None, OnStall.PAUSE)
    assert Settings.from_dict(read.as_dict()) == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speed": 1}, "settings have no speed"),
        ({"throttle": "fast"}, "throttle is 'fast': give a whole number"),
        ({"throttle": 0}, "throttle is 0: give a whole number above 0"),
        ({"throttle": 10, "throttle_ceiling": 5}, "ceiling of 5 bytes/s is below the throttle of 10"),
        ({"order": "random"}, "order is 'random': give one of smallest-first, largest-first"),
        ({"one_replica_at_a_time": "perhaps"}, "give true or false"),
        ({"disk_reserve": 1.5}, "disk reserve is 1.5"),
        ({"window": "22-06"}, "the window '22-06' cannot be read"),
        ({"window": "22:00-06:00 Nowhere/Town"}, "cannot be read"),
        ({"window": "22:00-22:00"}, "is empty"),
        ({"stall_checks": 0}, "stall checks is 0: give 1 or more"),
        ({"give_up_after": "nan"}, "give up after is nan seconds: give 0.1 to"),
        ({"give_up_after": 0}, "give up after is 0.0 seconds"),
        ({"max_run_time": "inf"}, "max run time is inf seconds"),
        ({"max_run_time": True}, "max run time is True: give a number"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(given, message):
    with pytest.raises(InvalidInputError, match=message):
        Settings.from_dict(given)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf"), 0, -1, 0.05, 1e9])
def test_seconds_that_no_clock_can_wait_are_refused(seconds):
    with pytest.raises(InvalidInputError, match=r"interval is .* seconds: give 0.1 to 3.16224e\+07"):
        check_seconds("interval", seconds)


@pytest.mark.parametrize("seconds", [0.1, 3, 366 * 86_400])
def test_seconds_from_a_tenth_to_a_year_are_taken(seconds):
    check_seconds("interval", seconds)


@pytest.mark.parametrize(
    ("window", "moment", "inside"),
    [
        ("22:00-06:00", "2026-11-16T23:59", True),
        ("22:00-06:00", "2026-11-16T05:59", True),
        ("22:00-06:00", "2026-11-16T06:00", False),
        ("09:00-17:00", "2026-11-16T09:00", True),
        ("09:00-17:00", "2026-11-16T17:00", False),
        ("22:00-06:00 Europe/Berlin", "2026-07-01T20:30", True),  # two hours ahead in summer
        ("22:00-06:00 Europe/Berlin", "2026-12-01T20:30", False),
    ],
)
def test_a_window_may_pass_midnight_and_follows_its_zone(window, moment, inside):
    assert Window.parse(window).contains(at(moment)) is inside


@pytest.mark.parametrize(
    ("given", "moment", "closed"),
    [
        ({}, "2026-01-05T12:00+00:00", None),
        ({"window": "22:00-06:00"}, "2026-01-05T12:00+00:00", "the window 22:00-06:00 UTC is closed"),
        ({"window": "22:00-06:00"}, "2026-01-05T23:00+00:00", None),
        (
            {"window": "08:00-18:00", "quiet_hours": "07:00-20:00 Europe/Berlin"},
            "2026-01-05T12:00+00:00",
            "these are the quiet hours 07:00-20:00 Europe/Berlin of the approval policy",
        ),
        ({"window": "08:00-18:00", "quiet_hours": "20:00-07:00"}, "2026-01-05T12:00+00:00", None),
    ],
)
def test_quiet_hours_close_whatever_the_window_says(given, moment, closed):
    settings = Settings.from_dict(given)
    assert settings.closed_at(at(moment)) == closed
    assert settings.open_at(at(moment)) is (closed is None)
    assert Settings.from_dict(settings.as_dict()) == settings


def test_no_request_changes_quiet_hours():
    assert "quiet_hours" not in {str(kind) for kind in Kind}
    settings = Settings.from_dict({"quiet_hours": "07:00-20:00"}).changed({"window": "", "throttle": 7})
    assert str(settings.quiet_hours) == "07:00-20:00 UTC"
