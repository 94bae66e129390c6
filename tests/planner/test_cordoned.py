"""Brokers and log dirs that are cordoned are given no replicas, whatever the mode."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from tests.planner.clusters import DISK, Host, cluster, planned, topic

CORDONED, OPEN = Host(cordoned=(DISK,)), Host(cordoned=())
REQUESTS = [
    Request(Mode.BALANCE),
    Request(Mode.EXPAND),
    Request(Mode.DRAIN, brokers=(1,)),
    Request(Mode.REPAIR, replication_factor=3),
    Request(Mode.REPLICATION_FACTOR, topics=("orders",), replication_factor=3),
    Request(Mode.PARTITIONS, topics=("orders",), partitions=20),
    Request(Mode.KAFKA),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: str(request.mode))
def test_a_cordoned_broker_is_given_nothing(request_):
    hosts = {1: OPEN, 2: OPEN, 3: OPEN, 4: CORDONED, 5: OPEN}
    before = cluster(hosts, topic("orders", [[1, 2], [2, 1], [1, 3]] * 4, 10))
    after = before.after(planned(before, request_).plan)
    assert after.replicas_by_broker()[4] == 0
    assert after.assignment() != before.assignment()


def test_a_cordoned_broker_keeps_what_it_has_and_may_give():
    before = cluster({1: CORDONED, 2: OPEN}, topic("orders", [[1]] * 8, 10))
    after = before.after(planned(before, Request(Mode.BALANCE)).plan)
    assert after.bytes_by_broker() == {1: 40, 2: 40}
    assert len(planned(after, Request(Mode.BALANCE)).plan) == 0


TWO_DISKS = Host(disks={"/a": None, "/b": None}, cordoned=("/a",))


def test_replicas_go_to_the_log_dirs_that_are_not_cordoned():
    before = cluster({1: OPEN, 2: TWO_DISKS}, topic("orders", [[1]] * 8, 10))
    after = before.after(planned(before, Request(Mode.BALANCE)).plan)
    assert after.bytes_by_disk() == {(1, DISK): 40, (2, "/b"): 40}


def test_a_cordoned_log_dir_has_no_disk_space_however_empty_it_is():
    hosts = {1: Host(disks={"/a": 1000, "/b": 100}, cordoned=("/a",)), 2: Host(disks={DISK: 1000}, cordoned=())}
    before = cluster(hosts, topic("orders", [[2]] * 4, 50))
    with pytest.raises(InvalidInputError, match=r"orders-1 with its 50 bytes: the emptiest .* may take 40 more"):
        planned(before, Request(Mode.DRAIN, brokers=(2,)))


def test_disks_gives_nothing_to_a_cordoned_log_dir():
    host = Host(disks={"/a": None, "/b": None, "/c": None}, cordoned=("/b",))
    before = cluster({1: host}, topic("orders", [[1]] * 40, 10))
    after = before.after(planned(before, Request(Mode.DISKS)).plan)
    assert after.bytes_by_disk().keys() == {(1, "/a"), (1, "/c")}
    assert len(planned(after, Request(Mode.DISKS)).plan) == 0


@pytest.mark.parametrize(
    "request_",
    [Request(Mode.EXPAND, brokers=(2,)), Request(Mode.REPLACE, brokers=(1,), replacements=(2,))],
    ids=lambda request: str(request.mode),
)
def test_a_cordoned_broker_that_is_named_to_be_filled_is_refused(request_):
    before = cluster({1: OPEN, 2: CORDONED}, topic("orders", [[1]]))
    with pytest.raises(InvalidInputError, match=r"brokers \[2\] are cordoned"):
        planned(before, request_)


@pytest.mark.parametrize(
    ("host", "said"),
    [(OPEN, True), (CORDONED, False), (Host(), False), (replace(OPEN, alive=False), False)],
    ids=["open", "cordoned", "too old to say", "dead"],
)
def test_a_drain_says_how_to_cordon_brokers_that_could_be(host, said):
    before = cluster({1: host, 2: OPEN}, topic("orders", [[1]]))
    remarks = Scope.of(ClusterModel.of(before.snapshot()), Request(Mode.DRAIN, brokers=(1,))).remarks
    assert [("cordoned.log.dirs" in one and "--entity-name 1" in one) for one in remarks] == [True] * said
