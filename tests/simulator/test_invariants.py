"""Each invariant: what violates it, and what is allowed."""

from dataclasses import replace

import pytest

from rebalance_lib.cluster.values import Entries
from simulator import faults, outsiders
from simulator.configs import FOLLOWER_REPLICAS, LEADER_REPLICAS
from simulator.ledger import Change, Ledger, shrinks_below_min_isr
from simulator.shape import BrokerShape
from tests.simulator.small import MB, SMALL, T0, T1, Bench

PLAN = {T0: (4, 5, 6), T1: (1, 2, 4)}


@pytest.fixture
def bench():
    found = Bench()
    found.throttle()
    return found


def test_an_executor_that_does_what_it_should_violates_nothing(bench):
    bench.request("reassign", PLAN)
    bench.wait(60.0)
    assert bench.cluster.state(T0).replicas == (4, 5, 6)
    assert bench.violated == []


# approved


def test_a_target_that_is_not_in_the_plan_is_not_approved(bench):
    bench.request("reassign", {T0: (4, 5, 1)})
    assert "approved" in bench.violated


def test_a_stage_is_approved_only_where_replicas_move_one_at_a_time(bench):
    bench.request("reassign", {T0: (1, 2, 4)})
    assert "approved" in bench.violated
    in_stages = Bench(one_replica_at_a_time=True)
    in_stages.throttle()
    in_stages.request("reassign", {T0: (1, 2, 4)})
    assert in_stages.violated == []


def test_a_topic_that_was_created_again_is_not_approved_once_metadata_shows_it(bench):
    bench.wait(1.0)
    faults.topic_recreated(bench.world, "t", 0.0, same=True)
    bench.wait(30.0)
    bench.throttle()
    bench.request("reassign", PLAN)
    assert "approved" in bench.violated


# foreign reassignments and throttles


def test_a_reassignment_of_somebody_else_is_never_replaced_nor_cancelled(bench):
    bench.cluster.brokers[4].nic = 1.0
    outsiders.foreign_reassignment(bench.world, "t", 1, [1, 2, 4], throttled=False)
    bench.wait(30.0)
    bench.request("reassign", {T1: None})
    assert bench.violated == ["foreign_reassignment"]


def test_one_that_began_while_the_request_was_on_its_way_may_be_replaced(bench):
    bench.cluster.brokers[5].nic = 1.0
    outsiders.foreign_reassignment(bench.world, "t", 1, [1, 2, 5], throttled=False)
    bench.wait(1.0)
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == []


def test_an_entry_of_somebody_else_stays_in_the_list():
    prior = replace(SMALL.prior, lists={"t": {LEADER_REPLICAS: "7:1"}})
    bench = Bench(replace(SMALL, prior=prior))
    bench.request("alter_topic_configs", {"t": {LEADER_REPLICAS: Entries(("0:1",))}})
    assert bench.violated == []
    bench.request("alter_topic_configs", {"t": {LEADER_REPLICAS: None}})
    assert bench.violated == ["foreign_throttle"]


# throttled


def test_a_move_that_begins_without_its_throttle():
    bench = Bench()
    bench.request("reassign", PLAN)
    assert bench.violated == ["throttled"]


def test_a_run_without_a_throttle_promised_none():
    bench = Bench(throttle=None)
    bench.request("reassign", PLAN)
    assert bench.violated == []


def test_a_throttle_that_others_delete_must_be_back_within_two_checks(bench):
    bench.cluster.brokers[4].nic = 1.0
    bench.world.executor_can_act = lambda: True
    bench.request("reassign", {T1: (1, 2, 4)})
    outsiders.foreign_verify(bench.world, ["t"])
    for _ in range(10):
        bench.wait(1.0)
    assert bench.violated == []
    for _ in range(30):
        bench.wait(1.0)
    assert bench.violated == ["throttled"]


def test_a_broker_that_hangs_cannot_be_given_a_rate():
    bench = Bench()
    bench.request("alter_topic_configs", {"t": {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}})
    rates = {f"{side}.replication.throttled.rate": str(10 * MB) for side in ("leader", "follower")}
    bench.request("alter_broker_configs", dict.fromkeys((1, 2, 3), rates))
    bench.cluster.hang_broker(4)
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == []


# caps and disks


def test_more_moves_than_a_cap_allows():
    bench = Bench(moves_in=1)
    bench.throttle()
    bench.request("reassign", {T0: (4, 5, 6)})
    assert bench.violated == []
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == ["caps"]


def test_one_move_that_is_larger_than_the_cap_runs_alone():
    bench = Bench(bytes_in_flight=50 * MB)
    bench.throttle()
    bench.request("reassign", {T0: (4, 5, 6)})
    assert bench.violated == []
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == ["caps"]


def test_small_copies_take_their_part_of_a_slot():
    topic = SMALL.shape.topics[0]
    small = replace(topic, partitions=tuple(replace(one, size=4 * MB) for one in topic.partitions))
    bench = Bench(replace(SMALL, shape=replace(SMALL.shape, topics=(small,))), moves_in=1)
    bench.throttle()
    bench.request("reassign", PLAN)
    assert bench.violated == []


