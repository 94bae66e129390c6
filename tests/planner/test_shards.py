"""A cluster planned in parts: as even as if it had been planned in one, within the same rules and budgets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.plan import current_assignment, verify_plan
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, HALF, candidate
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.shards import Shard, _rest, _shared_out, cut_up

GENERATED = {
    "skew": ("skew", Mode.BALANCE, 20_000, 30),
    "expand": ("expand", Mode.EXPAND, 20_000, 30),
    "uneven racks": ("steady", Mode.BALANCE, 12_000, 40),
}


def planned(model, request, name=FULL):
    return candidate(model, Scope.of(model, request), request, name)


@pytest.fixture(scope="module", params=GENERATED)
def case(request):
    scenario, mode, partitions, brokers = GENERATED[request.param]
    cluster = generate(Parameters(scenario=scenario, partitions=partitions, brokers=brokers))
    model = ClusterModel.of(cluster.snapshot())
    return model, Request(mode=mode), planned(model, Request(mode=mode))


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_the_number_of_shards_changes_the_balance_by_less_than_a_hundredth(case, shards):
    model, request, whole = case
    parts = planned(model, replace(request, shards=shards))
    for load in ("bytes", "replicas", "leaders"):
        one, several = (getattr(plan.figures, f"{load}_after").most for plan in (whole, parts))
        assert abs(several - one) < 0.01, load
    assert parts.figures.bytes_over_least < 1.05


def test_a_plan_made_in_shards_keeps_the_rules_and_is_the_same_every_time(case):
    model, request, _ = case
    plan = planned(model, replace(request, shards=3)).plan
    before = current_assignment(model.snapshot)
    assert verify_plan(plan, brokers=model.snapshot.alive_brokers(), before=before) == []
    assert planned(model, replace(request, shards=3)).plan.digest == plan.digest


def test_budgets_are_shared_out_and_never_exceeded(case):
    model, request, whole = case
    budget = whole.figures.bytes_moved // 2
    figures = planned(model, replace(request, shards=4, byte_budget=budget)).figures
    assert 0.8 * budget < figures.bytes_moved <= budget
    figures = planned(model, replace(request, shards=4, move_budget=100)).figures
    assert 0 < figures.replicas_moved <= 100
    half = planned(model, replace(request, shards=4), HALF)
    assert half.figures.bytes_moved < 0.6 * whole.figures.bytes_moved


def test_a_cluster_in_balance_is_left_alone():
    cluster = generate(Parameters(scenario="skew", partitions=12_000, brokers=12))
    request = Request(mode=Mode.BALANCE, shards=4)
    model = ClusterModel.of(cluster.snapshot())
    even = planned(model, request).outcome.placement
    again = replace(model, broker=even.layout.broker, bytes=even.layout.bytes, log_dir=even.layout.log_dir)
    assert planned(again, replace(request, tolerance=0.02)).figures.replicas_moved == 0


def test_shards_share_out_all_partitions():
    model = ClusterModel.of(generate(Parameters(scenario="steady", partitions=100, brokers=5)).snapshot())
    scope = Scope.of(model, Request(mode=Mode.BALANCE))
    slots = np.concatenate([Shard.of(model, scope, number, 3).slots for number in range(3)])
    assert sorted(slots.tolist()) == list(range(300))


def same(*values):
    return {Resource.DISK: np.array(values, np.float64)}


def test_the_example_of_the_design():
    shares, loads = same(20, 20), same(30, 10)
    first, second = (_shared_out(shares, loads, same(*own), 2) for own in ((18, 4), (12, 6)))
    assert first[Resource.DISK].tolist() == pytest.approx([12.6, 8.5])
    assert second[Resource.DISK].tolist() == pytest.approx([8.4, 10.5])
    assert _rest(shares, same(21, 19), first)[Resource.DISK].tolist() == pytest.approx([11.6, 9.5])


@pytest.mark.parametrize(("shards", "partitions", "cut"), [(1000, 3, 3), (2, 3, 2), (5, 0, 1), (0, 3, 1), (1, 1, 1)])
def test_no_shard_is_empty(shards, partitions, cut):
    assert cut_up(Request(Mode.BALANCE, shards=shards), partitions).shards == cut
