"""Leader racks, topics with a least number of leaders, networks and cordons: each rule broken on purpose."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rebalance_lib.plan import LeaderRule, Limits, Plan, PlanEntry, Rules, SetRule, Traffic, current_assignment
from rebalance_lib.plan import verify_plan as verify
from rebalance_lib.topology import BrokerSets, Capacities, TopicPartition
from tests.planner.clusters import Host, cluster, topic

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def broken(before, after, rules):
    snapshot = before if not hasattr(before, "snapshot") else before.snapshot()
    if not isinstance(after, Plan):
        after = Plan.from_assignment({TopicPartition("t", number): lists for number, lists in after.items()})
    found = verify(after, brokers=snapshot.alive_brokers(), before=current_assignment(snapshot), rules=rules)
    return [(str(one.partition), one.rule.value) for one in found]


def in_rack_a(before, **options):
    return Rules(leaders=LeaderRule.of(before.snapshot(), leader_racks=("a",), **options))


@pytest.mark.parametrize(
    ("lists", "after", "wrong"),
    [
        ([3, 1], [1, 3], False),
        ([1, 3], [3, 1], True),
        ([3, 4, 1], [4, 3, 1], True),
        ([3, 1, 4], [3, 4, 1], False),  # as before: a network may be in the way
        ([3, 4], [4, 3], False),  # nobody there
        ([3, 4], [4, 1], True),  # the copy will be in sync
    ],
)
def test_another_leader_is_in_the_leader_racks_if_one_may_be(lists, after, wrong):
    before = cluster(RACKS, topic("t", [lists]))
    assert broken(before, {0: after}, in_rack_a(before)) == ([("t-0", "leader-rack")] if wrong else [])


def test_who_must_not_lead_is_no_reason_to_choose_it():
    before = cluster(RACKS, topic("t", [[3, 4, 1]]))
    assert broken(before, {0: [4, 3, 1]}, in_rack_a(before, barred=[1])) == []
    dead = replace(before, hosts={**before.hosts, 1: Host("a", alive=False)})
    assert broken(dead, {0: [4, 3, 1]}, replace(in_rack_a(dead), dead_brokers=[1])) == []
    held = before.partitions[TopicPartition("t", 0)]
    lagging = replace(before, partitions={TopicPartition("t", 0): replace(held, lagging=(1,))})
    assert broken(lagging, {0: [4, 3, 1]}, in_rack_a(lagging)) == []


def least(before, **patterns):
    return Rules(leaders=LeaderRule.of(before.snapshot(), least=patterns or {"t": 1}))


def test_a_broker_with_the_least_number_of_leaders_hands_none_over():
    before = cluster(RACKS, topic("t", [[1, 2], [2, 1], [2, 3]]))
    assert broken(before, {0: [2, 1]}, least(before)) == [("t-0", "min-topic-leaders")]
    assert broken(before, {0: [2, 1], 1: [1, 2]}, least(before)) == []  # it gets another one
    assert broken(before, {2: [3, 2]}, least(before)) == []  # it has one more
    assert broken(before, {2: [3, 2]}, least(before, **{"t*": 2})) == [("t-2", "min-topic-leaders")]
    assert broken(before, {0: [2, 3]}, least(before)) == []  # its replica goes
    assert broken(before, {0: [2, 1]}, least(before, other=1)) == []


def test_a_broker_outside_of_a_topics_set_needs_no_leaders_of_it():
    before = cluster(RACKS, topic("t", [[1, 2], [2, 1], [2, 1]]))
    snapshot = BrokerSets.from_dict({"x": {"brokers": [2, 3], "topics": ["t"]}}).apply(before.snapshot())
    leaders = LeaderRule.of(snapshot, least={"t": 1}, broker_sets=SetRule.of(snapshot))
    assert broken(snapshot, {0: [2, 1]}, Rules(leaders=leaders)) == []


def test_a_request_that_says_nothing_of_leaders_has_no_rule():
    assert LeaderRule.of(cluster(RACKS).snapshot()) is None


def traffic(capacities, rates, lists):
    before = cluster([1, 2, 3], topic("t", lists))
    snapshot = Capacities.from_dict({"brokers": {id_: {"network_in": most} for id_, most in capacities.items()}}).apply(
        before.snapshot()
    )
    names = {"topic": ["t"] * len(rates), "partition": pa.array(range(len(rates)), pa.int32())}
    return snapshot, Rules(
        traffic=Traffic.of(snapshot, pa.table({**names, "write_rate": pa.array(rates, pa.float64())}))
    )


@pytest.mark.parametrize(
    ("after", "wrong"),
    [
        ({1: [2]}, True),  # 90 and 20
        ({0: [3], 1: [2]}, False),  # the 90 goes
        ({2: [2]}, False),  # 90 and 10
        ({1: [3]}, False),  # no limit is known
        ({3: [2]}, False),  # nor this rate
    ],
)
def test_no_broker_comes_above_its_network_capacity(after, wrong):
    snapshot, rules = traffic({2: 100.0}, [90, 20, 10, None], [[2], [1], [1], [1]])
    assert broken(snapshot, after, rules) == ([("t-1", "network-capacity")] if wrong else [])


def test_a_broker_above_its_network_capacity_may_only_come_down():
    snapshot, rules = traffic({2: 50.0}, [90, 20, 5], [[2], [1], [1]])
    assert broken(snapshot, {}, rules) == []
    assert broken(snapshot, {2: [2]}, rules) == [("t-2", "network-capacity")]
    assert broken(snapshot, {0: [1], 1: [2]}, rules) == []


CORDONED = {
    1: Host(disks={"/a": 1000, "/b": 100}, cordoned=("/a",)),
    2: Host(cordoned=("/data",)),
    3: Host(cordoned=()),
}


@pytest.mark.parametrize(
    ("entry", "rules"),
    [
        (PlanEntry("t", 0, (2,)), ["cordoned"]),
        (PlanEntry("t", 0, (1,), ("/a",)), ["cordoned"]),
        (PlanEntry("t", 0, (1,), ("/b",)), []),
        (PlanEntry("t", 0, (1,)), []),
        (PlanEntry("t", 1, (1,), ("/a",)), ["cordoned"]),  # within its broker
        (PlanEntry("t", 2, (1,)), ["broker-capacity"]),  # the cordoned log dir has no disk space for it
        (PlanEntry("t", 3, (2,)), []),  # it is there already
    ],
)
def test_nothing_comes_to_a_cordoned_broker_or_log_dir(entry, rules):
    before = cluster(CORDONED, topic("t", [[3], [1], [3], [2]], [50, 10, 200, 10]))
    held = before.partitions[TopicPartition("t", 1)]
    before = replace(before, partitions={**before.partitions, TopicPartition("t", 1): replace(held, log_dirs=("/b",))})
    found = broken(before, Plan.from_entries([entry]), Rules(limits=Limits.of(before.snapshot(), 0.9)))
    assert [rule for _, rule in found] == rules
