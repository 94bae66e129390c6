from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import (
    check_replica_assignment,
    format_replica_assignment,
    parse_replica_assignment,
)
from tests.placement.clusters import brokers_without_racks

THREE = brokers_without_racks(range(3))


def refusal(function, *arguments, **options):
    with pytest.raises(InvalidInputError) as refused:
        function(*arguments, **options)
    return str(refused.value)


def test_three_partitions_over_three_brokers_each_led_by_another():
    assignment = parse_replica_assignment("0:1:2,1:2:0,2:0:1")
    assert assignment == {0: [0, 1, 2], 1: [1, 2, 0], 2: [2, 0, 1]}
    place = {broker: [assignment[p].index(broker) + 1 for p in assignment] for broker in range(3)}
    assert place == {0: [1, 3, 2], 1: [2, 1, 3], 2: [3, 2, 1]}
    check_replica_assignment(assignment, THREE)


def test_three_partitions_may_all_stand_alike():
    assignment = parse_replica_assignment("0:1:2,0:1:2,0:1:2")
    assert assignment == {partition: [0, 1, 2] for partition in range(3)}
    check_replica_assignment(assignment, THREE)


def test_white_space_around_numbers_does_not_count():
    assert parse_replica_assignment(" 0 : 1,\t2: 0 ") == {0: [0, 1], 1: [2, 0]}


def test_a_broker_twice_in_a_partition_is_refused():
    assert refusal(parse_replica_assignment, "0:1,2:3:2:3").startswith(
        "Partition replica lists may not contain duplicate entries: 2,3"
    )


def test_partitions_of_different_factors_are_refused():
    words = refusal(parse_replica_assignment, "0:1:2,1:2")
    assert words == "Partition 1 has different replication factor: [1, 2]"


@pytest.mark.parametrize(
    ("text", "partition", "word"),
    [
        ("", 0, ""),
        ("0:1,", 1, ""),
        ("0:1,1:", 1, ""),
        ("0:1,a:2", 1, "a"),
        ("0:-1", 0, "-1"),
        ("0:1_0", 0, "1_0"),
        ("0:\u0661", 0, "\u0661"),
        ("0:2147483648", 0, "2147483648"),
        ("1 2:3", 0, "1 2"),
    ],
)
def test_what_is_not_a_broker_id_is_named_with_its_partition(text, partition, word):
    words = refusal(parse_replica_assignment, text)
    assert words.startswith(f"Partition {partition} of the replica assignment")
    assert f"has {word!r} where a broker id belongs" in words


@pytest.mark.parametrize(
    ("assignment", "factor", "words"),
    [
        ({0: [0], 1: []}, None, "Cannot have replication factor of 0 for partition id 1."),
        (
            {0: [0, 1], 1: [2, 2]},
            None,
            "Duplicate brokers not allowed in replica assignment: 2, 2 for partition id 1.",
        ),
        (
            {0: [0, 1], 1: [2, 9]},
            None,
            (
                "Some brokers specified for partition id 1 are not available. "
                "Specified brokers: 2, 9, available brokers: 0, 1, 2."
            ),
        ),
        (
            {0: [0, 1], 1: [2], 2: [0, 1, 2]},
            None,
            (
                "Inconsistent replication factor between partitions, partition 0 has 2 while "
                "partitions [1, 2] have replication factors [1, 3], respectively."
            ),
        ),
        (
            {3: [0, 1]},
            3,
            (
                "Inconsistent replication factor between partitions, partition 0 has 3 while partitions [3] "
                "have replication factors [2], respectively."
            ),
        ),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(assignment, factor, words):
    assert refusal(check_replica_assignment, assignment, THREE, replication_factor=factor) == words


def test_the_text_has_no_place_for_partitions_that_do_not_start_at_zero():
    assert refusal(format_replica_assignment, {1: [0], 2: [1]}).startswith(
        "partitions should be a consecutive 0-based integer sequence"
    )


@given(
    st.integers(1, 5).flatmap(
        lambda factor: st.lists(
            st.lists(st.integers(0, 2**31 - 1), min_size=factor, max_size=factor, unique=True),
            min_size=1,
            max_size=9,
        )
    )
)
def test_reading_what_was_written_is_the_same_assignment(replicas):
    assignment = dict(enumerate(replicas))
    text = format_replica_assignment(assignment)
    assert parse_replica_assignment(text) == assignment
    assert format_replica_assignment(parse_replica_assignment(text)) == text
