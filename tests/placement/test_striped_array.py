from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.placement import RackMode, assign_replicas_array
from rebalance_lib.placement.striped import place, stripes_over
from rebalance_lib.topology import Broker
from tests.placement.clusters import brokers_in_racks, brokers_without_racks, clusters


def stripes(brokers, partitions, factor, *, start=0, first=0):
    return stripes_over(
        brokers,
        partitions,
        factor,
        start_index=start,
        start_partition=first,
        replica_shift=None,
        rack_mode=RackMode.ENFORCED,
        rng=None,
    )


def assert_same_as_one_by_one(brokers, partitions, factor, *, start=0, first=0):
    asked = stripes(brokers, partitions, factor, start=start, first=first)
    one_by_one = [asked.replicas(partition) for partition in range(first, first + partitions)]
    assert place(asked, partitions).tolist() == one_by_one


@given(clusters(), st.integers(1, 80), st.integers(0, 60), st.integers(0, 60), st.data())
def test_all_at_once_is_the_same_as_one_by_one(brokers, partitions, start, first, data):
    factor = data.draw(st.integers(1, len(brokers)))
    assert_same_as_one_by_one(brokers, partitions, factor, start=start, first=first)


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1),
        (1, 30),
        (30, 1),
        (15, 15, 1),
        (1, 15, 15),
        (2, 3, 20, 20),
        (1, 1, 1, 25),
        (10, 10, 10),
        (12,),
        (1,) * 12,
    ],
    ids=str,
)
@pytest.mark.parametrize("factor", [1, 2, 3, 4, "brokers"])
def test_racks_of_every_shape(sizes, factor):
    ids = iter(range(sum(sizes)))
    brokers = brokers_in_racks({f"rack{i}": [next(ids) for _ in range(size)] for i, size in enumerate(sizes)})
    replicas = len(brokers) if factor == "brokers" else min(factor, len(brokers))
    assert_same_as_one_by_one(brokers, len(brokers) * (len(brokers) - 1) + 5, replicas, start=3)


def test_more_partitions_than_are_done_at_once():
    brokers = [Broker(broker, f"rack{broker % 3}") for broker in range(7)]
    asked = stripes(brokers, 140_000, 3)
    placed = place(asked, 140_000)
    for partition in (0, 65_535, 65_536, 131_071, 131_072, 139_999):
        assert placed[partition].tolist() == asked.replicas(partition)


def test_a_lone_broker_has_its_partitions_to_itself():
    assert assign_replicas_array(brokers_without_racks([5]), 3, 1).tolist() == [[5]] * 3
    assert assign_replicas_array([Broker(5, "a")], 3, 1).tolist() == [[5]] * 3


def test_a_start_beyond_the_ring_is_counted_around_it():
    assert_same_as_one_by_one(brokers_in_racks({"a": [1, 2], "b": [3]}), 20, 2, start=2**31 - 1)


def test_the_array_has_a_row_per_partition_of_32_bit_ids():
    placed = assign_replicas_array(brokers_without_racks(range(4)), 6, 2)
    assert placed.shape == (6, 2)
    assert placed.dtype == np.int32
    assert placed.flags.c_contiguous
