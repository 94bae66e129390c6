"""A cluster planned in parts: as even as if it had been planned in one, within the same rules and budgets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import Plan, current_assignment, verify_plan
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request, Scope
from rebalance_lib.planner import shards as planner_shards
from rebalance_lib.planner.candidates import FULL, HALF, all_candidates, candidate, undominated
from rebalance_lib.planner.certified import Certificate, certificate_of
from rebalance_lib.planner.goals import GOALS
from rebalance_lib.planner.goals.objective import objective_of
from rebalance_lib.planner.shard_tables import ShardInput, joined, shard_of, shard_tables, summed, totals_of
from rebalance_lib.planner.shards import CHUNK, cut_up, shard_count
from rebalance_lib.report.summary import summarize

GENERATED = {
    "skew": (Mode.BALANCE, Parameters(scenario="skew", partitions=8_000, brokers=12)),
    "expand": (Mode.EXPAND, Parameters(scenario="expand", partitions=8_000, brokers=9)),
    "uneven racks": (Mode.BALANCE, Parameters(scenario="steady", partitions=4_000, brokers=14)),
}
WORSE = 1.005  # times the measure of a goal, at most


def planned(model, request):
    """By name: every candidate of a request."""
    return {one.name: one for one in all_candidates(model, Scope.of(model, request), request)}


@pytest.fixture(scope="module", params=GENERATED)
def case(request):
    mode, parameters = GENERATED[request.param]
    model = ClusterModel.of(generate(parameters).snapshot())
    whole = candidate(model, Scope.of(model, Request(mode=mode)), Request(mode=mode), FULL)
    return model, Request(mode=mode), whole, planned(model, Request(mode=mode, shards=3))[FULL]


def test_every_goal_is_as_near_as_without_shards(case):
    _, request, whole, parts = case
    measured = (one.outcome.views(request)[1] for one in (whole, parts))
    one, several = ({name: objective_of(GOALS[name], view) for name in GOALS} for view in measured)
    pursued = [name for name in one if one[name] is not None and (GOALS[name].hard or name in request.goal_tolerances)]
    assert {name for name in pursued if several[name] > one[name] * WORSE} == set()
    assert parts.figures.bytes_moved < 1.02 * whole.figures.bytes_moved


def test_a_plan_made_in_shards_keeps_the_rules(case):
    model, _, _, parts = case
    before = current_assignment(model.snapshot)
    assert verify_plan(parts.plan, brokers=model.snapshot.alive_brokers(), before=before) == []


def test_budgets_are_shared_out_and_never_exceeded():
    model = ClusterModel.of(generate(Parameters(scenario="skew", partitions=3_000, brokers=12)).snapshot())
    request = Request(Mode.BALANCE, shards=2, move_budget=1_500, byte_budget=2_000 << 30)
    found = planned(model, request)
    for name in (FULL, HALF):
        figures = found[name].figures
        assert figures.bytes_moved <= request.byte_budget
        assert figures.replicas_moved <= request.move_budget
    assert found[FULL].figures.bytes_moved > 0.8 * request.byte_budget
    assert found["unlimited"].figures.bytes_moved > request.byte_budget


def test_a_cluster_in_balance_is_left_alone():
    model = ClusterModel.of(generate(Parameters(scenario="skew", partitions=3_000, brokers=9)).snapshot())
    request = Request(mode=Mode.BALANCE, shards=2)
    even = planned(model, request)[FULL].outcome.placement
    again = replace(model, broker=even.layout.broker, bytes=even.layout.bytes, log_dir=even.layout.log_dir)
    assert planned(again, replace(request, tolerance=0.02))[FULL].figures.replicas_moved == 0


def inputs(cluster, shards):
    """The rows of each shard, and of partitions that are kept."""
    snapshot, loads = cluster.snapshot(), cluster.loads()

    def part(chosen):
        tables = (None if table is None else chosen(table) for table in (snapshot.replicas, loads))
        replicas, of_part = tables
        return ShardInput(replace(snapshot, replicas=replicas), of_part)

    def of(table):
        return shard_of(table["topic"], table["partition"].to_numpy(), shards)

    def those(names):
        known = {(row["topic"], row["partition"]) for row in names.to_pylist()}

        def chosen(table):
            pairs = zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True)
            return table.filter(pa.array([pair in known for pair in pairs]))

        return part(chosen)

    return [part(lambda table, n=n: table.filter(pa.array(of(table) == n))) for n in range(shards)], those


def through_tables(cluster, request, shards):
    """A cluster planned by tasks that are given rows and totals, and nothing else."""
    parts, those = inputs(cluster, shards)
    totals = summed([totals_of(part, request) for part in parts])
    answers = [shard_tables(part, request, totals, shards) for part in parts]
    sample = those(pa.concat_tables([one.sample for one in answers]))
    placements = pa.concat_tables([one.placements for one in answers[::-1]])
    rests = {name: [one.rests[name] for one in answers] for name in answers[0].rests}
    found = joined(sample, request, totals, placements, rests)
    return found, answers


def plans_of(found, answers):
    """By candidate: the entries that the shards write, and those of the sample."""
    return {
        one.name: Plan.from_table(
            pa.concat_tables(
                [*(part.others[found.origins[one.name]].plan.entries for part in answers), one.plan.entries]
            )
        )
        for one in found.candidates
    }


def test_tasks_that_see_their_rows_and_totals_alone_find_the_plans_of_one_process(monkeypatch):
    monkeypatch.setattr(planner_shards, "SAMPLE", 300)
    parameters = Parameters(scenario="expand", partitions=1_000, brokers=6, rates=True, capacities=True)
    cluster, request = generate(parameters), Request(Mode.EXPAND, excluded_topics=("t00001",))
    found, answers = through_tables(cluster, request, 3)
    model = ClusterModel.of(cluster.snapshot(), cluster.loads())
    assert found.model.partitions < 300 + 3 * 4 * planner_shards.LARGEST_MOVES
    one_process = replace(request, shards=3)
    whole = undominated(list(planned(model, one_process).values()), one_process)
    plans = plans_of(found, answers)
    assert {name: plan.digest for name, plan in plans.items()} == {one.name: one.plan.digest for one in whole}
    known_loads = {"rates": cluster.loads(), "certificate": Certificate({}, None)}
    ours = summarize(Choice(found.model, request, found.candidates, **known_loads))
    theirs = summarize(Choice(model, request, whole, **known_loads))
    for name, figures in theirs["candidates"].items():
        mine = ours["candidates"][name]
        assert mine["digest"] != figures["digest"]  # of the sample alone
        expected, outlined = figures["forecast"], mine["forecast"]
        assert [outlined[key] for key in ("partitions", "bytes")] == [expected[key] for key in ("partitions", "bytes")]
        assert 0 < outlined["seconds"] < 1.1 * expected["seconds"]
        for one, other in zip(outlined["log_dirs"], expected["log_dirs"], strict=True):
            assert [one[key] for key in ("bytes_before", "bytes_after")] == [
                other[key] for key in ("bytes_before", "bytes_after")
            ]
            assert one["bytes_peak"] >= other["bytes_peak"]
        found_goals, goals = mine.pop("goals"), figures.pop("goals")
        assert [goal["after"] for goal in found_goals] == pytest.approx([goal["after"] for goal in goals])
    assert without(ours, "candidates") == without(theirs, "candidates")
    for name, figures in theirs["candidates"].items():
        assert without(ours["candidates"][name]) == without(figures)


def without(figures, *names):
    """Figures but those of the sample's own, and of a forecast that is made from sums."""
    left_out = {"digest", "forecast", "seconds", "peak_fill", "risks", *names}
    return {name: value for name, value in figures.items() if name not in left_out}