def test_a_cap_that_was_just_lowered_may_not_have_been_read_yet():
    ledger = Ledger(caps={"moves_in": [Change(100.0, 1.0)]})
    assert ledger.largest_cap("moves_in", 3, now=105.0, grace=20.0) == 3
    assert ledger.largest_cap("moves_in", 3, now=130.0, grace=20.0) == 1
    assert ledger.largest_cap("moves_out", None, now=130.0, grace=20.0) == float("inf")


def test_a_move_that_fills_the_disk_beyond_the_reserve():
    tight = replace(
        SMALL.shape, brokers=(*SMALL.shape.brokers[:3], BrokerShape(4, "r", (104 * MB,)), *SMALL.shape.brokers[4:])
    )
    bench = Bench(replace(SMALL, shape=tight), disk_reserve=0.05)
    bench.throttle()
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == ["disk_reserve"]
    without = Bench(replace(SMALL, shape=tight), disk_reserve=0.0)
    without.throttle()
    without.request("reassign", {T1: (1, 2, 4)})
    assert without.violated == []


# min ISR


def test_a_cancel_that_takes_a_partition_below_min_isr(bench):
    # From [1, 2, 3] to [4, 5, 6]: 4 and 5 have caught up, 6 is slow, and then 1 and 2 die.
    bench.cluster.brokers[6].nic = 1.0
    bench.request("reassign", {T0: (4, 5, 6)})
    bench.wait(60.0)
    bench.cluster.kill_broker(1)
    bench.cluster.kill_broker(2)
    bench.wait(20.0)
    assert set(bench.cluster.state(T0).isr) == {3, 4, 5}
    bench.request("reassign", {T0: None})
    assert bench.violated == ["min_isr"]


def test_a_partition_with_fewer_replicas_than_min_isr_counts_by_its_replicas(bench):
    state = bench.cluster.state(T0)
    assert shrinks_below_min_isr(state, replace(state, isr=(1,)), min_isr=2)
    assert not shrinks_below_min_isr(state, replace(state, isr=(1, 2)), min_isr=2)
    alone = replace(state, replicas=(1,), isr=(1,))
    assert not shrinks_below_min_isr(state, alone, min_isr=2)


# one request


def test_a_request_is_made_once(bench):
    bench.request("reassign", {T1: (1, 2, 4)})
    bench.wait(2.0)
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == ["one_request"]


def test_a_request_whose_answer_was_lost_is_not_made_again_while_the_controller_lists_it(bench):
    bench.request("reassign", {T1: (1, 2, 4)}, answered=False)
    bench.wait(2.0)
    bench.request("reassign", {T1: (1, 2, 4)}, process="run#2")
    assert bench.violated == []  # whoever was started since may read what is under way in the same moment
    bench.request("reassign", {T1: (1, 2, 4)}, answered=False, process="run#2")
    assert bench.violated == ["one_request"]


def test_a_request_whose_answer_was_lost_may_be_made_again_when_it_is_done_and_metadata_lags(bench):
    bench.request("reassign", {T1: (1, 2, 4)}, answered=False)
    bench.wait(60.0)
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == []


def test_a_move_that_somebody_cancelled_may_be_requested_again(bench):
    bench.request("reassign", {T1: (1, 2, 4)})
    bench.wait(2.0)
    outsiders.foreign_cancel(bench.world, "t", 1)
    bench.wait(20.0)
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == []


# people


@pytest.mark.parametrize("asked", ["cancelled_at", "paused", "closed", "excluded"])
def test_nothing_begins_against_the_will_of_people(bench, asked):
    ledger = bench.world.ledger
    values = {"cancelled_at": 20.0, "paused": [(20.0, 500.0)], "closed": [(20.0, 500.0)], "excluded": {"t": 20.0}}
    setattr(ledger, asked, values[asked])
    bench.wait(10.0)
    bench.request("reassign", {T0: (4, 5, 6)})
    assert bench.violated == []  # it may not have been read yet
    bench.wait(60.0)
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == ["requests_of_people"]


def test_nothing_begins_when_the_maximum_run_time_is_over(bench):
    bench.world.ledger.max_run_time.append(Change(bench.world.scheduler.now, 30.0))
    bench.request("reassign", {T0: (4, 5, 6)})
    assert bench.violated == []
    bench.wait(70.0)
    bench.request("reassign", {T1: (1, 2, 4)})
    assert bench.violated == ["requests_of_people"]


# lists and elections


def test_entries_of_a_move_that_has_ended_leave_the_lists(bench):
    bench.world.executor_can_act = lambda: True
    bench.request("reassign", PLAN)
    for _ in range(40):
        bench.wait(1.0)
    assert "listed" not in bench.violated
    for _ in range(80):
        bench.wait(1.0)
    assert bench.violated == ["listed"]


def test_leaders_of_a_topic_that_was_created_again_are_not_elected(bench):
    bench.wait(1.0)
    faults.topic_recreated(bench.world, "t", 0.0, same=True, planned=True)
    bench.wait(30.0)
    bench.request("elect_preferred_leaders", {T0: None})
    assert bench.violated == ["approved"]


def test_new_replicas_come_one_at_a_time_where_that_was_asked_for():
    bench = Bench(one_replica_at_a_time=True)
    bench.throttle()
    bench.request("reassign", {T0: (4, 5, 6)})
    assert bench.violated == ["approved"]
