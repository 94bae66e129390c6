from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import RackMode, assign_replicas, assign_replicas_array
from rebalance_lib.placement.striped import rack_alternated
from rebalance_lib.topology import Broker
from tests.placement.clusters import (
    brokers_in_racks,
    brokers_without_racks,
    clusters,
    printed,
    random_cluster,
)

FOUR = brokers_without_racks(range(4))
FIVE = brokers_without_racks(range(5))


def test_the_example_of_the_module():
    brokers = brokers_in_racks({"a": [0, 1], "b": [2, 3]})
    assert assign_replicas(brokers, 5, 2, start_index=0) == {
        0: [0, 2],
        1: [2, 1],
        2: [1, 3],
        3: [3, 0],
        4: [0, 3],
    }


def test_ten_partitions_over_five_brokers_start_their_second_turn_one_further():
    placed = assign_replicas(FIVE, 10, 3, start_index=0)
    assert placed[0] == [0, 1, 2]
    assert placed[1] == [1, 2, 3]
    assert placed[4] == [4, 0, 1]
    assert placed[5] == [0, 2, 3]
    by_replica = [[[p for p, replicas in placed.items() if replicas[i] == b] for b in range(5)] for i in range(3)]
    assert by_replica == [
        [[0, 5], [1, 6], [2, 7], [3, 8], [4, 9]],
        [[4, 8], [0, 9], [1, 5], [2, 6], [3, 7]],
        [[3, 7], [4, 8], [0, 9], [1, 5], [2, 6]],
    ]


def test_five_partitions_from_start_zero_follow_the_simple_rule_of_i_plus_j():
    assert assign_replicas(FIVE, 5, 3, start_index=0) == {i: [(i + j) % 5 for j in range(3)] for i in range(5)}


@pytest.mark.parametrize(
    ("start", "shift", "placed"),
    [
        (3, 2, ["320", "031", "102"]),
        (3, 1, ["312", "023", "130", "201", "320"]),
        (1, 2, ["102", "213", "320", "031", "123", "230", "301", "012", "130"]),
    ],
)
def test_four_brokers_with_the_start_and_shift_of_three_random_draws(start, shift, placed):
    expected = {partition: [int(broker) for broker in replicas] for partition, replicas in enumerate(placed)}
    assert assign_replicas(FOUR, len(placed), 3, start_index=start, replica_shift=shift) == expected


def test_six_brokers_in_two_racks_led_from_the_fourth_in_the_ring():
    brokers = brokers_in_racks({"rack1": [0, 1, 2], "rack2": [3, 4, 5]})
    assert [broker.id for broker in rack_alternated(brokers)] == [0, 3, 1, 4, 2, 5]
    placed = assign_replicas(brokers, 2, 3, start_index=3, replica_shift=0)
    assert placed == {0: [4, 2, 5], 1: [2, 5, 0]}


def test_nine_brokers_in_three_racks_alternate():
    brokers = brokers_in_racks({"rack1": [0, 1, 2], "rack2": [3, 4, 5], "rack3": [6, 7, 8]})
    assert [broker.id for broker in rack_alternated(brokers)] == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_racks_of_unequal_size_leave_the_larger_ones_at_the_end_of_the_ring():
    brokers = brokers_in_racks({"b": [9, 4, 7], "a": [5], "c": [1, 2]})
    assert [broker.id for broker in rack_alternated(brokers)] == [5, 4, 1, 7, 2, 9]


