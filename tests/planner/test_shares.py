"""Fair shares: by weight, within the limits of racks and brokers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.planner.shares import even_shares, exchange

ONE_RACK = np.array([np.inf])


def share(total, weights, **limits):
    alone = np.zeros(len(weights), np.int32)
    return even_shares(total, np.array(weights, float), alone, ONE_RACK, **limits)


def test_a_broker_twice_as_large_holds_twice_as_much():
    assert share(90.0, [2, 1, 0]) == pytest.approx([60, 30, 0])


def test_nobody_holds_less_than_what_may_not_leave_nor_more_than_what_may_come():
    assert share(90.0, [1, 1, 1], at_least=np.array([60.0, 0, 0])) == pytest.approx([60, 15, 15])
    assert share(90.0, [1, 1, 1], at_most=np.array([10.0, np.inf, np.inf])) == pytest.approx([10, 40, 40])


def test_the_brokers_of_a_small_rack_hold_more():
    racks = np.array([0, 1, 1, 1], np.int32)
    assert even_shares(24.0, np.ones(4), racks, np.array([12.0, 12.0])) == pytest.approx([12, 4, 4, 4])


def test_new_brokers_of_full_racks_keep_their_share():
    # Three racks, each full to its limit; one of two brokers in each may take no more than it holds.
    held = np.full(3, 1e12 / 3)
    limit = 2 * held
    racks = np.array([0, 1, 2, 0, 1, 2], np.int32)
    at_most = np.append(held, np.full(3, np.inf))
    shares = even_shares(float(limit.sum()) * (1 + 1e-15), np.ones(6), racks, limit, at_most=at_most)
    assert shares == pytest.approx(np.append(held, held), rel=1e-6)


@given(
    st.lists(st.floats(0, 1e15), min_size=1, max_size=8),
    st.floats(0, 0.5),
)
def test_what_changes_hands_comes_to_the_same_on_both_sides(loads, tolerance):
    load = np.array(loads)
    everyone = np.ones(len(load), np.bool_)
    fair = np.full(len(load), load.mean())
    wanted = exchange(load, fair, tolerance, givers=everyone, takers=everyone)
    assert np.all(wanted.give <= np.maximum(0, load - fair) + 1)
    assert np.all(wanted.take <= np.maximum(0, fair - load) + 1)
    assert abs(int(wanted.give.sum()) - int(wanted.take.sum())) <= len(load) + load.sum() * 1e-9


def test_within_the_tolerance_nothing_changes_hands():
    everyone = np.ones(2, np.bool_)
    wanted = exchange(np.array([101.0, 99.0]), np.full(2, 100.0), 0.01, givers=everyone, takers=everyone)
    assert wanted.amount == 0
