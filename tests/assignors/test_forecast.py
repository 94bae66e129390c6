"""Where a cooperative group comes to rest: in the first rebalance in which no member has to give up a partition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rebalance_lib.assignors import Subscription, assign, impact
from rebalance_lib.assignors.effects import Effects
from rebalance_lib.assignors.impact import COOPERATIVE, forecast
from rebalance_lib.assignors.live_group import LiveGroup, Member
from tests.assignors.groups import RACKS, Case, next_generation, random_case
from tests.assignors.test_impact import members, plan, snapshot, told

BROKERS = dict(enumerate(RACKS, start=1))


def foreseen(case):
    """The forecast for a group in front of the partitions and racks that a plan has come to."""
    replicas = {
        topic: [[broker for broker, rack in BROKERS.items() if rack in racks] for racks in lists]
        for topic, lists in case.racks.items()
    }
    members = [Member(name, None, None, one, True, True) for name, one in case.members.items()]
    group = LiveGroup("g", "classic", "Stable", COOPERATIVE, members, [], np.empty(0, np.int64))
    return forecast(COOPERATIVE, group, Effects(snapshot(replicas, racks=BROKERS), plan()))


def rebalanced(case, rounds):
    """What members have when they have rebalanced for as long as any of them had to revoke a partition."""
    members = case.members
    for generation in range(10, 10 + rounds):
        given = assign(COOPERATIVE, case.partitions, members, racks=case.racks, as_clients_do=True)
        revoked = [one for name, member in members.items() for one in member.owned if one not in given[name]]
        if not revoked:
            return given, True
        members = {name: replace(one, owned=given[name], generation=generation) for name, one in members.items()}
    return given, False


SMALL = Case(
    {"t": 5},
    {
        "m0": Subscription(["t"], [("t", 0), ("t", 2)], generation=1, rack="r1"),
        "m1": Subscription(["t"], [("t", 1)], generation=1),
    },
    {"t": [("r2",), ("r2",), ("r2",), ("r2", "r1"), ("r2",)]},
)


def test_a_group_rests_although_one_more_rebalance_would_give_other_partitions():
    """m0 gives up t-2 in the first rebalance, and nobody anything in the second; a third would take t-4 from m0."""
    found, rests = foreseen(SMALL)
    assert rests
    assert found == {"m0": [("t", 0), ("t", 3), ("t", 4)], "m1": [("t", 1), ("t", 2)]}


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_groups_in_racks_rest_when_nobody_revokes(first):
    for seed in range(first, first + 100):
        case = random_case(seed, racks=True)
        had = assign(COOPERATIVE, case.partitions, case.members, racks=case.racks, as_clients_do=True)
        case = next_generation(case, had, seed, 1)
        assert foreseen(case) == rebalanced(case, impact.ROUNDS), seed


def test_a_group_that_does_not_rest_says_so(monkeypatch):
    monkeypatch.setattr(impact, "ROUNDS", 1)
    assert not foreseen(SMALL)[1]
    people = members(("m1", {"orders": [0, 1, 2]}, None), ("m2", {}, None), assignor=COOPERATIVE)
    three = snapshot({"orders": [[1], [2], [3]]})
    assert told(people, Effects(three, plan(orders={3: [1], 4: [1]})))["remark"] is None  # m2 gets what is new
    row = told(people, Effects(three, plan(orders={3: [1]})))  # and here a partition of m1, which gives it up first
    assert row["remark"] == "it does not rest within 1 rebalances: the forecast is what its members have by then"
