"""Between checks, what somebody else cancelled is not begun again."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from rebalance_lib.execution import Executor
from rebalance_lib.topology import TopicPartition

TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(("cancelled", "begins"), [([], [[TP]]), ([TP], [])])
def test_a_poll_begins_the_next_moves_unless_somebody_else_cancelled_one(cancelled, begins):
    """Played on a real cluster: a cancel that a poll noticed was followed by the same move, before the next check."""
    begun: list[list[TopicPartition]] = []
    executor = object.__new__(Executor)
    moving = {TP: None}

    def read_moving():
        moving.clear()
        return [TP]

    executor._tracker = SimpleNamespace(log_dirs=[], moving=moving, read_moving=read_moving, cancelled=cancelled)
    executor._submission = SimpleNamespace(advance=begun.append)
    executor._journal = SimpleNamespace(flush=lambda: None)
    executor._stop, executor._holds, executor.set_aside = threading.Event(), (), {}
    assert executor.poll()
    assert begun == begins
