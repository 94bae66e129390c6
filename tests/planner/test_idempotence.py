"""Once a plan is carried out there is nothing left to plan, and the same ask always gives the same plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.clusters import Parameters, generate
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request, candidates
from rebalance_lib.topology import Snapshot
from tests.planner.clusters import odd_clusters, planned
from tests.planner.examples import EXAMPLES

AGAIN = [mode for mode in Mode if mode is not Mode.REPLACE]
"""Once a broker is replaced, its replacement holds its replicas; the rules' test looks at what a second one says."""


def options_for(mode, before):
    ids = sorted(before.live)
    disks = max(ids, key=lambda id_: len(before.hosts[id_].disks))
    return {
        Mode.DRAIN: {"brokers": (ids[0],), "balance": len(ids) % 2 == 0},
        Mode.EXPAND: {"brokers": tuple(ids[-2:])},
        Mode.TOPICS: {"topics": ("*",)},
        Mode.REPLICATION_FACTOR: {"topics": ("*",), "replication_factor": 2},
        Mode.PARTITIONS: {"topics": ("*",), "partitions": 6},
        Mode.REPAIR: {"replication_factor": 2},
        Mode.LIGHT: {"fill_level": 0.6},
        Mode.DEMOTE: {"brokers": (ids[0],)},
        Mode.DRAIN_LOG_DIRS: {"log_dirs": (f"{disks}:{next(iter(before.hosts[disks].disks), '/none')}",)},
    }.get(mode, {})


@pytest.mark.parametrize("mode", AGAIN)
@settings(max_examples=EXAMPLES)
@given(before=odd_clusters(sizes=st.one_of(st.integers(0, 30), st.integers(1, 1000)), alike=True))
def test_planning_again_after_a_plan_finds_nothing_to_do(mode, before):
    assume(before.partitions)
    request = Request(mode=mode, **options_for(mode, before))
    try:
        first = planned(before, request)
    except InvalidInputError:
        return
    after = before.after(first.plan)
    assert planned(after, request).plan.as_dict() == {}


BUDGETED = (Mode.BALANCE, Mode.EXPAND, Mode.TOPICS, Mode.DRAIN, Mode.DISKS, Mode.LIGHT, Mode.REPAIR)


@pytest.mark.parametrize("mode", BUDGETED)
@settings(max_examples=EXAMPLES)
@given(
    before=odd_clusters(sizes=st.one_of(st.integers(0, 30), st.integers(1, 1000)), alike=True),
    budget=st.sampled_from([{"byte_budget": 1 << 61}, {"move_budget": 10_000}]),
)
def test_a_budget_that_does_not_bind_changes_nothing(mode, before, budget):
    assume(before.partitions)
    request = Request(mode=mode, **options_for(mode, before), **budget)
    try:
        first = planned(before, request)
    except InvalidInputError:
        return
    assert first.plan.digest == planned(before, request.without_budgets()).plan.digest
    assert planned(before.after(first.plan), request).plan.as_dict() == {}


@pytest.mark.parametrize("shards", [1, 3])
def test_a_budget_that_is_just_enough_changes_nothing(shards):
    snapshot = generate(Parameters(scenario="skew", partitions=1500, brokers=12, seed=5)).snapshot()
    request = Request(Mode.BALANCE, shards=shards)
    whole = candidates(ClusterModel.of(snapshot), request)[0]
    enough = replace(request, byte_budget=whole.figures.bytes_moved, move_budget=whole.figures.replicas_moved)
    assert candidates(ClusterModel.of(snapshot), enough)[0].plan.digest == whole.plan.digest
    less = replace(request, byte_budget=whole.figures.bytes_moved - 1)
    spent = candidates(ClusterModel.of(snapshot), less)[0].figures
    assert 0.9 * whole.figures.bytes_moved < spent.bytes_moved < whole.figures.bytes_moved
    assert spent.bytes_after.most < spent.bytes_before.most


def test_a_replaced_broker_has_nothing_left_to_replace():
    before = generate(Parameters(scenario="expand", partitions=60, brokers=6, grow=1.5)).snapshot()
    request = Request(mode=Mode.REPLACE, brokers=(1,), replacements=(7,))
    (one,) = candidates(ClusterModel.of(before), request)
    assert len(one.plan) > 0
    (again,) = candidates(ClusterModel.of(carried_out(before, one.plan)), request)
    assert len(again.plan) == 0


def carried_out(snapshot, plan):
    """The snapshot once the plan is done: brokers by place in each list."""
    planned_lists = plan.as_dict()
    rows = snapshot.replicas.to_pylist()
    for row in rows:
        key = (row["topic"], row["partition"])
        if key in planned_lists:
            row["broker"] = planned_lists[key][row["position"]]
    table = type(snapshot.replicas).from_pylist(rows, snapshot.replicas.schema)
    return Snapshot(snapshot.cluster_id, snapshot.taken_at, snapshot.brokers, table)


@pytest.mark.parametrize("scenario", ["skew", "expand", "decommission", "steady"])
def test_planning_again_for_a_large_cluster_finds_nothing_to_do(scenario):
    cluster = generate(Parameters(scenario=scenario, partitions=2000, brokers=12, seed=5))
    mode = {"expand": Mode.EXPAND, "decommission": Mode.DRAIN}.get(scenario, Mode.BALANCE)
    request = Request(mode=mode, brokers=tuple(cluster.remove or cluster.add), balance=True)
    first = candidates(ClusterModel.of(cluster.snapshot()), request)[0]
    after = carried_out(cluster.snapshot(), first.plan)
    assert len(candidates(ClusterModel.of(after), request)[0].plan) == 0


@pytest.mark.parametrize("scenario", ["skew", "expand"])
@pytest.mark.parametrize("seed", [1, 2])
def test_planning_again_in_shards_finds_nothing_to_do(scenario, seed):
    cluster = generate(Parameters(scenario=scenario, partitions=3000, brokers=30, seed=seed))
    request = Request(Mode(scenario) if scenario == "expand" else Mode.BALANCE, brokers=tuple(cluster.add), shards=3)
    first = candidates(ClusterModel.of(cluster.snapshot()), request)[0]
    assert len(first.plan) > 0
    again = carried_out(cluster.snapshot(), first.plan)
    assert len(candidates(ClusterModel.of(again), request)[0].plan) == 0


@pytest.mark.parametrize("mode", [Mode.BALANCE, Mode.LEADERS, Mode.KAFKA])
def test_the_same_seed_gives_the_same_plans(mode):
    snapshot = generate(Parameters(scenario="skew", partitions=300, brokers=9)).snapshot()
    first, second = (candidates(ClusterModel.of(snapshot), Request(mode=mode, seed=3)) for _ in range(2))
    assert [one.plan.digest for one in first] == [one.plan.digest for one in second]
