"""No move brings a broker above its network capacity; one that is above already only comes down."""

from __future__ import annotations

import json

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
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


def test_a_partition_to_which_nothing_is_written_can_go_anywhere():
    _, held = planned({1: None, 2: 20.0, 3: 20.0}, [[1]], Request(Mode.DRAIN, brokers=(1,)), rate=0.0)
    assert held[1] == 0
    brokers = [{"id": 1}, *({"id": id_, "capacity": {"network_in": 20.0}} for id_ in (2, 3))]
    rows = [("idle", 1, 0.0), ("busy", 2, 30.0), ("busy too", 3, 30.0)]
    partitions = [
        {"topic": topic.replace(" ", "-"), "partition": 0, "replicas": [id_], "size": 5, "write_rate": rate}
        for topic, id_, rate in rows
    ]
    file = parse_cluster(json.dumps({"brokers": brokers, "partitions": partitions}).encode())
    one = candidates(ClusterModel.of(file.snapshot, file.loads), Request(Mode.DRAIN, brokers=(1,)))[0]
    assert len(one.plan) == 1


@pytest.mark.parametrize("shards", [2, 4])
def test_shards_together_keep_below_a_capacity(monkeypatch, shards):
    monkeypatch.setattr("rebalance_lib.planner.exact.COLUMNS", 0)
    request = Request(Mode.BALANCE, goals=("disk", "replicas"), shards=shards)
    _, held = planned({1: 2000.0, 2: 55.0}, [[1]] * 40, request)
    assert 0 < held[2] <= 5
