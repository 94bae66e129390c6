from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import RackMode, assign_replicas, change_replication_factor
from rebalance_lib.topology import Broker, TopicPartition
from tests.placement.clusters import brokers_in_racks, brokers_without_racks, clusters

TWO_RACKS = brokers_in_racks({"a": [0, 1], "b": [2, 3]})
FOUR = brokers_without_racks(range(4))


def test_the_example_of_the_module():
    up = change_replication_factor({0: [0, 1], 1: [0, 2]}, TWO_RACKS, 3)
    assert up == {0: [0, 1, 3], 1: [0, 2, 1]}
    assert change_replication_factor(up, TWO_RACKS, 2) == {0: [0, 3], 1: [0, 2]}


def test_three_partitions_raised_to_four_replicas_stand_on_all_four_brokers():
    striped = assign_replicas(FOUR, 3, 3, start_index=0)
    raised = change_replication_factor(striped, FOUR, 4)
    assert raised == {0: [0, 1, 2, 3], 1: [1, 2, 3, 0], 2: [2, 3, 0, 1]}


def test_partitions_of_several_topics_are_changed_together():
    orders, returns = TopicPartition("orders", 0), TopicPartition("returns", 0)
    assert change_replication_factor({orders: [0], returns: [1]}, FOUR, 2) == {
        orders: [0, 2],
        returns: [1, 3],
    }


def test_brokers_full_with_other_topics_are_left_alone():
    counts = {0: 5, 1: 50, 2: 40, 3: 45}
    assert change_replication_factor({0: [0]}, FOUR, 2, replica_counts=counts) == {0: [0, 2]}
    assert change_replication_factor({0: [0, 1, 2, 3]}, FOUR, 2, replica_counts=counts) == {0: [0, 2]}


def test_partitions_with_the_factor_already_stay_and_others_go_up_or_down_to_it():
    changed = change_replication_factor({0: [0, 1], 1: [2], 2: [3, 2, 1]}, FOUR, 2)
    assert changed == {0: [0, 1], 1: [2, 0], 2: [3, 2]}


def test_the_leader_of_the_moment_is_never_dropped_and_the_preferred_one_only_for_it():
    changed = change_replication_factor({0: [0, 1, 2]}, FOUR, 2, leaders={0: 2})
    assert changed == {0: [0, 2]}
    assert change_replication_factor({0: [0, 1, 2]}, FOUR, 1, leaders={0: 2}) == {0: [2]}


def test_replicas_on_brokers_that_are_gone_are_dropped_first():
    assert change_replication_factor({0: [0, 9, 1]}, FOUR, 2) == {0: [0, 1]}


def test_where_racks_do_not_count_only_the_load_decides():
    up = change_replication_factor({0: [0], 1: [2]}, TWO_RACKS, 2, rack_mode=RackMode.DISABLED)
    assert up == {0: [0, 1], 1: [2, 3]}


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0, "Replication factor must be larger than 0."),
        (5, "Replication factor: 5 larger than available brokers: 4."),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(factor, words):
    with pytest.raises(InvalidInputError) as refused:
        change_replication_factor({0: [0]}, FOUR, factor)
    assert str(refused.value) == words


def test_racks_of_only_some_brokers_are_refused_when_enforced():
    with pytest.raises(InvalidInputError, match="Not all brokers have rack information"):
        change_replication_factor({0: [0]}, [Broker(0, "a"), Broker(1)], 2)


@st.composite
def changes(draw):
    """A topic striped over a cluster, and two factors."""
    brokers = draw(clusters())
    factors = st.integers(1, len(brokers))
    placed = assign_replicas(brokers, draw(st.integers(1, 40)), draw(factors), start_index=draw(st.integers(0, 20)))
    return brokers, placed, draw(factors)


@given(changes())
def test_nothing_moves_and_the_order_of_what_stays_stays(change):
    brokers, placed, factor = change
    changed = change_replication_factor(placed, brokers, factor)
    assert list(changed) == list(placed)
    for partition, before in placed.items():
        after = changed[partition]
        assert len(after) == len(set(after)) == factor
        assert after[0] == before[0]
        if factor >= len(before):
            assert after[: len(before)] == before
        else:
            assert after == [broker for broker in before if broker in after]


@given(changes())
def test_every_partition_stands_in_as_many_racks_as_it_can(change):
    brokers, placed, factor = change
    rack_of = {broker.id: broker.rack for broker in brokers}
    for partition, after in change_replication_factor(placed, brokers, factor).items():
        before = {rack_of[broker] for broker in placed[partition]}
        possible = set(rack_of.values()) if factor > len(placed[partition]) else before
        assert len({rack_of[broker] for broker in after}) == min(factor, len(possible))


@given(changes())
def test_replicas_go_to_the_emptiest_broker_of_the_racks_that_hold_the_fewest(change):
    brokers, placed, factor = change
    load = Counter(broker for replicas in placed.values() for broker in replicas)
    rack_of = {broker.id: broker.rack for broker in brokers}
    raised = change_replication_factor(placed, brokers, max(factor, len(placed[0])))
    for partition, after in raised.items():
        for size in range(len(placed[partition]), len(after)):
            held = Counter(rack_of[broker] for broker in after[:size])
            best = min((held[rack_of[id_]], load[id_], id_) for id_ in rack_of if id_ not in after[:size])
            assert after[size] == best[2]
            load[after[size]] += 1


@given(changes())
def test_replicas_are_dropped_from_the_fullest_broker_of_the_racks_that_hold_the_most(change):
    brokers, placed, factor = change
    load = Counter(broker for replicas in placed.values() for broker in replicas)
    rack_of = {broker.id: broker.rack for broker in brokers}
    lowered = change_replication_factor(placed, brokers, min(factor, len(placed[0])))
    for partition, after in lowered.items():
        left = list(placed[partition])
        while len(left) > len(after):
            held = Counter(rack_of[broker] for broker in left)
            worst = max((held[rack_of[left[i]]], load[left[i]], i) for i in range(1, len(left)))
            load[left[worst[2]]] -= 1
            del left[worst[2]]
        assert after == left


def test_sixty_partitions_raised_over_six_brokers_stay_even():
    brokers = brokers_without_racks(range(6))
    raised = change_replication_factor(assign_replicas(brokers, 60, 2, start_index=0), brokers, 3)
    assert set(Counter(broker for replicas in raised.values() for broker in replicas).values()) == {30}


@given(changes(), st.randoms(use_true_random=False))
def test_the_leader_of_the_moment_stays_whoever_it_is(change, random):
    brokers, placed, factor = change
    leaders = {partition: random.choice(replicas) for partition, replicas in placed.items()}
    changed = change_replication_factor(placed, brokers, factor, leaders=leaders)
    assert all(leaders[partition] in replicas for partition, replicas in changed.items())


@given(changes())
def test_the_order_in_which_brokers_are_listed_does_not_matter(change):
    brokers, placed, factor = change
    changed = change_replication_factor(placed, brokers, factor)
    assert change_replication_factor(placed, list(reversed(brokers)), factor) == changed
