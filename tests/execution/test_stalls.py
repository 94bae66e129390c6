"""Why a move stalls: the first reason that is true of it, named so that somebody can act."""

from __future__ import annotations

import re

import pytest

from rebalance_lib.cluster import HeldReplica, LogDir, PartitionMetadata, Reassignment
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.progress import Copy, Sizes
from rebalance_lib.execution.stalls import (
    QUOTA_WINDOW_SECONDS,
    Cause,
    Evidence,
    StallWatch,
    allowed_rests,
    copying,
    diagnose,
    late_replicas,
    needed_rates,
)
from rebalance_lib.topology import TopicPartition

TP = TopicPartition("foo", 0)
COPY = Copy(TP, 3, 10, 100)
NOTHING = Sizes({}, {}, frozenset())


def status(leader=1, in_sync=(1, 2), replicas=(1, 2, 3), adding=(3,), removing=(1,)):
    live = PartitionMetadata(replicas, frozenset(in_sync), leader, internal=False)
    return PlanStatus({TP: Status.MOVING}, {TP: live}, {TP: Reassignment(replicas, adding, removing)})


def log_dir(usable, *, online=True):
    return LogDir("/data", online, 10**12, usable, [HeldReplica(TP, 10, future=False)] if online else [])


@pytest.mark.parametrize(
    ("evidence", "cause", "words"),
    [
        (Evidence(status(), NOTHING, {1, 2}, None, {}), Cause.BROKER_DOWN, "broker 3, which is to receive it, is down"),
        (Evidence(status(leader=None), NOTHING, {2, 3}, None, {}), Cause.BROKER_DOWN, r"no leader, brokers \[1\] are"),
        (
            Evidence(status(), Sizes({}, {}, frozenset({1})), {1, 2, 3}, None, {}),
            Cause.NOT_ANSWERING,
            "broker 1, which sends it, does not answer",
        ),
        (
            Evidence(status(), Sizes({}, {3: [log_dir(5)]}, frozenset()), {1, 2, 3}, None, {}),
            Cause.DISK,
            "log dir /data of broker 3 has 5 bytes left, the copy lacks 90",
        ),
        (Evidence(status(), NOTHING, {1, 2, 3}, 100, {3: 120.0}), Cause.THROTTLE, "120 bytes/s are written"),
        (
            Evidence(status(in_sync=(1, 3)), NOTHING, {1, 2, 3}, None, {}),
            Cause.OUT_OF_SYNC,
            r"replicas on brokers \[2\], which do not move, are not in sync",
        ),
        (Evidence(status(), NOTHING, {1, 2, 3}, 1000, {3: 120.0}), Cause.UNKNOWN, "look at broker 3, and at 1"),
    ],
)
def test_the_first_reason_that_is_true_is_named(evidence, cause, words):
    [stall] = diagnose([COPY], evidence)
    assert stall.cause is cause
    assert re.search(words, stall.words)


def test_a_failed_log_dir_is_named_while_nothing_has_come():
    evidence = Evidence(status(), Sizes({}, {3: [log_dir(None, online=False)]}, frozenset()), {1, 2, 3}, None, {})
    [stall] = diagnose([Copy(TP, 3, 0, 100)], evidence)
    assert (stall.cause, "/data" in stall.words) == (Cause.DISK, True)


def test_growing_is_not_advancing():
    watch = StallWatch(checks=3)
    checks = [(50, 100), (60, 111), (70, 122)]  # copied, whole: it lacks 50, 51, 52
    stalled = [watch.observe([Copy(TP, 3, *sizes)], at) for at, sizes in enumerate(checks)]
    assert [bool(found) for found in stalled] == [False, False, True]
    assert watch.write_rates == {TP: 11.0}


def test_one_that_comes_nearer_now_and_then_has_not_stalled():
    watch = StallWatch(checks=3)
    checks = [50, 50, 51, 51, 52]
    assert not any(watch.observe([Copy(TP, 3, copied, 100)], at) for at, copied in enumerate(checks))


def test_the_least_that_a_partition_lacked_counts_all_its_copies():
    watch = StallWatch(checks=3)
    for at, (third, fourth) in enumerate([(10, 20), (30, 15), (25, 40)]):
        watch.observe([Copy(TP, 3, third, 100), Copy(TP, 4, fourth, 100)], at)
    assert watch.least(TP) == 70 + 60
    assert watch.least(TopicPartition("bar", 0)) == 0


