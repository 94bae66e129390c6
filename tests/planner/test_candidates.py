"""A choice of plans: each of its own, none worse than another in every respect."""

from __future__ import annotations

from itertools import permutations

import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from tests.planner.clusters import choices, cluster, topic


@pytest.mark.parametrize("scenario", ["skew", "expand"])
def test_up_to_four_none_dominated_each_with_its_own_digest(scenario):
    snapshot = generate(Parameters(scenario=scenario, partitions=600, brokers=9)).snapshot()
    mode = Mode.EXPAND if scenario == "expand" else Mode.BALANCE
    offered = candidates(ClusterModel.of(snapshot), Request(mode=mode))
    assert [one.name for one in offered] == ["full", "half", "quarter", "leaders"]
    assert len({one.plan.digest for one in offered}) == 4
    moved = [one.figures.bytes_moved for one in offered]
    assert moved == sorted(moved, reverse=True)
    for one, other in permutations(offered, 2):
        assert any(ours < theirs for ours, theirs in zip(one.cost, other.cost, strict=True))


def test_of_two_alike_one_is_offered():
    before = cluster([1, 2], topic("orders", [[1], [1]], 10))
    offered = choices(before, Request(mode=Mode.BALANCE))
    assert "full" in [one.name for one in offered]
    assert len({one.plan.digest for one in offered}) == len(offered)


def test_a_repair_of_racks_is_offered_though_nothing_becomes_more_even():
    before = cluster({1: "a", 2: "a", 3: "b", 4: "b"}, topic("orders", [[1, 2], [3, 4], [2, 1], [4, 3]], 10))
    full = choices(before, Request(mode=Mode.BALANCE))[0]
    assert full.name == "full"
    assert len(full.plan) == 4


def test_numbers_of_replicas_are_evened_out_though_bytes_are_even():
    before = cluster([1, 2], {**topic("big", [[1], [2]], 1000), **topic("small", [[1]] * 10, 1)})
    full = choices(before, Request(mode=Mode.BALANCE))[0]
    after = before.after(full.plan).replicas_by_broker()
    assert before.replicas_by_broker() == {1: 11, 2: 1}
    assert after == {1: 6, 2: 6}


def test_a_part_that_is_as_even_as_the_full_plan_and_copies_less_is_the_full_plan():
    """Either replica of broker 2 may go to an empty broker; loads are then the same but for who has them."""
    before = cluster([1, 2, 3, 4], topic("orders", [[2], [2], [1]], [4, 2, 1]))
    full, *others = choices(before, Request(mode=Mode.BALANCE))
    assert (full.name, full.figures.bytes_moved) == ("full", 2)
    assert "half" not in [one.name for one in others]
    assert len(choices(before.after(full.plan), Request(mode=Mode.BALANCE))[0].plan) == 0


@pytest.mark.parametrize("budget", [0, 1, 25, 100])
def test_budgets_are_kept_by_every_candidate(budget):
    before = cluster([1, 2, 3], topic("orders", [[1]] * 20, 10))
    for one in choices(before, Request(mode=Mode.BALANCE, byte_budget=budget)):
        assert one.figures.bytes_moved <= budget
    for one in choices(before, Request(mode=Mode.BALANCE, move_budget=budget // 10)):
        assert one.figures.replicas_moved <= budget // 10
