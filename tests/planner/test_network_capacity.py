"""No move brings a broker above its network capacity; one that is above already only comes down."""

from __future__ import annotations

import json

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request, candidates
from rebalance_lib.topology import parse_cluster


def planned(capacities, lists, request, rate=10.0):
    """The plan for brokers of these network capacities and partitions of 1 kB, to each of which as much is written."""
    brokers = [
        {"id": id_} | ({} if network is None else {"capacity": {"network_in": network}})
        for id_, network in capacities.items()
    ]
    partitions = [
        {"topic": "t", "partition": n, "replicas": replicas, "size": 1000, "write_rate": rate}
        for n, replicas in enumerate(lists)
    ]
    file = parse_cluster(json.dumps({"brokers": brokers, "partitions": partitions}).encode())
    one = candidates(ClusterModel.of(file.snapshot, file.loads), request)[0]
    layout = one.outcome.placement.layout
    ids = one.outcome.model.broker_ids
    held = [ids[b] for b in layout.broker]
    return one, {int(id_): held.count(id_) for id_ in ids}


ONLY_DISK = Request(Mode.BALANCE, goals=("disk", "replicas"))


def test_bytes_on_disk_are_not_evened_out_beyond_a_network_capacity():
    _, free = planned({1: 200.0, 2: 200.0}, [[1]] * 10, ONLY_DISK)
    assert free == {1: 5, 2: 5}
    _, tight = planned({1: 200.0, 2: 35.0}, [[1]] * 10, ONLY_DISK)
    assert tight[2] == 3


def test_a_broker_of_unknown_capacity_has_no_limit():
    _, held = planned({1: None, 2: None}, [[1]] * 10, ONLY_DISK)
    assert held == {1: 5, 2: 5}


def test_a_broker_above_its_capacity_only_comes_down():
    one, held = planned({1: 20.0, 2: 400.0}, [[1]] * 6 + [[2]] * 20, ONLY_DISK)
    assert held[1] <= 6
    assert all(one.outcome.placement.layout.broker[slot] != 0 for slot in one.outcome.arrivals)


def test_a_drain_that_no_network_can_take_is_refused():
    with pytest.raises(InvalidInputError, match="without being above its network_in capacity"):
        planned({1: 200.0, 2: 35.0}, [[1]] * 5, Request(Mode.DRAIN, brokers=(1,)))
