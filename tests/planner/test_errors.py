"""An ask that cannot be met is refused in words that say which and why, and there is no plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import Mode, Request
from rebalance_lib.topology import TopicPartition
from tests.planner.clusters import DISK, Host, cluster, planned, topic

THREE = cluster({1: "a", 2: "b", 3: "c"}, topic("orders", [[1, 2], [2, 3], [3, 1]], 10))
FULL = cluster({id_: Host(disks={"/data": 100}) for id_ in (1, 2, 3)}, topic("orders", [[1], [2], [3]], 60))


@pytest.mark.parametrize(
    ("before", "options", "words"),
    [
        (THREE, {"mode": Mode.DRAIN, "brokers": (9,)}, ["unknown brokers [9]", "1, 2, 3"]),
        (THREE, {"mode": Mode.DRAIN, "brokers": (2, 3)}, ["cannot be drained", "2 replicas", "only 1 brokers"]),
        (THREE, {"mode": Mode.DRAIN, "brokers": (1, 2, 3)}, ["cannot be drained", "no broker is left"]),
        (THREE, {"mode": Mode.DRAIN}, ["needs brokers"]),
        (THREE, {"mode": Mode.DRAIN, "brokers": (3,), "byte_budget": 5}, ["20 bytes", "byte budget is 5"]),
        (THREE, {"mode": Mode.DRAIN, "brokers": (3,), "move_budget": 1}, ["2 replicas", "move budget is 1"]),
        (THREE, {"mode": Mode.DRAIN, "brokers": (3,), "excluded_brokers": (3,)}, ["[3]", "excluded"]),
        (
            FULL,
            {"mode": Mode.DRAIN, "brokers": (3,)},
            ["no broker has disk space", "orders-2", "60 bytes", "max fill 0.9"],
        ),
        (
            FULL,
            {"mode": Mode.LIGHT, "fill_level": 0.5},
            ["level of 0.5 cannot be reached", "broker 1 by 10 bytes, broker 2 by 10 bytes, broker 3 by 10 bytes"],
        ),
        (FULL, {"mode": Mode.LIGHT, "fill_level": 0.5, "byte_budget": 1000}, ["level of 0.5 cannot be reached"]),
        (
            cluster([1, 2, 3], {"orders-0": ([1], 1), "orders-2": ([2], 1)}),
            {"mode": Mode.PARTITIONS, "topics": ("orders",), "partitions": 6},
            ["orders has no partition 1", "take a new snapshot"],
        ),
        (
            THREE,
            {"mode": Mode.KAFKA, "topics": ("orders",), "allowed_brokers": (1,)},
            ["topics cannot be striped", "topic orders has 2 replicas", "only 1 brokers", "allow more"],
        ),
        (THREE, {"mode": Mode.TOPICS, "topics": ("payments",)}, ["no topic is called 'payments'"]),
        (THREE, {"mode": Mode.TOPICS}, ["needs topics"]),
        (THREE, {"mode": Mode.EXPAND}, ["no new broker"]),
        (
            THREE,
            {"mode": Mode.REPLICATION_FACTOR, "topics": ("orders",), "replication_factor": 4},
            ["factor of 4", "only 3 brokers"],
        ),
        (
            THREE,
            {"mode": Mode.REPLICATION_FACTOR, "topics": ("orders",), "replication_factor": 1, "excluded_brokers": (2,)},
            ["orders-0", "excluded brokers"],
        ),
        (
            THREE,
            {"mode": Mode.PARTITIONS, "topics": ("orders",), "partitions": 2},
            ["has 3 partitions", "only be added"],
        ),
        (THREE, {"mode": Mode.REPLACE, "brokers": (1,), "replacements": (2,)}, ["broker 2", "orders-0 already"]),
        (THREE, {"mode": Mode.REPLACE, "brokers": (1,)}, ["one replacement for each"]),
        (THREE, {"mode": Mode.REPLACE, "brokers": (1, 2), "replacements": (2, 1)}, ["replaced and to replace"]),
        (THREE, {"mode": Mode.DISKS}, ["no broker has more than one log dir"]),
        (THREE, {"mode": Mode.LIGHT}, ["needs a fill level"]),
        (THREE, {"mode": Mode.LIGHT, "fill_level": 0.8}, ["how large disks are", "[1, 2, 3]"]),
        (THREE, {"mode": Mode.KAFKA, "move_budget": 0, "seed": 1}, ["cannot be striped", "the budget is 0"]),
        (THREE, {"mode": Mode.KAFKA, "excluded_brokers": (2,)}, ["orders-0", "excluded broker 2"]),
        (THREE, {"mode": Mode.BALANCE, "tolerance": 1.5}, ["tolerance is 1.5"]),
        (THREE, {"mode": Mode.BALANCE, "byte_budget": -1}, ["byte budget is -1"]),
    ],
)
def test_what_cannot_be_done_is_said(before, options, words):
    with pytest.raises(InvalidInputError) as refused:
        planned(before, Request(**options))
    for word in words:
        assert word in str(refused.value)


def refused(before, **options):
    with pytest.raises(InvalidInputError) as error:
        planned(before, Request(**options))
    return str(error.value)


def test_a_replacement_in_a_rack_that_has_a_replica_already_is_refused():
    before = cluster({1: "a", 2: "b", 3: "a"}, topic("orders", [[1, 2]]))
    assert "fewer racks" in refused(before, mode=Mode.REPLACE, brokers=(2,), replacements=(3,))


def test_a_replacement_that_fills_a_rack_further_is_refused():
    before = cluster({1: "a", 2: "a", 3: "b", 4: "b", 5: "a"}, topic("orders", [[1, 2, 3, 4]]))
    assert "more replicas in one" in refused(before, mode=Mode.REPLACE, brokers=(3,), replacements=(5,))


def test_a_drain_for_which_disk_space_lacks_in_a_rack_names_the_disk_space():
    hosts = {1: Host("a"), 2: Host("a"), 3: Host("b"), 4: Host("b", disks={DISK: 10})}
    before = cluster(hosts, topic("orders", [[1, 3]], 100))
    said = refused(before, mode=Mode.DRAIN, brokers=(3,))
    assert "no broker in the racks where it is missing has disk space for orders-0 with its 100 bytes" in said
    assert "fewer racks" in refused(before, mode=Mode.DRAIN, brokers=(3,), allowed_brokers=(1, 2))


def test_racks_are_named_where_disk_space_is_not_what_lacks():
    before = cluster({1: "a", 2: "a", 3: Host("b", disks={DISK: 1000})}, topic("orders", [[1, 2, 3]], 10))
    options = {"mode": Mode.REPLICATION_FACTOR, "topics": ("orders",), "replication_factor": 2}
    said = refused(before, **options, excluded_brokers=(2,))  # 1 leads and 2 is excluded: it is 3 that would go
    assert "orders-0 would be in fewer racks than now" in said
    assert "disk space" not in said


def test_a_replacement_that_is_not_allowed_is_refused():
    before = cluster([1, 2, 3, 4], topic("orders", [[1, 2]]))
    options = {"mode": Mode.REPLACE, "brokers": (2,), "replacements": (3,)}
    assert "[3]" in refused(before, **options, allowed_brokers=(4,))
    assert "[3]" in refused(before, **options, excluded_brokers=(3,))


def test_a_dead_broker_takes_nothing():
    before = cluster({1: None, 2: None, 3: Host(alive=False)}, topic("orders", [[1], [2]]))
    assert "brokers [3] are down" in refused(before, mode=Mode.EXPAND, brokers=(3,))


def test_a_partition_that_is_being_reassigned_is_named():
    moving = {TopicPartition("orders", 0): replace(THREE.partitions[TopicPartition("orders", 0)], adding=(3,))}
    before = replace(THREE, partitions={**THREE.partitions, **moving})
    assert "orders-0 are being reassigned now" in refused(before, mode=Mode.BALANCE)


def test_a_repair_beyond_the_budget_is_refused():
    before = cluster({1: "a", 2: "a", 3: "b"}, topic("orders", [[1, 2]], 10))
    assert "beyond the budget" in refused(before, mode=Mode.REPAIR, byte_budget=9)
