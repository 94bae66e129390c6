"""Nothing waits for ever, and what changes has not waited."""

from __future__ import annotations

from rebalance_lib.execution.patience import Patience
from tests.execution.running import StoppedClock


def test_seconds_count_from_when_something_was_first_mentioned():
    clock = StoppedClock()
    patience = Patience(clock)
    assert patience.unchanged("foo-0") == 0
    clock.advance(7)
    assert (patience.unchanged("foo-0"), patience.unchanged("foo-1")) == (7, 0)


def test_what_changes_has_not_waited():
    clock = StoppedClock()
    patience = Patience(clock)
    patience.unchanged("foo-0", 100)
    clock.advance(7)
    assert patience.unchanged("foo-0", 99) == 0
    clock.advance(3)
    assert patience.unchanged("foo-0", 99) == 3


def test_what_is_not_kept_begins_anew():
    clock = StoppedClock()
    patience = Patience(clock)
    patience.unchanged("foo-0")
    patience.unchanged("foo-1")
    clock.advance(7)
    patience.keep({"foo-1"})
    assert (patience.unchanged("foo-0"), patience.unchanged("foo-1")) == (0, 7)
