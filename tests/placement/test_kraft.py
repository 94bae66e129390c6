from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import place_replicas
from rebalance_lib.topology import Broker
from tests.placement.clusters import (
    brokers_in_racks,
    brokers_without_racks,
    clusters,
    printed,
    random_cluster,
)


def zero(bound):
    return 0


def test_the_example_of_the_module():
    brokers = brokers_in_racks({"a": [0, 1, 2], "b": [10, 11, 12], "c": [20, 21, 22]})
    assert place_replicas(brokers, 3, 3, draw=zero) == {0: [0, 10, 20], 1: [11, 21, 1], 2: [22, 2, 12]}


def test_racks_take_turns_to_lead_and_a_partition_goes_around_them():
    brokers = brokers_in_racks({"a": [0], "b": [1], "c": [2], "d": [3]})
    assert list(place_replicas(brokers, 3, 3, draw=zero).values()) == [[0, 1, 2], [1, 2, 3], [2, 3, 0]]


def test_fenced_brokers_come_last_and_never_lead():
    placed = place_replicas(brokers_without_racks(range(4)), 8, 3, fenced={0, 2}, draw=zero)
    for replicas in placed.values():
        assert set(replicas[:2]) == {1, 3}
        assert replicas[2] in {0, 2}


def test_a_rack_with_fenced_brokers_only_gives_followers_but_no_leader():
    brokers = brokers_in_racks({"a": [0], "b": [1], "c": [2]})
    placed = place_replicas(brokers, 2, 3, fenced={0}, draw=zero)
    assert placed == {0: [1, 0, 2], 1: [1, 2, 0]}


def test_brokers_without_a_rack_are_a_rack_that_sorts_first():
    assert place_replicas([Broker(1, ""), Broker(2), Broker(3, "a")], 1, 3, draw=zero) == {0: [2, 1, 3]}


def test_numbers_go_on_from_the_start_partition():
    brokers = brokers_without_racks(range(3))
    placed = place_replicas(brokers, 2, 2, start_partition=5, draw=zero)
    assert list(placed) == [5, 6]
    assert list(placed.values()) == list(place_replicas(brokers, 2, 2, draw=zero).values())


@pytest.mark.parametrize(
    ("partitions", "factor", "fenced", "words"),
    [
        (0, 1, (), "Number of partitions was set to an invalid non-positive value."),
        (1, 0, (), "Invalid replication factor 0: the replication factor must be positive."),
        (1, 4, (0, 1, 2), "All brokers are currently fenced, or have all their log directories cordoned."),
        (
            1,
            4,
            (),
            (
                "The target replication factor of 4 cannot be reached because only 3 broker(s) are "
                "registered or some brokers have all their log directories cordoned."
            ),
        ),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(partitions, factor, fenced, words):
    with pytest.raises(InvalidInputError) as refused:
        place_replicas(brokers_without_racks(range(3)), partitions, factor, fenced=fenced)
    assert str(refused.value) == words


def test_a_fenced_broker_that_is_not_there_is_refused_by_its_id():
    with pytest.raises(InvalidInputError, match=r"Fenced brokers \[9\] are not among the brokers \[0, 1\]"):
        place_replicas(brokers_without_racks([1, 0]), 1, 1, fenced=[9])


def test_a_broker_given_twice_is_refused_by_its_id():
    with pytest.raises(InvalidInputError, match=r"more than once: 7"):
        place_replicas([Broker(7), Broker(8), Broker(7)], 1, 1)


def test_the_same_seed_places_the_same_and_another_seed_does_not():
    brokers = brokers_in_racks({"a": range(5), "b": range(5, 9)})
    assert place_replicas(brokers, 50, 2, rng=4) == place_replicas(brokers, 50, 2, rng=np.random.default_rng(4))
    assert place_replicas(brokers, 50, 2, rng=4) != place_replicas(brokers, 50, 2, rng=5)


@given(clusters(), st.integers(1, 60), st.data())
def test_replicas_are_distinct_and_led_by_an_unfenced_broker(brokers, partitions, data):
    ids = [broker.id for broker in brokers]
    fenced = set(data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=len(ids) - 1))) if ids[1:] else set()
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place_replicas(brokers, partitions, factor, fenced=fenced, rng=data.draw(st.integers(0, 9)))
    for replicas in placed.values():
        assert len(replicas) == len(set(replicas)) == factor
        assert set(ids).issuperset(replicas)
        assert replicas[0] not in fenced


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.data())
def test_equal_racks_all_hold_a_replica_and_brokers_share_evenly_in_a_round(racks, size, rounds, data):
    brokers = [Broker(rack * size + i, f"rack{rack}") for rack in range(racks) for i in range(size)]
    placed = place_replicas(brokers, rounds * len(brokers), racks, rng=data.draw(st.integers(0, 9)))
    for replicas in placed.values():
        assert len({broker // size for broker in replicas}) == racks
    first_round = Counter(broker for p in range(len(brokers)) for broker in placed[p])
    assert set(first_round.values()) == {racks}


@pytest.mark.programs
def test_kafkas_striped_replica_placer_places_the_same(striped_replica_placer, reference_cases, random):
    cases = []
    for _ in reference_cases:
        brokers = random_cluster(random, partly_racked=0.3)
        fenced = {broker.id for broker in brokers if random.random() < random.choice((0, 0, 0.1, 0.5, 1))}
        factor = random.choice((0, 1, 2, 3, 3, 3, 4, len(brokers), len(brokers) + 1, random.randint(1, len(brokers))))
        partitions = random.choice((1, 3, len(brokers), random.randint(1, 4 * len(brokers)), 100))
        cases.append((brokers, fenced, partitions, factor))
    ours = [_answer(*case, random) for case in cases]
    answers = striped_replica_placer.ask(
        f"{partitions}\t{factor}\t{','.join(map(str, drawn))}\t{printed(brokers, fenced)}"
        for (brokers, fenced, partitions, factor), (_, drawn) in zip(cases, ours, strict=True)
    )
    for case, (answer, drawn), kafkas in zip(cases, ours, answers, strict=True):
        assert answer == kafkas, (case, drawn)
    assert sum(answer.startswith("!") for answer in answers) < len(cases) / 2


def _answer(brokers, fenced, partitions, factor, random):
    drawn = []

    def draw(bound):
        drawn.append(random.randrange(1_000_000))
        return drawn[-1] % bound

    try:
        placed = place_replicas(brokers, partitions, factor, fenced=fenced, draw=draw)
    except InvalidInputError as refused:
        return f"!{refused}", drawn
    return ";".join(",".join(map(str, replicas)) for replicas in placed.values()), drawn
