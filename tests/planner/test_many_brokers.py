"""One broker of hundreds has disk space: what must move finds it, wherever it is in the list."""

from __future__ import annotations

import pytest

from rebalance_lib.planner import Mode, Request
from tests.planner.clusters import DISK, Host, cluster, planned, topic

COUNT = 300
ROOMY = (2, 140, 299)


def hosts(roomy, *, racks=lambda _: None, dead=(), full=80):
    """Disks of 100 bytes; on all brokers but 1 and the roomy one, other data leaves too little room."""
    return {
        id_: Host(racks(id_), id_ not in dead, {DISK: 100}, other_data=0 if id_ in (1, roomy) else full)
        for id_ in range(1, COUNT + 1)
    }


def only(one):
    """The replicas of the one partition."""
    (replicas,) = one.plan.as_dict().values()
    return replicas


@pytest.mark.parametrize("roomy", ROOMY)
def test_drain(roomy):
    before = cluster(hosts(roomy), {"t-0": ([1], 85)})
    assert only(planned(before, Request(Mode.DRAIN, brokers=(1,)))) == (roomy,)


@pytest.mark.parametrize("roomy", ROOMY)
def test_repair_of_a_dead_brokers_replica(roomy):
    before = cluster(hosts(roomy, dead=(1,), full=60), {"t-0": ([1, 300], 35)})
    assert set(only(planned(before, Request(Mode.REPAIR)))) == {roomy, 300}


@pytest.mark.parametrize("roomy", ROOMY)
def test_replication_factor(roomy):
    before = cluster(hosts(roomy), {"t-0": ([1], 85)})
    request = Request(Mode.REPLICATION_FACTOR, topics=("t",), replication_factor=2)
    assert set(only(planned(before, request))) == {1, roomy}


@pytest.mark.parametrize("mode", [Mode.REPAIR, Mode.BALANCE])
@pytest.mark.parametrize("roomy", [140, 299])
def test_racks_are_spread(mode, roomy):
    crowded = hosts(roomy, racks=lambda id_: "a" if id_ < 3 else "b", full=60)
    replicas = only(planned(cluster(crowded, {"t-0": ([1, 2], 35)}), Request(mode)))
    assert roomy in replicas


@pytest.mark.parametrize("roomy", ROOMY)
def test_light(roomy):
    before = cluster(hosts(roomy), topic("t", [[1], [1]], [50, 40]))
    plan = planned(before, Request(Mode.LIGHT, fill_level=0.85)).plan
    assert set(plan.as_dict().values()) == {(roomy,)}
