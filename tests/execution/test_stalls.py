"""Why a move stalls: the first reason that is true of it, named so that somebody can act."""

from __future__ import annotations

import re

import pytest

from rebalance_lib.cluster import HeldReplica, LogDir, PartitionMetadata, Reassignment
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.progress import Copy, Sizes
from rebalance_lib.execution.stalls import Cause, Evidence, StallWatch, copying, diagnose, needed_rates
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
    looks = [(50, 100), (60, 111), (70, 122)]  # copied, whole: it lacks 50, 51, 52
    stalled = [watch.observe([Copy(TP, 3, *look)], at) for at, look in enumerate(looks)]
    assert [bool(found) for found in stalled] == [False, False, True]
    assert watch.write_rates == {TP: 11.0}


def test_one_that_comes_nearer_now_and_then_has_not_stalled():
    watch = StallWatch(checks=3)
    looks = [50, 50, 51, 51, 52]
    assert not any(watch.observe([Copy(TP, 3, copied, 100)], at) for at, copied in enumerate(looks))


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
