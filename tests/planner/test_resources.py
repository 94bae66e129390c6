"""Each resource is shared out by its own capacity, and one that is not known changes nobody's share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, candidate
from rebalance_lib.planner.resources import Resource, known_resources, unknown_capacities, weights
from tests.planner.clusters import DISK, Host, cluster, planned, topic

TB = 10**12
BYTES = ("disk", "leaders")
DISKS = {1: 16 * TB, 2: 16 * TB, 3: 4 * TB, 4: 4 * TB}


def four_brokers(disks=None):
    """240 partitions of two replicas, 60 led by each of four brokers, on disks of 16, 16, 4 and 4 TB."""
    lists = [[1 + n % 4, 1 + (n + 1 + n // 4 % 3) % 4] for n in range(240)]
    sizes = np.random.default_rng(1).lognormal(20, 1.5, 240).astype(int).tolist()
    hosts = {id_: Host(disks={DISK: size}) for id_, size in (disks or DISKS).items()}
    return cluster(hosts, topic("orders", lists, sizes))


def rates(before, of):
    names = list(before.partitions)
    return pa.table(
        {
            "topic": [name.topic for name in names],
            "partition": pa.array([name.partition for name in names], pa.int32()),
            "write_rate": [float(of(n)) for n in range(len(names))],
            "read_rate": [0.0] * len(names),
        }
    )


def test_leaders_of_brokers_with_large_disks_stay_as_they_are():
    before = four_brokers()
    assert set(before.leaders_by_broker().values()) == {60}
    after = before.after(planned(before, Request(Mode.LEADERS, goals=("leaders",))).plan)
    assert after.leaders_by_broker() == before.leaders_by_broker()


def test_traffic_is_even_within_two_percent_while_disks_are_filled_by_their_size():
    before = four_brokers()
    model = ClusterModel.of(before.snapshot(), rates(before, lambda n: 1000 + 77 * n % 501))
    request = Request(Mode.BALANCE, goals=("disk", "network_in=0.01", "leaders", "network_out=0.01"))
    one = candidate(model, Scope.of(model, request), request, FULL)
    after = {verdict.goal: verdict.after for verdict in one.outcome.verdicts(request)}
    assert after["disk"] < 1.02
    assert after["network_in"] < 1.02
    assert after["network_out"] < 1.02
    assert set(before.after(one.plan).leaders_by_broker().values()) <= {59, 60, 61}


def settled(unknown):
    """As even as its disks ask for; the capacity of one broker is not known."""
    before = four_brokers()
    even = before.after(planned(before, Request(Mode.BALANCE, goals=BYTES)).plan)
    return replace(even, hosts={**even.hosts, unknown: Host()})


@pytest.mark.parametrize("unknown", DISKS)
def test_a_settled_cluster_gets_no_move_when_one_capacity_is_not_known(unknown):
    before = settled(unknown)
    one = planned(before, Request(Mode.BALANCE, goals=BYTES))
    assert len(one.plan) == 0
    assert unknown_capacities(ClusterModel.of(before.snapshot())) == {Resource.DISK: [unknown]}


def test_a_plan_is_made_for_the_sizes_after_the_horizon_and_copies_those_of_now():
    before = cluster({1: "a", 2: "b"}, topic("orders", [[1]] * 4, 10))
    loads = rates(before, lambda _: 1).append_column("size_bytes", pa.array([90, None, 40, 40], pa.int64()))
    model = ClusterModel.of(before.snapshot(), loads)
    assert model.at_horizon().bytes.tolist() == [90, 10, 40, 40]
    request = Request(Mode.BALANCE, goals=("disk",))
    one = candidate(model, Scope.of(model, request), request, FULL)
    moved = {name.partition for name in one.plan.as_dict()}
    assert moved in ({0}, {1, 2, 3})
    assert one.figures.bytes_moved == 10 * len(moved)


def test_without_capacities_all_brokers_count_the_same():
    model = ClusterModel.of(four_brokers(dict.fromkeys(DISKS)).snapshot())
    assert all(np.all(weights(model, one) == 1) for one in Resource)
    assert unknown_capacities(model) == {}


def test_what_is_not_known_is_not_shared_out():
    before = four_brokers()
    model = ClusterModel.of(before.snapshot())
    assert known_resources(model) == (Resource.DISK, Resource.REPLICAS, Resource.LEADERS)
    with_rates = model.with_loads(rates(before, lambda _: 1))
    assert set(known_resources(with_rates)) == set(Resource) - {Resource.CPU}
    cores = {**with_rates.capacity, Resource.CPU: np.array([8.0, 8.0, 8.0, 16.0])}
    assert set(known_resources(replace(with_rates, capacity=cores))) == set(Resource)
