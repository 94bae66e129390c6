from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import RackMode, add_partitions, assign_replicas, parse_replica_assignment
from tests.placement.clusters import (
    brokers_in_racks,
    brokers_without_racks,
    clusters,
    printed,
    random_cluster,
)

THREE = brokers_without_racks(range(3))
FIVE = brokers_without_racks(range(5))
ALIKE = {partition: [0, 1, 2] for partition in range(3)}


def refusal(*arguments, **options):
    with pytest.raises(InvalidInputError) as refused:
        add_partitions(*arguments, **options)
    return str(refused.value)


def test_the_example_of_the_module():
    existing = {0: [1, 2, 3], 1: [2, 3, 4], 2: [3, 4, 0], 3: [4, 0, 1]}
    assert add_partitions("orders", existing, FIVE, 6) == {4: [0, 2, 3], 5: [1, 4, 0]}


def test_a_fourth_partition_by_hand_is_taken_from_a_text_that_names_all_four():
    by_hand = parse_replica_assignment("0:1:2,0:1:2,0:1:2,2:1:0")
    assert add_partitions("my-topic-name", ALIKE, THREE, 4, replica_assignment=by_hand) == {3: [2, 1, 0]}


def test_a_fourth_partition_placed_by_kafka_goes_on_from_partition_zero():
    assert add_partitions("my_topic_name", ALIKE, THREE, 4) == {3: [0, 2, 1]}


def test_partition_zero_gives_the_factor_and_the_start():
    existing = {0: [3, 1], 1: [0, 1, 2], 2: [2, 3]}
    added = add_partitions("orders", existing, FIVE, 5)
    assert added == assign_replicas(FIVE, 2, 2, start_index=3, start_partition=3)


@pytest.mark.parametrize(("first", "start"), [(10, 0), (15, 1), (20, 1), (25, 2), (31, 0)])
def test_the_start_is_the_first_broker_not_below_partition_zeros_first_replica(first, start):
    brokers = brokers_without_racks([30, 10, 20])
    added = add_partitions("orders", {0: [first]}, brokers, 4)
    assert added == assign_replicas(brokers_without_racks([10, 20, 30]), 3, 1, start_index=start, start_partition=1)


def test_racks_count_as_they_do_for_a_new_topic():
    brokers = brokers_in_racks({"a": [0, 1], "b": [2, 3]})
    assert add_partitions("orders", {0: [0, 2]}, brokers, 3) == {1: [2, 1], 2: [1, 3]}
    added = add_partitions("orders", {0: [0, 2]}, brokers, 3, rack_mode=RackMode.DISABLED)
    assert added == {1: [1, 2], 2: [2, 3]}


@pytest.mark.parametrize("partitions", [3, 2, 0])
def test_a_topic_cannot_shrink_or_stay(partitions):
    assert refusal("orders", ALIKE, THREE, partitions) == (
        "The number of partitions for a topic can only be increased. "
        f"Topic orders currently has 3 partitions, {partitions} would not be an increase."
    )


def test_a_topic_without_partition_zero_is_refused():
    assert refusal("orders", {1: [0]}, THREE, 3).startswith(
        "Unexpected existing replica assignment for topic 'orders', partition id 0 is missing. Assignment: {1: [0]}"
    )


def test_a_topic_with_a_gap_in_its_numbers_is_refused():
    assert "consecutive" in refusal("orders", {0: [0], 2: [1]}, THREE, 4)


def test_fewer_brokers_than_partition_zero_has_replicas_are_refused():
    words = refusal("orders", ALIKE, THREE[:2], 4)
    assert words == "Replication factor: 3 larger than available brokers: 2."


@pytest.mark.parametrize(
    ("by_hand", "words"),
    [
        ({}, "Attempted to add 2 additional partition(s), but only 0 assignment(s) were specified."),
        (
            {3: [0, 1, 2]},
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        ({3: [0, 1, 2], 5: [0, 1, 2]}, "partitions should be a consecutive 0-based integer sequence"),
        (
            {3: [0, 1, 2], 4: [0, 1]},
            "Inconsistent replication factor between partitions, partition 0 has 3 while",
        ),
        ({3: [0, 1, 2], 4: [0, 1, 1]}, "Duplicate brokers not allowed in replica assignment: 0, 1, 1"),
        ({3: [0, 1, 2], 4: [0, 1, 7]}, "Some brokers specified for partition id 4 are not available."),
        ({3: [], 4: [0, 1, 2]}, "Cannot have replication factor of 0 for partition id 3."),
    ],
)
def test_new_partitions_by_hand_are_checked(by_hand, words):
    assert refusal("orders", ALIKE, THREE, 5, replica_assignment=by_hand).startswith(words)


@given(clusters(racked=False), st.integers(1, 20), st.integers(1, 20), st.data())
def test_a_topic_grown_over_the_same_brokers_is_the_topic_created_larger(brokers, before, more, data):
    by_id = sorted(brokers, key=lambda broker: broker.id)
    factor = data.draw(st.integers(1, len(brokers)))
    start = data.draw(st.integers(0, len(brokers) - 1))
    whole = assign_replicas(by_id, before + more, factor, start_index=start)
    existing = {partition: whole[partition] for partition in range(before)}
    added = add_partitions("orders", existing, brokers, before + more)
    assert {partition: replicas[0] for partition, replicas in added.items()} == {
        partition: whole[partition][0] for partition in range(before, before + more)
    }
    if before <= len(brokers):
        assert {**existing, **added} == whole


@pytest.mark.programs
def test_kafkas_admin_utils_adds_the_same(admin_utils, reference_cases, random):
    cases = []
    for _ in reference_cases:
        brokers = sorted(random_cluster(random, partly_racked=0), key=lambda broker: broker.id)
        factor = random.randint(1, len(brokers))
        first = random.sample([broker.id for broker in brokers], factor)
        cases.append((brokers, dict.fromkeys(range(random.randint(1, 40)), first), random.randint(1, 40)))
    answers = admin_utils.ask(
        "\t".join(map(str, (more, len(existing[0]), _place(brokers, existing), len(existing), printed(brokers))))
        for brokers, existing, more in cases
    )
    for (brokers, existing, more), answer in zip(cases, answers, strict=True):
        added = add_partitions("orders", existing, random.sample(brokers, len(brokers)), len(existing) + more)
        assert (
            ";".join(f"{partition}={','.join(map(str, replicas))}" for partition, replicas in added.items()) == answer
        )


def _place(brokers, existing):
    return [broker.id for broker in brokers].index(existing[0][0])
