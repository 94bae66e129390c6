"""The dive: whole replicas, within the bands, for hardly more bytes than the linear program asks for."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

import numpy as np
import pytest

from rebalance_lib.planner.certificate.fractional import FractionalMoves, groups
from rebalance_lib.planner.polish_dive import dive
from rebalance_lib.planner.polish_part import State
from tests.budget import cases
from tests.planner.test_certificate import band, medium_problem, problem

NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)


def placed(one, found):
    broker = one.broker.copy()
    broker[found.slot] = found.broker
    return State(one, broker)


def test_example():
    """The one in the module."""
    one = problem([[0]] * 4, [4, 3, 2, 1], [band("disk", [4, 3, 2, 1], [5, 5])], brokers=2)
    found = dive(FractionalMoves(one, np.arange(2)), lambda: 1.0, NOTHING)
    after = placed(one, found)
    assert (after.outside, after.bytes_copied) == (0, 5)
    assert found.bound == pytest.approx(5)


def test_replicas_go_as_a_whole_and_no_further_out_than_the_finest_of_them_ask_for():
    for seed in range(cases(3, long=60)):
        one = medium_problem(Random(seed), 0.1, partitions=400)
        for brokers in groups(one):
            moves = FractionalMoves(one, brokers)
            found = dive(moves, lambda: 1.0, NOTHING)
            if found.outside:  # no plan is within the bands
                continue
            assert len(set(found.slot.tolist())) == len(found.slot)
            assert np.all(found.part == 1)
            assert not moves.closed[moves.rows_of(found.slot, found.broker)].any()
            assert found.bound * (1 - 1e-9) <= found.bytes <= found.bound * 1.05
            off = [np.abs(load[brokers]) for load in placed(one, found).off(placed(one, found).loads)]
            assert np.sum(off) < 0.01


def test_a_plan_is_found_from_where_another_one_leads_to():
    one = medium_problem(Random(2), 0.2, partitions=300)
    moves = FractionalMoves(one, groups(one)[0])
    first = dive(moves, lambda: 1.0, NOTHING)
    again = dive(moves, lambda: 1.0, (first.slot, first.broker))
    assert again.bound == pytest.approx(first.bound, rel=1e-3)


def test_it_ends_when_time_is_up_wherever_it_is():
    one = medium_problem(Random(2), 0.05, partitions=300)
    for readings in (1, 30, 300, 3000):
        left = count(readings, -1)
        found = dive(FractionalMoves(one, groups(one)[0]), left.__next__, NOTHING)
        assert np.all(found.part == 1)
        assert next(left) > -200  # asked little after


def test_a_replica_that_must_go_and_can_go_nowhere_has_no_dive():
    one = problem([[0]], [3], [band("disk", [3], [0, 3])], brokers=2, leaves=[0], takes=[1])
    assert dive(FractionalMoves(one, np.arange(2)), lambda: 1.0, NOTHING) is None


def test_replicas_without_a_broker_find_one():
    one = problem([[-1], [0], [1]], [4, 3, 3], [band("disk", [4, 3, 3], [5, 5], 0.5)], brokers=2)
    found = dive(FractionalMoves(replace(one), np.arange(2)), lambda: 1.0, NOTHING)
    assert found.slot.tolist() == [0]
