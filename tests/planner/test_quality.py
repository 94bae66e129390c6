"""How even generated clusters become, and at what cost, by the evaluator that judges every planner."""

from __future__ import annotations

import pytest

from bench.clusters import Parameters, generate
from bench.score import score
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from tests.budget import cases

MODES = {"expand": Mode.EXPAND, "decommission": Mode.DRAIN}


def scored(**parameters):
    cluster = generate(Parameters(**parameters))
    mode = MODES.get(parameters["scenario"], Mode.BALANCE)
    request = Request(mode=mode, brokers=tuple(cluster.remove or cluster.add), balance=True)
    one = candidates(ClusterModel.of(cluster.snapshot()), request)[0]
    figures = score(cluster, one.plan)
    assert figures["errors"] == {}
    assert figures["rack_violations"] == 0
    assert one.figures.bytes_moved == figures["bytes_moved"]
    assert one.figures.least_bytes == figures["lower_bound_bytes"]
    return figures


@pytest.mark.parametrize("seed", range(13, 13 + cases(1, long=8)))
@pytest.mark.parametrize("scenario", ["expand", "skew", "decommission", "steady"])
def test_three_racks_and_three_replicas(scenario, seed):
    figures = scored(scenario=scenario, partitions=6000, brokers=30, seed=seed)
    assert figures["bytes_over_best"] <= 1.01
    assert figures["replicas_over_best"] <= 1.02
    assert figures["leaders_over_best"] <= 1.02
    assert figures["bytes_over_least"] <= 1.02
    assert figures["move_efficiency"] >= 1 / 1.02
    assert scenario == "steady" or figures["leaders_over_least"] <= 1.25, "leaders change in vain"


@pytest.mark.parametrize(
    "shape",
    [
        {"sigma": 0.0},
        {"topic_sigma": 1.0},
        {"racks": 1, "rf": 1},
        {"racks": 2, "rf": 2},
        {"racks": 5},
        {"racks": 4, "rf": 4},
    ],
    ids=str,
)
def test_other_shapes(shape):
    figures = scored(**{"scenario": "skew", "partitions": 4000, "brokers": 20, "seed": 3, **shape})
    assert figures["bytes_over_best"] <= 1.02
    assert figures["replicas_over_best"] <= 1.03
    assert figures["leaders_over_best"] <= 1.03
    assert figures["bytes_over_least"] <= 1.03


def test_one_topic_on_all_brokers_is_spread_too():
    figures = scored(scenario="skew", partitions=4000, brokers=20, seed=3, topic_min=4000, topic_max=4000)
    assert figures["bytes_over_best"] <= 1.02
    assert figures["replicas_over_best"] <= 1.06
    assert figures["bytes_over_least"] <= 1.02