def test_a_lone_broker_of_a_rack_is_found_from_everywhere_in_the_ring():
    brokers = brokers_in_racks({"a": [0, *range(2, 9)], "b": [1]})
    placed = assign_replicas(brokers, 90, 2, start_index=0)
    assert placed[2][0] == 2
    assert all(1 in replicas for replicas in placed.values())


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "words"),
    [
        (0, 1, "Number of partitions must be larger than 0."),
        (-1, 0, "Number of partitions must be larger than 0."),
        (1, 0, "Replication factor must be larger than 0."),
        (1, 5, "Replication factor: 5 larger than available brokers: 4."),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(partitions, replication_factor, words):
    with pytest.raises(InvalidInputError) as refused:
        assign_replicas(FOUR, partitions, replication_factor)
    assert str(refused.value) == words


def test_a_broker_given_twice_is_refused_by_its_id():
    with pytest.raises(InvalidInputError, match=r"more than once: 7"):
        assign_replicas([Broker(7), Broker(8), Broker(7)], 1, 1)


@pytest.mark.parametrize("name", ["start_index", "start_partition", "replica_shift"])
def test_a_negative_start_is_refused_by_name(name):
    with pytest.raises(InvalidInputError, match=f"{name} is -1"):
        assign_replicas(FOUR, 1, 1, **{name: -1})


class TestRackModes:
    PARTLY = (Broker(0, "a"), Broker(1), Broker(2, "b"), Broker(3, "b"))
    ALL = (Broker(0, "a"), Broker(1, "a"), Broker(2, "b"), Broker(3, "b"))

    def test_enforced_refuses_racks_of_only_some_brokers(self):
        with pytest.raises(InvalidInputError) as refused:
            assign_replicas(self.PARTLY, 4, 2, start_index=0, rack_mode=RackMode.ENFORCED)
        assert str(refused.value) == "Not all brokers have rack information for replica rack aware assignment."

    def test_enforced_places_without_racks_where_there_are_none(self):
        assert assign_replicas(FOUR, 1, 2, start_index=0, rack_mode=RackMode.ENFORCED) == {0: [0, 1]}

    def test_safe_leaves_racks_out_unless_all_brokers_have_one(self):
        assert assign_replicas(self.PARTLY, 1, 2, start_index=0, rack_mode=RackMode.SAFE) == {0: [0, 1]}
        assert assign_replicas(self.ALL, 1, 2, start_index=0, rack_mode=RackMode.SAFE) == {0: [0, 2]}

    def test_disabled_leaves_racks_out_always(self):
        assert assign_replicas(self.ALL, 1, 2, start_index=0, rack_mode=RackMode.DISABLED) == {0: [0, 1]}


class TestRandomStart:
    def test_the_same_seed_places_the_same(self):
        assert assign_replicas(FIVE, 20, 3, rng=11) == assign_replicas(FIVE, 20, 3, rng=11)

    def test_a_generator_goes_on_from_call_to_call(self):
        generator = np.random.default_rng(3)
        seen = {tuple(assign_replicas(FIVE, 1, 3, rng=generator)[0]) for _ in range(200)}
        assert {replicas[0] for replicas in seen} == {0, 1, 2, 3, 4}
        assert len(seen) == 5 * 4

    def test_start_and_shift_are_drawn_apart(self):
        placed = assign_replicas(FIVE, 10, 3, rng=5)
        assert placed in [
            assign_replicas(FIVE, 10, 3, start_index=start, replica_shift=shift)
            for start in range(5)
            for shift in range(5)
        ]


@given(clusters(), st.integers(1, 60), st.data())
def test_replicas_are_distinct_brokers_and_numbered_from_the_start_partition(brokers, partitions, data):
    factor = data.draw(st.integers(1, len(brokers)))
    first = data.draw(st.integers(0, 100))
    placed = assign_replicas(brokers, partitions, factor, start_partition=first, rng=data.draw(st.integers(0, 9)))
    assert list(placed) == list(range(first, first + partitions))
    ids = {broker.id for broker in brokers}
    for replicas in placed.values():
        assert len(replicas) == len(set(replicas)) == factor
        assert ids.issuperset(replicas)


@given(clusters(), st.integers(1, 60), st.integers(0, 40), st.integers(0, 100))
def test_leaders_differ_by_at_most_one_between_brokers(brokers, partitions, start, first):
    leaders = assign_replicas_array(brokers, partitions, 1, start_index=start, start_partition=first)[:, 0]
    counts = Counter(leaders.tolist())
    assert max(counts.values()) - min(counts[broker.id] for broker in brokers) <= 1


@given(clusters(racked=False), st.integers(1, 8), st.data())
def test_whole_turns_without_racks_give_every_broker_the_same(brokers, turns, data):
    factor = data.draw(st.integers(1, len(brokers)))
    placed = assign_replicas_array(brokers, turns * len(brokers), factor, start_index=data.draw(st.integers(0, 40)))
    for column in placed.T:
        assert set(Counter(column.tolist()).values()) == {turns}


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(0, 30))
def test_whole_turns_over_equal_racks_give_every_broker_the_same(racks, size, turns, start):
    brokers = [Broker(rack * size + i, f"rack{rack}") for rack in range(racks) for i in range(size)]
    placed = assign_replicas_array(brokers, turns * len(brokers), racks, start_index=start)
    assert set(Counter(placed.ravel().tolist()).values()) == {turns * racks}


@given(clusters(racked=True), st.integers(1, 40), st.data())
def test_every_partition_stands_in_as_many_racks_as_it_can(brokers, partitions, data):
    factor = data.draw(st.integers(1, len(brokers)))
    rack_of = {broker.id: broker.rack for broker in brokers}
    placed = assign_replicas(brokers, partitions, factor, start_index=data.draw(st.integers(0, 40)))
    for replicas in placed.values():
        assert len({rack_of[broker] for broker in replicas}) == min(factor, len(set(rack_of.values())))


@given(clusters(racked=False, most=8), st.data())
def test_a_leader_shares_its_partitions_with_every_other_broker(brokers, data):
    factor = data.draw(st.integers(2, max(2, len(brokers))))
    count = len(brokers)
    if count < factor:
        return
    placed = assign_replicas(brokers, count * (count - 1), factor, start_index=data.draw(st.integers(0, 20)))
    followers = Counter((replicas[0], other) for replicas in placed.values() for other in replicas[1:])
    assert set(followers.values()) == {factor - 1}
    assert len(followers) == count * (count - 1)


@pytest.mark.programs
def test_kafkas_admin_utils_places_the_same(admin_utils, reference_cases, random):
    cases = []
    for _ in reference_cases:
        brokers = random_cluster(random, partly_racked=0.1)
        factor = random.choice((0, 1, 2, 3, 3, 3, 4, len(brokers), len(brokers) + 1, random.randint(1, len(brokers))))
        partitions = random.choice((0, 1, 3, len(brokers), random.randint(1, 4 * len(brokers)), 100))
        cases.append((brokers, partitions, factor, random.randint(0, 60), random.choice((0, 0, random.randint(0, 90)))))
    answers = admin_utils.ask(
        f"{partitions}\t{factor}\t{start}\t{first}\t{printed(brokers)}"
        for brokers, partitions, factor, start, first in cases
    )
    kinds = Counter(answer.split(":")[0] for answer in answers if answer.startswith("!"))
    for (brokers, partitions, factor, start, first), answer in zip(cases, answers, strict=True):
        assert _answer(brokers, partitions, factor, start, first) == answer
    assert len(kinds) == 4
    assert sum(kinds.values()) < len(cases) / 2


def _answer(brokers, partitions, factor, start, first):
    try:
        placed = assign_replicas(brokers, partitions, factor, start_index=start, start_partition=first)
    except InvalidInputError as refused:
        return f"!{refused}"
    return ";".join(f"{partition}={','.join(map(str, replicas))}" for partition, replicas in placed.items())