def test_the_least_to_copy_is_known_without_the_rest_of_the_partitions():
    cluster, request = generate(Parameters(scenario="expand", partitions=300, brokers=6)), Request(Mode.EXPAND)
    found, _ = through_tables(cluster, request, 2)
    model = ClusterModel.of(cluster.snapshot())
    bound = certificate_of(found.model, found.scope, request)
    whole = certificate_of(model, Scope.of(model, request), request)
    assert bound.best == {}
    assert 0 < bound.least_bytes <= whole.least_bytes <= found.candidates[0].figures.bytes_moved


def test_a_topic_that_no_shard_has_is_refused_in_the_end():
    cluster = generate(Parameters(scenario="skew", partitions=300, brokers=6))
    with pytest.raises(InvalidInputError, match="no topic is called 'none'"):
        through_tables(cluster, Request(Mode.TOPICS, topics=("none", "t00001")), 2)
    assert through_tables(cluster, Request(Mode.TOPICS, topics=("t00001",)), 2)[0].candidates


def test_a_topic_is_in_one_shard_unless_it_is_huge():
    topics = pa.chunked_array([pa.array(["orders"] * 5 + ["users"]), pa.array(["orders"])])
    numbers = np.array([0, 1, 2, CHUNK - 1, CHUNK, 0, 7])
    found = shard_of(topics, numbers, 1_000)
    assert len({*found[:4].tolist(), int(found[6])}) == 1
    assert found[4] != found[0]
    assert found.tolist() == shard_of(topics, numbers, 1_000).tolist()
    assert found[0] == 588  # in every process


def test_shards_are_about_as_large_as_one_another():
    topics = pa.array([f"topic-{number}" for number in range(20_000)])
    counts = np.bincount(shard_of(topics, np.zeros(20_000, np.int32), 16), minlength=16)
    assert counts.min() > 1_100
    assert counts.max() < 1_400


@pytest.mark.parametrize(("shards", "partitions", "cut"), [(1000, 3, 3), (2, 3, 2), (5, 0, 1), (0, 3, 1), (1, 1, 1)])
def test_no_shard_is_empty(shards, partitions, cut):
    assert cut_up(Request(Mode.BALANCE, shards=shards), partitions).shards == cut


@pytest.mark.parametrize(
    ("request_", "sets", "count"),
    [
        (Request(Mode.BALANCE, shards=4), False, 4),
        (Request(Mode.BALANCE, shards=4), True, 1),
        (Request(Mode.DRAIN, brokers=(1,), shards=4), False, 1),
        (Request(Mode.BALANCE, min_topic_leaders=("t=1",), shards=4), False, 1),
        (Request(Mode.BALANCE, leader_racks=("a",), shards=4), False, 1),
    ],
)
def test_what_must_be_seen_as_a_whole_is_not_cut(request_, sets, count):
    assert shard_count(request_, 1_000, sets=sets) == count
