"""The worked examples of the planner's design, module by module."""

from __future__ import annotations

from collections import Counter

import numpy as np

from rebalance_lib.planner import Mode, Request
from rebalance_lib.planner.shares import exchange
from tests.planner.clusters import Host, cluster, planned, topic


def lists(before, request):
    return {str(name): replicas for name, replicas in planned(before, request).plan.as_dict().items()}


def test_shares_two_brokers_give_down_to_one_level_and_the_last_takes():
    everyone = np.ones(3, np.bool_)
    wanted = exchange(np.array([130.0, 104.0, 66.0]), np.full(3, 100.0), 0.1, givers=everyone, takers=everyone)
    assert (wanted.give.tolist(), wanted.take.tolist()) == ([29, 3, 0], [0, 0, 33])


def test_moves_a_replica_leaves_a_shared_rack_for_one_without():
    before = cluster({1: "a", 2: "a", 3: "b", 4: "c"}, topic("orders", [[1, 2, 3]], 5))
    assert lists(before, Request(mode=Mode.REPAIR)) == {"orders-0": (1, 4, 3)}


def test_shift_all_hold_6_gb_after_7_moved():
    before = cluster(
        [1, 2, 3],
        {**topic("a", [[1]] * 4, [6, 2, 2, 2]), **topic("b", [[2]] * 2, [4, 1]), **topic("c", [[3]], [1])},
    )
    plan = planned(before, Request(mode=Mode.BALANCE))
    assert before.after(plan.plan).bytes_by_broker() == {1: 6, 2: 6, 3: 6}
    assert plan.figures.bytes_moved == 7


def test_even_a_swap_helps_where_no_move_does():
    before = cluster([1, 2], {**topic("a", [[1]] * 2, [6, 4]), **topic("b", [[2]] * 2, [3, 3])})
    after = before.after(planned(before, Request(mode=Mode.BALANCE)).plan)
    assert sorted(after.bytes_by_broker().values()) == [7, 9]


def test_settle_large_replicas_first_small_ones_level_the_rest():
    before = cluster([1, 2, 3], {**topic("a", [[3]] * 3, [5, 4, 1]), **topic("b", [[1], [2]], [1, 3])})
    request = Request(mode=Mode.DRAIN, brokers=(3,))
    assert lists(before, request) == {"a-0": (1,), "a-1": (2,), "a-2": (1,)}


def test_drain_the_large_one_goes_where_the_least_is():
    before = cluster([1, 2, 3], {**topic("a", [[3], [3]], [5, 1]), **topic("b", [[1], [2]], [4, 6])})
    assert lists(before, Request(mode=Mode.DRAIN, brokers=(3,))) == {"a-0": (1,), "a-1": (2,)}


def test_leaders_a_chain_of_two_changes_where_no_follower_is_free():
    before = cluster([1, 2, 3], topic("orders", [[1, 2], [1, 2], [1, 2], [2, 3]]))
    plan = planned(before, Request(mode=Mode.LEADERS))
    assert before.after(plan.plan).leaders_by_broker() == {1: 2, 2: 1, 3: 1}
    assert plan.figures.leaders_moved == 2


def test_outcome_the_least_is_what_brokers_gain():
    before = cluster(
        [1, 2, 3],
        {**topic("a", [[1]] * 4, [6, 1, 4, 1]), **topic("b", [[2]], [5]), **topic("c", [[3]], [1])},
    )
    figures = planned(before, Request(mode=Mode.BALANCE)).figures
    assert figures.least_bytes == 6
    assert figures.bytes_over_least == figures.bytes_moved / 6


def test_factor_a_replica_leaves_the_rack_that_has_two():
    before = cluster({1: "a", 2: "a", 3: "b"}, topic("orders", [[1, 2, 3]]))
    request = Request(mode=Mode.REPLICATION_FACTOR, topics=("orders",), replication_factor=2)
    assert lists(before, request) == {"orders-0": (1, 3)}


def test_replace_the_new_broker_takes_the_same_places():
    before = cluster([1, 2, 3, 9], topic("orders", [[1, 2], [2, 3]]))
    request = Request(mode=Mode.REPLACE, brokers=(2,), replacements=(9,))
    assert lists(before, request) == {"orders-0": (1, 9), "orders-1": (9, 3)}


def test_disks_6_and_4_where_no_5_can_be_made():
    before = cluster({1: Host(disks={"/d0": None, "/d1": None})}, topic("orders", [[1]] * 3, [6, 3, 1]))
    after = before.after(planned(before, Request(mode=Mode.DISKS)).plan)
    assert after.bytes_by_disk() == {(1, "/d0"): 6, (1, "/d1"): 4}


def test_light_a_tenth_of_a_disk_goes_from_the_fullest_to_the_emptiest():
    disk = Host(disks={"/data": 100})
    full = {**topic("a", [[1]] * 9, 10), **topic("b", [[2]] * 7, 10), **topic("c", [[3]] * 2, 10)}
    before = cluster(dict.fromkeys((1, 2, 3), disk), full)
    after = before.after(planned(before, Request(mode=Mode.LIGHT, fill_level=0.8)).plan)
    assert after.bytes_by_broker() == {1: 80, 2: 70, 3: 30}


def test_relieve_the_largest_that_fit_then_the_smallest_that_is_enough():
    disk = Host(disks={"/data": 10})
    before = cluster({1: Host(disks={"/data": 16}), 2: disk, 3: disk}, topic("a", [[1]] * 3, [6, 4, 3]))
    plan = planned(before, Request(mode=Mode.LIGHT, fill_level=0.5, max_fill=1.0))
    assert before.after(plan.plan).bytes_by_broker() == {1: 6, 2: 4, 3: 3}
    assert plan.figures.bytes_moved == 7


def test_topic_leaders_a_broker_that_leads_nothing_else_leads_two_of_four():
    others = topic("others", [[1], [2]] * 25)
    before = cluster([1, 2, 3], {**topic("orders", [[1], [2], [1], [2]]), **others})
    request = Request(Mode.REPLICATION_FACTOR, topics=("orders",), replication_factor=3)
    after = before.after(planned(before, request).plan)
    led = Counter(held.replicas[0] for name, held in after.partitions.items() if name.topic == "orders")
    assert led == {3: 2, 1: 1, 2: 1}
