"""From fractions to whole replicas: allowed, within the bands, and hardly more bytes than any plan copies."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

import numpy as np
import pytest

from rebalance_lib.planner.polish_fractional import rounded
from rebalance_lib.planner.polish_part import Clock, State
from tests.budget import cases
from tests.planner.test_certificate import band, listed, problem, racks_are_kept


def clock():
    """One that goes on by three milliseconds whenever it is read."""
    return Clock(30.0, (number * 0.003 for number in count()).__next__)


def made_whole(one):
    return rounded(State(one, one.broker), clock(), np.random.default_rng(1))


def test_example():
    """The one in the module."""
    found, bound = made_whole(problem([[0]] * 4, [4, 3, 2, 1], [band("disk", [4, 3, 2, 1], [5, 5])], brokers=2))
    assert (found.outside, found.bytes_copied) == (0, 5)
    assert bound == pytest.approx(5)


@pytest.mark.parametrize("factor", [2, 3], ids=["racks to choose from", "one replica in each rack"])
def test_racks_are_kept_and_bytes_are_near_the_bound(factor):
    for seed in range(cases(2, long=30)):
        random = Random(seed)
        racks = [b % 3 for b in range(9)]
        lists = []
        for _ in range(400):
            chosen = random.sample(range(3), factor)
            lists.append([random.choices(range(rack, 9, 3), [3, 1, 1])[0] for rack in chosen])
        size = np.array([int(random.lognormvariate(10, 1)) for _ in lists])
        even = [size.sum() * factor / 9] * 9
        one = problem(lists, size, [band("disk", size, even, 0.05)], brokers=9, racks=racks)
        found, bound = made_whole(one)
        after = replace(one, broker=found.broker)
        assert all(racks_are_kept(one, listed(one, p), listed(after, p)) for p in range(one.partitions))
        assert found.outside == 0
        assert bound * (1 - 1e-6) <= found.bytes_copied <= bound * 1.01
