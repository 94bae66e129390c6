"""``drain-log-dirs`` empties disks onto the other disks of the same broker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from tests.planner.clusters import GB, Host, cluster, odd_clusters, planned, topic
from tests.planner.rules import broken

THREE = Host(disks={"/a": None, "/b": None, "/c": None})


def drain(*log_dirs, **options):
    return Request(Mode.DRAIN_LOG_DIRS, log_dirs=log_dirs, **options)


def test_the_example():
    before = cluster({1: THREE}, topic("orders", [[1]] * 4, [4, 4, 2, 2]))
    after = before.after(planned(before, drain("1:/a")).plan)
    assert after.bytes_by_disk() == {(1, "/b"): 6, (1, "/c"): 6}


def test_only_what_is_on_the_drained_log_dirs_moves_and_stays_on_its_broker():
    before = cluster({1: THREE, 2: THREE}, topic("orders", [[1, 2]] * 10, GB))
    one = planned(before, drain("1:/a"))
    after = before.after(one.plan)
    assert after.assignment() == before.assignment()
    assert (one.figures.log_dir_moves, one.figures.log_dir_bytes, one.figures.bytes_moved) == (10, 10 * GB, 0)
    assert after.bytes_by_disk() == {(1, "/b"): 5 * GB, (1, "/c"): 5 * GB, (2, "/a"): 10 * GB}
    assert len(planned(after, drain("1:/a")).plan) == 0


def test_several_log_dirs_of_several_brokers():
    before = cluster({1: THREE, 2: THREE}, topic("orders", [[1, 2]] * 4, GB))
    after = before.after(planned(before, drain("1:/a", "1:/b", "2:/a")).plan)
    assert after.bytes_by_disk() == {(1, "/c"): 4 * GB, (2, "/b"): 2 * GB, (2, "/c"): 2 * GB}


def test_shares_of_those_that_stay_follow_their_capacity():
    host = Host(disks={"/a": 100 * GB, "/b": 300 * GB, "/c": 100 * GB})
    before = cluster({1: host}, topic("orders", [[1]] * 40, GB))
    held = before.after(planned(before, drain("1:/a")).plan).bytes_by_disk()
    assert (held[1, "/a"], held[1, "/b"], held[1, "/c"]) == (0, 30 * GB, 10 * GB)


def test_internal_topics_move_too_and_excluded_ones_are_remarked():
    topics = {**topic("__consumer_offsets", [[1]]), **topic("orders", [[1]])}
    before = cluster({1: THREE}, topics, internal=["__consumer_offsets"])
    assert len(planned(before, drain("1:/a")).plan) == 2
    request = drain("1:/a", excluded_topics=("orders",))
    assert len(planned(before, request).plan) == 1
    (remark,) = Scope.of(ClusterModel.of(before.snapshot()), request).remarks
    assert remark == "Log dir /a of broker 1 keeps 1 replicas that may not move: it will not be empty."


FULL = Host(disks={"/a": 100, "/b": 40, "/c": 10})
ONE = Host(disks={"/a": 100})


@pytest.mark.parametrize(
    ("host", "request_", "words"),
    [
        (FULL, drain("1:/a"), r"log dirs 1:/a cannot be drained: no other log dir of broker 1 .* with its 30 bytes"),
        (ONE, drain("1:/a"), "broker 1 has no other log dir that may take its replicas"),
        (THREE, drain("1:/a", "1:/b", "1:/c"), "broker 1 has no other log dir that may take its replicas"),
        (replace(THREE, cordoned=("/b", "/c")), drain("1:/a"), "broker 1 has no other log dir that may take"),
        (THREE, drain("1:/x"), "log dir '1:/x' is not there: broker 1 has /a, /b, /c"),
        (THREE, drain("9:/a"), "log dir '9:/a': the cluster has no broker 9"),
        (replace(THREE, alive=False), drain("1:/a"), "log dir '1:/a': broker 1 is down"),
        (THREE, drain("1:/a", excluded_brokers=(1,)), "log dir '1:/a': broker 1 is excluded"),
        (THREE, drain("1:/a", byte_budget=59), "60 bytes must move, but the byte budget is 59"),
        (THREE, drain("1:/a", move_budget=1), "2 replicas must move, but the move budget is 1"),
    ],
)
def test_what_cannot_be_drained_is_refused(host, request_, words):
    before = cluster({1: host, 2: THREE}, topic("orders", [[1], [1]], 30))
    with pytest.raises(InvalidInputError, match=words):
        planned(before, request_)


@given(odd_clusters())
def test_of_any_cluster_the_log_dir_is_empty_or_there_is_a_reason(before):
    broker = next((id_ for id_ in before.live if len(before.hosts[id_].disks) > 1), None)
    if broker is None:
        return
    path = next(iter(before.hosts[broker].disks))
    request = drain(f"{broker}:{path}")
    try:
        plan = planned(before, request).plan
    except InvalidInputError:
        return
    assert broken(before, plan, request) == []
    after = before.after(plan)
    assert after.assignment() == before.assignment()
    dead = {name for name, held in before.partitions.items() if not set(held.replicas) <= set(before.live)}
    for name, held in after.partitions.items():
        if name not in dead and broker in held.replicas:
            assert held.log_dirs[held.replicas.index(broker)] != path
