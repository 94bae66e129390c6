"""The polish: better or the same, always allowed, near the optimum of small clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

import numpy as np
import pytest

from rebalance_lib.planner.certificate import exact, least_bytes
from rebalance_lib.planner.polish_exact import polish
from rebalance_lib.planner.polish_part import Clock
from tests.budget import cases
from tests.planner.test_certificate import band, listed, medium_problem, placements, problem, racks_are_kept

SEEDS = range(cases(2, long=100))


def clock(seconds, step=0.0):
    """One that goes on by so many seconds whenever it is read."""
    return Clock(seconds, (number * step for number in count()).__next__)


def outside(one, broker):
    held = [replace(one, broker=broker).held(loads) for loads in one.loads]
    return sum(
        float(((np.maximum(0, load - high) + np.maximum(0, low - load)) / loads.share).sum())
        for loads, load, (low, high) in zip(one.loads, held, map(one.band, one.loads), strict=True)
    )


def copied(one, broker):
    after = replace(one, broker=broker)
    return sum(int(one.size[p]) * len(set(listed(after, p)) - set(listed(one, p))) for p in range(one.partitions))


def test_a_polished_placement_is_allowed_and_better():
    for seed in SEEDS:
        one = medium_problem(Random(seed), 0.1)
        found = polish(one, one.broker, clock(4, 0.005))
        after = replace(one, broker=found.broker)
        for p in range(one.partitions):
            assert len(set(listed(after, p))) == len(listed(one, p))
            assert racks_are_kept(one, listed(one, p), listed(after, p))
        assert found.outside < outside(one, one.broker)
        assert found.outside == pytest.approx(outside(one, found.broker), abs=1e-6)
        assert found.bytes_copied == copied(one, found.broker)


def test_bytes_copied_in_vain_are_saved_without_leaving_the_bands():
    """Two brokers swapped all of their replicas: the best plan leaves everything where it was."""
    for seed in SEEDS:
        random = Random(seed)
        sizes = [random.randint(1, 50) for _ in range(30)]
        lists = [[random.randrange(2)] for _ in sizes]
        one = problem(lists, sizes, [band("disk", sizes, [sum(sizes) / 2] * 2, 1.0)], brokers=2)
        found = polish(one, (1 - one.broker).astype(np.int32), clock(1e6))
        assert (found.outside, found.bytes_copied) == (0, 0)


def test_small_clusters_come_to_the_optimum():
    optimal = 0
    seeds = range(cases(5, long=200))
    for seed in seeds:
        one = medium_problem(Random(seed), 0.4, partitions=12)
        best = exact.least_bytes(one, checks=None)
        found = polish(one, one.broker, clock(40, 0.04))
        assert found.outside > 0 or best.value is not None
        if best.value is None or found.outside > 0 or not best.exact:
            optimal += best.value is None
            continue
        assert found.bytes_copied >= best.value >= least_bytes.least_bytes(one)
        optimal += found.bytes_copied <= best.value * 1.05
    assert optimal >= len(seeds) * 0.6


def test_example():
    """The one in the module."""
    one = problem([[0]] * 4, [4, 3, 2, 1], [band("disk", [4, 3, 2, 1], [5, 5])], brokers=2)
    found = polish(one, np.array([1, 0, 1, 0], np.int32), clock(1e6))
    assert (found.outside, found.bytes_copied) == (0, 5)
    assert exact.least_bytes(one, checks=None).value == 5
    assert min(bytes_ for bytes_, held in placements(one) if np.all(held == 5)) == 5


def test_without_time_nothing_changes():
    one = medium_problem(Random(1), 0.1)
    found = polish(one, one.broker, clock(-1, 1.0))
    assert found.rounds == 0
    assert np.array_equal(found.broker, one.broker)


def test_the_same_seed_gives_the_same_placement():
    one = medium_problem(Random(3), 0.1, partitions=40)
    first, second = (polish(one, one.broker, clock(20, 0.04), seed=7).broker for _ in range(2))
    assert np.array_equal(first, second)


def test_one_broker_and_nothing_at_all_need_no_polish():
    alone = problem([[0], [0]], [3, 0], [band("disk", [3, 0], [3])], brokers=1)
    empty = problem([], [], [band("disk", [], [0, 0])], brokers=2)
    for one in (alone, empty):
        assert polish(one, one.broker, clock(1e6)).improvements == 0
