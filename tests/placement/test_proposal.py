"""A proposal keeps every partition's number of replicas, and uses the brokers named."""

from __future__ import annotations

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import brokers_to_place_on, propose
from rebalance_lib.topology import Broker, TopicPartition

ALIVE = {1: Broker(1, "a"), 2: Broker(2, "b"), 3: Broker(3)}


def test_partitions_that_differ_keep_their_number_of_replicas():
    current = {TopicPartition("foo", 0): [1, 2], TopicPartition("foo", 1): [1]}
    proposed = propose(current, [Broker(3), Broker(4)], rng=0)
    assert [len(proposed[tp]) for tp in current] == [2, 1]
    assert {broker for replicas in proposed.values() for broker in replicas} <= {3, 4}


def test_dead_brokers_are_told_apart():
    assert brokers_to_place_on([2, 1, 9], ALIVE, rack_aware=True) == ([Broker(2, "b"), Broker(1, "a")], [9])


def test_racks_of_some_brokers_only_are_refused_in_kafkas_words():
    with pytest.raises(InvalidInputError, match=r"Not all brokers have rack information\. Add --disable-rack-aware"):
        brokers_to_place_on([1, 3], ALIVE, rack_aware=True)
    assert brokers_to_place_on([1, 3], ALIVE, rack_aware=False) == ([Broker(1), Broker(3)], [])
