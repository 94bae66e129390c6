"""Between checks, nothing begins where somebody else cancels or begins moves; checks are not all that a run does."""

from __future__ import annotations

import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest

from rebalance_lib.execution import Executor
from rebalance_lib.execution.executor import IDLE_SECONDS
from rebalance_lib.topology import TopicPartition
from tests.execution.running import StoppedClock

TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(("cancelled", "foreign", "begins"), [([], [], [[TP]]), ([TP], [], []), ([], [TP], [])])
def test_a_poll_begins_the_next_moves_unless_somebody_else_cancelled_or_began_one(cancelled, foreign, begins):
    """Played on a real cluster: a cancel that a poll noticed was followed by the same move, before the next check."""
    begun: list[list[TopicPartition]] = []
    executor = object.__new__(Executor)
    moving = {TP: None}

    def read_moving():
        moving.clear()
        return [TP]

    executor._tracker = SimpleNamespace(
        log_dirs=[],
        moving=moving,
        read_moving=read_moving,
        cancelled=cancelled,
        status=SimpleNamespace(foreign=foreign),
    )
    executor._submission = SimpleNamespace(advance=begun.append)
    executor._journal = SimpleNamespace(flush=lambda: None)
    executor._stop, executor._holds, executor.set_aside = threading.Event(), (), {}
    assert executor.poll()
    assert begun == begins


class WaitingClock(StoppedClock):
    """A clock that stands still, but for those who wait."""

    def wait(self, event, seconds):
        self.advance(seconds)
        return event.is_set()


@pytest.mark.parametrize(
    ("cost", "apart"),
    [
        (0.0, 10.0),
        (4.0, 10.0),
        (8.0, 16.0),
        (30.0, 40.0),
    ],  # a check takes so long; the next begins that long after its begin
)
def test_after_a_check_that_takes_long_there_is_a_pause(cost, apart):
    executor = object.__new__(Executor)
    clock = executor._clock = WaitingClock()
    began: list[float] = []

    def check():
        began.append(clock.monotonic())
        clock.advance(cost)
        return SimpleNamespace(ended=len(began) == 4)

    executor.check, executor.poll = check, lambda: False
    executor._stop = threading.Event()
    executor._run(10.0, lambda _: None)
    assert [later - earlier for earlier, later in pairwise(began)] == pytest.approx([apart] * 3, abs=IDLE_SECONDS)
