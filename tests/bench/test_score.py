"""The scores equal what counting replica by replica gives."""

from __future__ import annotations

import random
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest

from bench.cluster_json import Cluster
from bench.clusters import SCENARIOS, Parameters, generate
from bench.score import even_loads, score
from rebalance_lib.plan import Plan
from rebalance_lib.topology import Broker, TopicPartition

NOTHING = Plan.from_assignment({})


def assignment_of(cluster):
    names = cluster.topics.take(pa.array(cluster.topic)).to_pylist()
    keys = map(TopicPartition, names, cluster.partition.tolist())
    return dict(zip(keys, cluster.replicas.tolist(), strict=True))


def random_plan(rng, cluster):
    """Some partitions elsewhere, some with another order, some with more or fewer replicas, one that is unknown."""
    everywhere = [broker.id for broker in cluster.brokers] + [999]
    planned = {TopicPartition("unknown", 0): [1]}
    for tp, replicas in assignment_of(cluster).items():
        kind = rng.random()
        if kind < 0.3:
            planned[tp] = rng.sample(everywhere, rng.choice([1, 2, 3, 3, 3, 4]))
        elif kind < 0.5:
            planned[tp] = rng.sample(replicas, len(replicas))
    return planned


def counted(cluster, plan):
    """The figures by plain loops over dictionaries."""
    old = assignment_of(cluster)
    new = {tp: list(plan.get(tp, replicas)) for tp, replicas in old.items()}
    size = dict(zip(old, cluster.size.tolist(), strict=True))
    rack = {broker.id: broker.rack for broker in cluster.brokers}
    racks = {rack[broker] for broker in cluster.targets}

    def held(assignment, broker):
        mine = [tp for tp, replicas in assignment.items() if broker in replicas]
        return {
            "bytes": sum(size[tp] for tp in mine),
            "replicas": len(mine),
            "leaders": sum(replicas[0] == broker for replicas in assignment.values()),
        }

    before = {broker: held(old, broker) for broker in rack}
    after = {broker: held(new, broker) for broker in rack}
    fresh = {tp: set(new[tp]) - set(old[tp]) for tp in old}

    def gained(what):
        return sum(max(0, after[broker][what] - before[broker][what]) for broker in rack)

    def violations(assignment):
        least = min(cluster.rf, len(racks))
        return sum(len({rack.get(broker) for broker in replicas}) < least for replicas in assignment.values())

    def most_over_mean(what):
        values = [after[broker][what] for broker in cluster.targets]
        return max(values) / fmean(values)

    return {
        "replicas_moved": sum(map(len, fresh.values())),
        "bytes_moved": sum(size[tp] * len(brokers) for tp, brokers in fresh.items()),
        "partitions_changed": sum(old[tp] != new[tp] for tp in old),
        "leaders_moved": sum(old[tp][0] != new[tp][0] for tp in old),
        "lower_bound_bytes": gained("bytes"),
        "lower_bound_leaders": gained("leaders"),
        "mandatory_bytes": sum(before[broker]["bytes"] for broker in cluster.remove),
        "rack_violations_before": violations(old),
        "rack_violations": violations(new),
        "max_over_mean": [most_over_mean(what) for what in ("bytes", "replicas", "leaders")],
        "errors": {
            "unknown_partition": sum(tp not in old for tp in plan),
            "unknown_broker": sum(broker not in rack for replicas in new.values() for broker in replicas),
            "non_target_broker": sum(broker in cluster.remove for replicas in new.values() for broker in replicas),
            "rf_changed": sum(len(replicas) != cluster.rf for replicas in new.values()),
        },
    }


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("seed", range(5))
def test_the_scores_are_what_counting_gives(scenario, seed):
    rng = random.Random(seed)
    brokers = rng.randint(5, 12)
    racks = rng.choice([3, 4]) if scenario == "skew" else rng.choice([1, 2, 3, 4])
    cluster = generate(
        Parameters(scenario=scenario, partitions=200, brokers=brokers, racks=racks, seed=seed, topic_max=30)
    )
    plan = random_plan(rng, cluster)
    found = score(cluster, Plan.from_assignment(plan))
    expected = counted(cluster, plan)

    errors = expected.pop("errors")
    assert found["errors"] == {name: times for name, times in errors.items() if times}
    assert [found["after"][what]["max_over_mean"] for what in ("bytes", "replicas", "leaders")] == pytest.approx(
        expected.pop("max_over_mean")
    )
    assert {name: found[name] for name in expected} == expected


def example():
    """One partition of 12 bytes, broker 1 alone in its rack, three in the other."""
    return Cluster(
        scenario="steady",
        seed=1,
        brokers=[Broker(1, "a"), Broker(2, "b"), Broker(3, "b"), Broker(4, "b")],
        add=[],
        remove=[],
        topics=pa.array(["t"]),
        topic=np.zeros(1, np.int32),
        partition=np.zeros(1, np.int32),
        replicas=np.array([[2, 3]], np.int32),
        size=np.array([12], np.int64),
    )


def test_a_small_rack_sets_the_least_possible_maximum():
    assert even_loads(24, 12, {0: 1, 1: 3}) == {0: 12, 1: 4}
    figures = score(example(), NOTHING)
    assert figures["best_max_over_mean_bytes"] == 2.0
    assert figures["bytes_over_best"] == 1.0
    assert figures["best_max_replicas"] == figures["best_max_leaders"] == 1
    assert figures["rack_violations"] == 1


def test_bytes_over_least_are_measured_by_what_even_disks_need():
    # Even are 12, 4, 4, 4; there are 0, 12, 12, 0: broker 1 is to gain 12 and broker 4 is to gain 4.
    figures = score(example(), Plan.from_assignment({TopicPartition("t", 0): [1, 3]}))
    assert figures["ideal_bytes"] == 16
    assert figures["bytes_over_least"] == 12 / 16
    assert figures["move_efficiency"] == 1.0
    assert figures["leaders_over_least"] == 1.0


def test_an_empty_plan_moves_nothing():
    figures = score(example(), NOTHING)
    assert figures["bytes_moved"] == figures["leaders_moved"] == figures["partitions_changed"] == 0
    assert figures["move_efficiency"] == 1.0
    assert figures["leaders_over_least"] is None


def test_a_swap_of_leaders_counts_what_it_did_in_vain():
    cluster = generate(Parameters(scenario="steady", partitions=60, brokers=6))
    held = assignment_of(cluster)
    rotated = {tp: replicas[1:] + replicas[:1] for tp, replicas in held.items()}
    figures = score(cluster, Plan.from_assignment(rotated))
    assert figures["leaders_moved"] == 60
    assert figures["bytes_moved"] == 0
    assert figures["leaders_over_least"] is None or figures["leaders_over_least"] > 1
