"""A search by switches finds what no single switch comes to."""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.exact.switches import Choices, lowered

SIZES = (3, 3, 2, 2, 2)


def choices(limit=1.0):
    """Two brokers, either of which may lead each partition; a share is 6."""
    load = np.zeros((2 * len(SIZES), 2))
    for p, size in enumerate(SIZES):
        load[2 * p, 0] = load[2 * p + 1, 1] = size / 6
    owner = np.repeat(np.arange(len(SIZES)), 2)
    return Choices(owner, load, np.zeros(2), np.zeros(2, np.int64), np.array([limit]), np.ones(1))


def test_the_example():
    start = np.array([0, 3, 4, 6, 9])  # 3+2+2 and 3+2
    found = lowered(choices(), start, 9e-4)
    np.testing.assert_allclose(choices().loads(start), [7 / 6, 5 / 6])
    np.testing.assert_allclose(choices().loads(found), [1, 1])


def test_nothing_changes_for_what_is_within_the_limit():
    start = np.array([0, 3, 4, 6, 9])
    assert lowered(choices(limit=1.2), start, 9e-4).tolist() == start.tolist()


def test_numbers_are_whole():
    even = choices()
    assert even.unit.tolist() == [0, 0]
    alike = Choices(even.owner, np.where(even.load > 0, 0.25, 0.0), even.fixed, even.goal, even.limit, even.weight)
    np.testing.assert_allclose(alike.reachable(np.array([1.2, 1.0])), [1.0, 1.0])
