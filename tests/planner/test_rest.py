"""Some partitions and what all others add up to: every figure and every goal says what the whole cluster would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.broker_sums import BrokerSums, summed
from rebalance_lib.planner.goals import GOALS
from rebalance_lib.planner.outcome import Outcome
from rebalance_lib.planner.rebalance import rebalance, shares_of
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.rest import Rest
from rebalance_lib.planner.shards import ShardPlan, parts_of, rest_of
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, slots_of
from tests.planner.clusters import cluster, odd_clusters, topic

REQUEST = Request(Mode.BALANCE, goals=("disk", "network_in", "replicas", "leaders", "network_out", "cpu"))
EVERYTHING = replace(REQUEST, goals=(*REQUEST.goals, "topic_leaders", "failover", "topic_replicas", "log_dirs"))


def with_rates(model):
    written = 1024.0 * (1 + np.arange(model.partitions) % 7)
    return replace(model, write_rate=written, read_rate=2 * written, expected_size=model.size + 5)


@st.composite
def cut_clusters(draw):
    """A cluster, which of its partitions are kept, and in which of three shards each one is, by topic."""
    model = ClusterModel.of(draw(odd_clusters()).snapshot())
    model = draw(st.sampled_from([model, with_rates(model)]))
    numbers = st.lists(st.integers(0, 2), min_size=model.partitions, max_size=model.partitions)
    return model, np.array(draw(numbers), np.int64) > 0, np.array(draw(numbers), np.int64)[model.topic]


def outcomes(model, kept, shard):
    """A plan: seen in the whole cluster, and in the kept partitions beside what the others add up to."""
    scope, rows = Scope.of(model, EVERYTHING), np.flatnonzero(kept)
    layout = rebalance(Workspace.of(model, scope, EVERYTHING, Layout.of(model), model.leader)).layout
    slots = slots_of(model.offsets, rows)
    own = Layout(model.select(rows)[0].offsets, layout.broker[slots], layout.bytes[slots], layout.log_dir[slots])
    placed = Placement(model, layout, layout.broker[layout.offsets[:-1]])
    rests = []
    for number in range(3):
        rows_of_shard = np.flatnonzero((shard == number) & ~kept)
        others = parts_of(model, scope, ShardPlan({"full": placed}, rows, rows_of_shard), rows_of_shard)["full"]
        rests.append([rest_of(model, EVERYTHING, others, after=after) for after in (False, True)])
    before, after = (
        Rest.sum(Rest.from_bytes(one.to_bytes()) for one in of_shards) for of_shards in zip(*rests, strict=True)
    )
    part = replace(model.select(rows)[0], rest=before)
    own = Placement(replace(part, rest=after), own, own.broker[own.offsets[:-1]])
    return (
        Outcome(model, scope, placed),
        Outcome(part, replace(scope, movable=scope.movable[rows]), own),
    )


@given(cut_clusters())
def test_figures_and_goals_of_some_partitions_and_the_rest_are_those_of_the_whole(cut):
    whole, part = outcomes(*cut)
    assert part.figures == whole.figures
    assert part.unevenness == pytest.approx(whole.unevenness)
    assert part.crowded == whole.crowded
    assert part.in_fewer_racks == whole.in_fewer_racks
    for before_or_after, of_part in zip(whole.views(EVERYTHING), part.views(EVERYTHING), strict=True):
        for name, goal in GOALS.items():
            assert of_part.measure(goal) == pytest.approx(before_or_after.measure(goal)), name
            assert goal.limit(of_part) == pytest.approx(goal.limit(before_or_after)), name


@given(cut_clusters())
def test_shares_need_nothing_but_sums(cut):
    model, kept, _ = cut
    model = replace(model, bytes=model.size[model.slot_partition])  # more than copies would take fits in no rack
    for expected in (model, model.at_horizon()):
        scope = Scope.of(expected, REQUEST)
        shares = shares_of(Workspace.of(expected, scope, REQUEST, Layout.of(expected), expected.leader))
        for rows in (np.flatnonzero(kept), np.empty(0, np.int64)):
            some = expected.select(rows)[0]
            others = np.ones(expected.partitions, np.bool_)
            others[rows] = False
            rest = BrokerSums.of(expected.select(np.flatnonzero(others))[0], scope.movable[others])
            some = replace(some, rest=Rest(rest))
            narrow = replace(scope, movable=scope.movable[rows])
            found = shares_of(Workspace.of(some, narrow, REQUEST, Layout.of(some), some.leader))
            for one, share in shares.items():
                assert found[one] == pytest.approx(share, rel=1e-6, abs=1e-6), one


@given(cut_clusters())
def test_sums_of_parts_are_those_of_the_whole(cut):
    model, _, shard = cut
    scope = Scope.of(model, REQUEST)
    names = (model.broker_ids, model.log_dirs.paths)
    parts = (np.flatnonzero(shard == number) for number in range(3))
    tables = [BrokerSums.of(model.select(rows)[0], scope.movable[rows]).to_table(*names) for rows in parts]
    whole = BrokerSums.of(model, scope.movable)
    assert summed(tables) == summed([whole.to_table(*names)])
    read = BrokerSums.from_table(summed(tables), model)
    for one in Resource:
        assert read.load(model, one).tolist() == pytest.approx(whole.load(model, one).tolist()), one
    dirs = len(model.log_dirs.paths)
    assert read.by_log_dir("bytes", dirs).tolist() == whole.by_log_dir("bytes", dirs).tolist()


def test_the_example_of_the_design():
    model = ClusterModel.of(cluster([1, 2, 3], topic("foo", [[1, 2], [2, 1]])).snapshot())
    scope = Scope.of(model, REQUEST)
    after = Layout(model.offsets, np.array([0, 1, 1, 2], np.int32), model.bytes, np.full(4, -1, np.int32))
    plan = ShardPlan({"full": Placement(model, after, after.broker[[0, 2]])}, np.array([0]), np.array([1]))
    others = parts_of(model, scope, plan, plan.others)["full"]
    rest = rest_of(model, REQUEST, others)
    assert rest.sums.load(model, Resource.LEADERS).tolist() == [0, 1, 0]
    assert rest.sums.load(model, Resource.REPLICAS).tolist() == [1, 1, 0]
    assert rest.inherited["broker leaders"].tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    moved = rest_of(model, REQUEST, others, after=True)
    assert moved.sums.load(model, Resource.REPLICAS).tolist() == [0, 1, 1]
    assert (moved.changes.count("partitions_changed"), moved.changes.count("replicas_moved")) == (1, 1)
    size = int(model.size[1])
    assert moved.changes.flows["received"].sum() == size
    assert moved.changes.flows["sent"].tolist() == [0, size, 0]