def test_only_copies_that_a_move_waits_for_can_stall():
    ahead, behind, later = Copy(TP, 3, 100, 100), Copy(TP, 4, 10, 100), Copy(TP, 5, 0, 100)
    moving = status(replicas=(1, 2, 3, 4), adding=(3, 4), in_sync=(1, 2, 3))
    assert copying([ahead, behind, later], moving) == [behind]  # 3 is in sync, 5 is of a later stage
    blocked = status(replicas=(1, 2, 3, 4), adding=(3, 4), in_sync=(1, 3, 4))
    assert copying([ahead, behind], blocked) == [ahead, behind]
    ended = PlanStatus(moving.by_partition, moving.live, {})
    assert copying([ahead, behind], ended) == []


def test_what_is_written_counts_for_the_receiver_and_once_per_copy_for_the_sender():
    copies = [Copy(TP, 3, 0, 1), Copy(TP, 4, 0, 1)]
    assert needed_rates(copies, status(), {TP: 7.0}) == {1: 14.0, 3: 7.0, 4: 7.0}


def ten_copies():
    """Ten copies to broker 3, each from the same leader."""
    tps = [TopicPartition("foo", number) for number in range(10)]
    moving = status()
    live, reassignments = (dict.fromkeys(tps, one[TP]) for one in (moving.live, moving.reassignments))
    return [Copy(tp, 3, 0, 5_000_000) for tp in tps], PlanStatus(dict.fromkeys(tps, Status.MOVING), live, reassignments)


def test_a_throttled_copy_may_rest_while_those_that_share_its_throttle_pay_back():
    rests = allowed_rests(*ten_copies(), 1_000_000)
    assert {round(seconds) for seconds in rests.values()} == {32}  # ten megabytes at 1 MB/s, and the quota's window
    assert rests.keys() == {(TopicPartition("foo", number), 3) for number in range(10)}
    [alone] = allowed_rests([COPY], status(), 10_000_000).values()
    assert alone == pytest.approx(1.5 * (0.1 + QUOTA_WINDOW_SECONDS), rel=0.01)


def test_copies_that_share_a_sender_count_together_though_each_has_its_own_receiver():
    [copy, *_], moving = ten_copies()
    apart = [copy._replace(partition=TopicPartition("foo", number), broker=10 + number) for number in range(10)]
    assert {round(seconds) for seconds in allowed_rests(apart, moving, 1_000_000).values()} == {32}


def test_without_a_throttle_nothing_may_rest():
    assert allowed_rests(*ten_copies(), None) == {}


def test_a_copy_that_rests_within_what_its_throttle_allows_has_not_stalled():
    watch, allowed = StallWatch(checks=3), {(TP, 3): 32.0}
    stalled = [bool(watch.observe([COPY], at, allowed)) for at in (0, 3, 6, 9, 30, 33, 36)]
    assert stalled == [False, False, False, False, False, True, True]


def test_a_copy_that_advances_in_time_begins_to_count_anew():
    watch, allowed = StallWatch(checks=3), {(TP, 3): 32.0}
    for at, copied in ((0, 10), (30, 10), (31, 11), (34, 11), (60, 11)):
        assert not watch.observe([COPY._replace(copied=copied)], at, allowed)
    assert watch.observe([COPY._replace(copied=11)], 64, allowed)


def arrived(in_sync):
    """``foo-0`` at its target, its reassignment gone."""
    live = PartitionMetadata((1, 2, 3), frozenset(in_sync), 1, internal=False)
    return PlanStatus({TP: Status.MOVING}, {TP: live}, {})


def test_a_replica_that_died_after_its_copy_had_arrived_is_named():
    [stall] = late_replicas(arrived({1, 2}), alive={1, 2})
    assert (stall.broker, stall.cause) == (3, Cause.BROKER_DOWN)
    assert stall.words == "it is at its target, but broker 3 is down: start it"


def test_a_replica_at_its_target_that_lags_is_named():
    [stall] = late_replicas(arrived({1, 2}), alive={1, 2, 3})
    assert (stall.broker, stall.cause) == (3, Cause.OUT_OF_SYNC)


def test_what_is_in_sync_or_still_under_way_is_not_late():
    assert late_replicas(arrived({1, 2, 3}), alive={1, 2, 3}) == []
    assert late_replicas(status(), alive={1, 2}) == []
