"""The figures of the execution bench and of the polling bench."""

from __future__ import annotations

import socket

import pytest

from bench.execution import Timed, ratio, spread
from bench.polling import Cost, cells, cost, received_bytes


def test_ratios_are_of_medians():
    theirs = [Timed(moves=2.0, until_moved=3.0, whole=4.0), Timed(4.0, 5.0, 8.0), Timed(100.0, 100.0, 100.0)]
    ours = [Timed(2.0, 2.0, 4.0)]
    assert (ratio(theirs, ours, "moves"), ratio(theirs, ours, "whole")) == (0.5, 0.5)
    assert spread([3.0, 1.0, 2.0]) == "2.0 (1.0-3.0)"


def test_bytes_are_counted_while_they_are_wanted():
    here, there = socket.socketpair()
    with here, there:
        there.send(b"12345")
        with received_bytes() as received:
            assert here.recv(100) == b"12345"
        there.send(b"6")
        here.recv(100)
    assert received == [5]


def test_a_cost_is_that_of_one_task():
    tasks = []
    assert cost(lambda: tasks.append(1), 7).clock < 1
    assert len(tasks) == 7


def test_costs_are_shown_in_thousandths():
    assert cells(1000, {"poll": Cost(0.0123, 0.004, 5_600)}) == [("1,000", "poll", "12.3", "4.0", "5.6")]


@pytest.mark.parametrize("module", ["bench.execution", "bench.simulate", "bench.many_partitions", "bench.polling"])
def test_benches_that_are_run_by_hand_can_be_imported(module):
    __import__(module)
