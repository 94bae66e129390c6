"""Leaders are kept in chosen racks as far as partitions have a replica in sync there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import Mode, Request
from rebalance_lib.topology import TopicPartition
from tests.planner.clusters import cluster, odd_clusters, planned, topic
from tests.planner.examples import EXAMPLES
from tests.planner.rules import broken
from tests.planner.test_idempotence import carried_out_for_good, options_for

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
ORDERS = topic("orders", [[3, 1, 2], [6, 4, 5], [2, 4, 3], [5, 3, 4], [1, 2, 3], [6, 5, 1]] * 4, 5)
LEADERS_IN_A = Request(Mode.LEADERS, leader_racks=("a",))


def test_leaders_are_shared_by_the_brokers_of_the_racks_and_nothing_is_copied():
    plan = planned(cluster(RACKS, ORDERS), LEADERS_IN_A)
    after = cluster(RACKS, ORDERS).after(plan.plan)
    assert after.leaders_by_broker() == {1: 12, 4: 12}
    assert plan.figures.bytes_moved == 0
    assert plan.figures.leaders_after.most == 1.0
    leaders = next(one for one in plan.outcome.verdicts(LEADERS_IN_A) if one.goal == "leaders")
    assert (leaders.after, leaders.met) == (1.0, True)


def test_balance_keeps_leaders_there_too():
    before = cluster(RACKS, ORDERS)
    after = before.after(planned(before, Request(Mode.BALANCE, leader_racks=("a", "b"))).plan)
    assert set(after.leaders_by_broker()) == {1, 2, 4, 5}
    assert set(after.leaders_by_broker().values()) == {6}
    assert set(after.replicas_by_broker().values()) == {12}


def test_a_partition_without_a_replica_in_sync_there_is_led_as_it_is():
    before = cluster(RACKS, topic("orders", [[2, 3], [2, 1]]))
    lagging = before.partitions[TopicPartition("orders", 1)]
    before = replace(
        before, partitions={**before.partitions, TopicPartition("orders", 1): replace(lagging, lagging=(1,))}
    )
    assert planned(before, LEADERS_IN_A).plan.as_dict() == {}


@pytest.mark.parametrize(
    ("racks", "request_", "message"),
    [
        (
            RACKS,
            Request(Mode.LEADERS, leader_racks=("a", "d")),
            "leader rack 'd' is not there: the cluster has a, b, c",
        ),
        ({1: "a", 2: None}, LEADERS_IN_A, "some live brokers have none, so racks do not count"),
    ],
)
def test_racks_that_are_not_there_are_refused(racks, request_, message):
    with pytest.raises(InvalidInputError) as caught:
        planned(cluster(racks, topic("orders", [[1, 2]])), request_)
    assert message in str(caught.value)


def test_modes_that_set_no_leaders_have_no_use_for_it():
    with pytest.raises(InvalidInputError, match="mode disks has no use for leader_racks, only balance, expand"):
        Request.from_dict({"mode": "disks", "leader_racks": ["a"]})
    with pytest.raises(InvalidInputError, match="leader_racks of a request is 'a': give a list of racks"):
        Request.from_dict({"mode": "balance", "leader_racks": "a"})


MODES = [Mode.BALANCE, Mode.LEADERS, Mode.DRAIN, Mode.REPAIR, Mode.TOPICS, Mode.DEMOTE]


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=EXAMPLES)
@given(before=odd_clusters(sizes=st.integers(0, 30), alike=True))
def test_new_leaders_are_there_where_they_can_be_and_planning_again_finds_nothing(mode, before):
    live = sorted({before.hosts[id_].rack for id_ in before.live if before.rack(id_) is not None})
    assume(live)
    request = Request(mode=mode, leader_racks=(live[0],), **options_for(mode, before))
    found = carried_out_for_good(before, request)
    if found is None:
        return
    first, after = found
    assert broken(before, first.plan, request) == []
    given_up = set(request.brokers)
    for name, held in after.partitions.items():
        old = before.partitions[name].replicas[0]
        could = [
            id_ for id_ in held.replicas if id_ in before.live and before.rack(id_) == live[0] and id_ not in given_up
        ]
        if could and held.replicas[0] != old:
            assert held.replicas[0] in could
