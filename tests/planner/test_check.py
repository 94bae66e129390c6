"""Each plan goes before the verifier, which reads the snapshot and the request, and nothing of the planner."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.topology import BrokerSets, Capacities
from tests.planner.clusters import Host, cluster
from tests.planner.examples import EXAMPLES


def test_a_dead_broker_that_leaves_one_list_and_stays_in_another_is_no_fault_of_the_plan():
    hosts = {1: "a", 2: "a", 3: "b", 9: Host("b", alive=False)}
    before = cluster(hosts, {"t-0": ([1, 2, 9], 5), "u-0": ([9], 5)})
    request = Request(Mode.REPLICATION_FACTOR, topics=("*",), replication_factor=2)
    model = ClusterModel.of(before.snapshot())
    offered = candidates(model, request)
    lists = {str(name): replicas for name, replicas in offered[0].plan.as_dict().items()}
    assert lists["t-0"] == (1, 2)
    assert 9 in lists["u-0"]
    check_candidates(model, request, offered)


def test_a_replica_outside_of_its_topics_set_is_not_expected_to_lead():
    before = cluster({1: "a", 2: "b", 3: "b", 4: "a"}, {"t-0": ([1], 5)})
    sets = BrokerSets.from_dict({"x": {"brokers": [2, 3], "topics": ["t"]}})
    model = ClusterModel.of(sets.apply(before.snapshot()))
    request = Request(Mode.REPLICATION_FACTOR, topics=("t",), replication_factor=2, leader_racks=("a",))
    offered = candidates(model, request)
    assert next(iter(offered[0].plan.as_dict().values()))[0] == 2
    check_candidates(model, request, offered)


def test_a_demoted_broker_may_be_followed_by_one_outside_of_the_topics_set():
    before = cluster({0: "a", 1: "b", 2: "a"}, {"t-0": ([1, 0, 2], 5), "t-1": ([0, 1], 5)})
    sets = BrokerSets.from_dict({"x": {"brokers": [0, 1], "topics": ["t"]}, "y": [2]})
    model = ClusterModel.of(sets.apply(before.snapshot()))
    request = Request(Mode.DEMOTE, brokers=(1,), leader_racks=("a",))
    offered = candidates(model, request)
    assert [entry.replicas for entry in offered[0].plan] == [(2, 0, 1)]  # 0 leads t-1 already
    check_candidates(model, request, offered)


def test_what_a_broker_leads_in_partitions_that_may_not_move_counts():
    hosts = {1: None, 2: None, 3: None, 4: Host(alive=False)}
    before = cluster(hosts, {"t-0": ([1, 4], 5), "t-1": ([1, 3], 5), "t-2": ([2], 5)})
    model = ClusterModel.of(before.snapshot())
    request = Request(Mode.LEADERS, min_topic_leaders=("t=1",))
    offered = candidates(model, request)
    assert {str(name): lists for name, lists in offered[0].plan.as_dict().items()} == {"t-1": (3, 1)}
    check_candidates(model, request, offered)


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        (Mode.BALANCE, {}),
        (Mode.LEADERS, {}),
        (Mode.DRAIN, {"brokers": (0,)}),
        (Mode.DRAIN, {"brokers": (0,), "balance": True}),
        (Mode.DEMOTE, {"brokers": (0,)}),
        (Mode.REPLICATION_FACTOR, {"topics": ("*",), "replication_factor": 2}),
        (Mode.PARTITIONS, {"topics": ("*",), "partitions": 9}),
        (Mode.REPAIR, {"replication_factor": 3}),
    ],
)
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32))
def test_what_the_planner_plans_for_leaders_networks_and_sets_is_right(mode, options, seed):
    random = Random(seed)
    ids = range(6)
    hosts = {id_: "abc"[id_ % 3] for id_ in ids}
    lists = [random.sample(ids, random.randint(1, 3)) for _ in range(30)]
    held = {f"t{n // 10}-{n % 10}": (replicas, random.randint(1, 50)) for n, replicas in enumerate(lists)}
    sets = random.choice([{}, {"x": {"brokers": [0, 1, 2], "topics": ["t0", "t1"]}, "y": [3, 4, 5]}])
    before = replace(cluster(hosts, held), sets=sets)
    # A set does not count what topics of other sets bring to the networks of its brokers.
    limited = [id_ for id_ in ids if random.random() < 0.7 and not sets]
    limit = {id_: {"network_in": random.choice([900.0, 1500.0, 3000.0])} for id_ in limited}
    snapshot = Capacities.from_dict({"brokers": limit} if limit else {}).apply(before.snapshot())
    leading = {"leader_racks": random.choice([(), ("a",), ("a", "b")])}
    if mode in {Mode.BALANCE, Mode.LEADERS} or options.get("balance"):
        leading["min_topic_leaders"] = random.choice([(), ("t0=1",), ("t*=1", "t1=2")])
    names = list(before.partitions)
    rates = {
        "topic": [name.topic for name in names],
        "partition": pa.array([name.partition for name in names], pa.int32()),
        "write_rate": [float(random.randint(1, 200)) for _ in names],
    }
    model, request = ClusterModel.of(snapshot, pa.table(rates)), Request(mode, **options, **leading)
    try:
        offered = candidates(model, request)
    except InvalidInputError:
        return
    check_candidates(model, request, offered)
