"""``--polish``: a plan for a large cluster that is better, or the same, and leaves nothing to plan."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, candidate
from rebalance_lib.planner.goals import View
from rebalance_lib.planner.goals.objective import objective
from rebalance_lib.planner.workspace import carried_out


def full(model, **options):
    request = Request(Mode.BALANCE, **options)
    return candidate(model, Scope.of(model, request), request, FULL)


def objective_after(model, one, **options):
    return objective(View(model, one.outcome.scope, Request(Mode.BALANCE, **options), one.outcome.placement.layout))


@pytest.fixture(scope="module")
def model():
    return ClusterModel.of(generate(Parameters(scenario="skew", partitions=600, brokers=12, seed=2)).snapshot())


@pytest.fixture(autouse=True)
def counted_clock(monkeypatch):
    """A clock that goes on by 0.5 ms each time that it is read: how much is done depends on no machine."""
    readings = count()
    monkeypatch.setattr("rebalance_lib.planner.polish.time", SimpleNamespace(monotonic=lambda: next(readings) * 0.0005))


def test_a_polished_plan_is_no_worse_and_leaves_nothing_to_plan(model):
    plain, polished = full(model), full(model, polish=1.0)
    assert objective_after(model, polished) <= objective_after(model, plain) * 1.001
    after = carried_out(model, polished.outcome.placement.layout)
    assert len(full(after).plan) == 0


def test_bytes_are_saved_where_disk_alone_counts(model):
    plain, polished = full(model, goals=("disk",)), full(model, goals=("disk",), polish=2.0)
    assert polished.figures.bytes_moved < plain.figures.bytes_moved


def test_modes_that_even_out_nothing_have_no_use_for_it():
    with pytest.raises(InvalidInputError, match="mode drain has no use for polish, only balance, expand, topics"):
        Request.from_dict({"mode": "drain", "brokers": [1], "polish": 5.0})


@pytest.mark.parametrize("goals", [("leaders",), ("topic_leaders", "failover")])
def test_goals_of_list_order_alone_move_nothing(model, goals):
    assert full(model, goals=goals, polish=1.0).figures.replicas_moved == 0
