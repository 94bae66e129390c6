"""The figures by goal equal what counting leader by leader and death by death gives."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from bench.cluster_json import Cluster
from bench.clusters import SCENARIOS, Parameters, generate
from bench.goal_score import NAMES
from bench.score import score
from rebalance_lib.plan import Plan
from rebalance_lib.topology import Broker, TopicPartition

NOTHING = Plan.from_assignment({})


def lists_of(cluster):
    names = cluster.topics.take(pa.array(cluster.topic)).to_pylist()
    keys = map(TopicPartition, names, cluster.partition.tolist())
    return dict(zip(keys, cluster.replicas.tolist(), strict=True))


def shuffled(rng, cluster):
    """A plan that moves a third of the partitions, to targets and others alike."""
    ids = [broker.id for broker in cluster.brokers]
    return {tp: rng.sample(ids, len(replicas)) for tp, replicas in lists_of(cluster).items() if rng.random() < 0.3}


def counted(cluster, plan):
    """The figures by plain loops over dictionaries."""
    targets = set(cluster.targets)
    lists = {
        tp: [broker for broker in plan.get(tp, replicas) if broker in targets]
        for tp, replicas in lists_of(cluster).items()
    }
    size, write, read = (
        dict(zip(lists, column.tolist(), strict=True))
        for column in (cluster.size, cluster.rates.write, cluster.rates.read)
    )
    capacity = {broker.id: given for broker, given in zip(cluster.brokers, cluster.capacities, strict=True)}
    sent = {tp: write[tp] * (len(replicas) - 1) + read[tp] for tp, replicas in lists.items()}
    rack = {broker.id: broker.rack for broker in cluster.brokers}
    equal = dict.fromkeys(targets, 1)

    def part_of(name):
        return {broker: capacity[broker][name] for broker in targets}

    def most(load, weight):
        return max(load[b] / (weight[b] / sum(weight.values()) * sum(load.values())) for b in weight)

    def led(value, dead=frozenset()):
        load = Counter()
        for tp, replicas in lists.items():
            if alive := [broker for broker in replicas if broker not in dead]:
                load[alive[0]] += value[tp]
        return load

    def holding(value):
        load = Counter()
        for tp, replicas in lists.items():
            load.update(dict.fromkeys(replicas, value[tp]))
        return load

    def survived(value, weight, deaths):
        return max(
            [1.0, *(most(led(value, dead), {b: w for b, w in weight.items() if b not in dead}) for dead in deaths)]
        )

    one = dict.fromkeys(lists, 1)
    brokers = [{broker} for broker in targets]
    racks = [{broker for broker in targets if rack[broker] == name} for name in set(rack.values())]
    ratios = crowds(lists, len(targets))
    return {
        "disk": most(holding(size), part_of("disk")),
        "network_in": most(holding(write), part_of("network_in")),
        "network_out": most(led(sent), part_of("network_out")),
        "replicas": most(holding(one), equal),
        "leaders": most(led(one), equal),
        "topic_leaders": float(np.quantile(ratios, 0.99)) if ratios else None,
        "failover": survived(one, equal, brokers),
        "failover_rack": survived(one, equal, [dead for dead in racks if dead != targets]),
        "failover_out": survived(sent, part_of("network_out"), brokers),
    }


def crowds(lists, brokers):
    """Of each topic with as many leaders as there are brokers: the most on one over an even number."""
    by_topic = {}
    for tp, replicas in lists.items():
        by_topic.setdefault(tp.topic, Counter()).update(replicas[:1])
    wide = [leaders for leaders in by_topic.values() if leaders.total() >= brokers]
    return [max(leaders.values()) / math.ceil(leaders.total() / brokers) for leaders in wide]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("seed", range(3))
def test_the_figures_are_what_counting_gives(scenario, seed):
    rng = random.Random(seed)
    asked = {"partitions": 200, "brokers": rng.randint(5, 9), "racks": rng.choice([3, 4]), "topic_max": 40}
    cluster = generate(Parameters(scenario=scenario, seed=seed, rates=True, capacities=True, **asked))
    plan = shuffled(rng, cluster)
    assert score(cluster, Plan.from_assignment(plan))["goals"] == pytest.approx(counted(cluster, plan))


def test_without_rates_there_is_no_traffic_to_score():
    figures = score(generate(Parameters(scenario="steady", partitions=200, brokers=6)), NOTHING)["goals"]
    assert tuple(figures) == NAMES
    assert [name for name in NAMES if figures[name] is None] == ["network_in", "network_out", "failover_out"]


def test_the_example_of_the_module():
    replicas = [[1, 2], [1, 2], [2, 1], [2, 3], [3, 1], [3, 2]]
    cluster = Cluster(
        scenario="steady",
        seed=1,
        brokers=[Broker(1, "a"), Broker(2, "b"), Broker(3, "c")],
        add=[],
        remove=[],
        topics=pa.array(["t"]),
        topic=np.zeros(6, np.int32),
        partition=np.arange(6, dtype=np.int32),
        replicas=np.array(replicas, np.int32),
        size=np.ones(6, np.int64),
    )
    assert score(cluster, NOTHING)["goals"]["failover"] == pytest.approx(4 / 3)
