"""How even the log dirs of a broker are is a goal that a plan reports, and that mode disks pursues."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalance_lib.planner import Mode, Request
from tests.planner.clusters import GB, Host, cluster, planned, topic


def verdict(before, request):
    plan = planned(before, request)
    return next((one for one in plan.outcome.verdicts(request) if one.goal == "log_dirs"), None)


TWO = Host(disks={"/a": None, "/b": None})


def uneven(host=TWO):
    """Broker 1 has 6 GB and 2 GB of replicas on its two log dirs."""
    before = cluster({1: host, 2: None}, topic("orders", [[1]] * 4 + [[2]] * 4, 2 * GB))
    moved = list(before.partitions.items())
    moved[3] = moved[3][0], replace(moved[3][1], log_dirs=("/b",))
    return replace(before, partitions=dict(moved))


def test_the_example():
    found = verdict(uneven(), Request(Mode.BALANCE))
    assert (found.before, found.after, found.limit, found.met) == (1.5, 1.5, 1.1, False)
    assert found.why.startswith("/a of broker 1 has the most for its share: mode disks evens out log dirs")
    assert not found.hard


def test_mode_disks_reaches_it():
    sizes = [3 * GB, GB, *[GB // 100] * 200]
    before = cluster({1: TWO}, topic("orders", [[1]] * len(sizes), sizes))
    found = verdict(before, Request(Mode.DISKS))
    assert (found.before, found.limit, found.met) == (2.0, 1.01, True)
    assert found.after <= 1.01
    wide = planned(uneven(), Request(Mode.DISKS, goals=("log_dirs=0.5",)))
    assert len(wide.plan) == 0, "within the tolerance of the goal nothing moves"


def test_shares_are_by_capacity():
    assert verdict(uneven(Host(disks={"/a": 300 * GB, "/b": 100 * GB})), Request(Mode.LEADERS)).after == pytest.approx(
        1.0
    )
    assert verdict(uneven(Host(disks={"/a": 300 * GB, "/b": None})), Request(Mode.LEADERS)).after == 1.5


def test_it_says_nothing_where_brokers_have_one_log_dir():
    assert verdict(cluster([1, 2], topic("orders", [[1], [2]])), Request(Mode.BALANCE)) is None


def test_what_arrives_goes_to_the_log_dir_with_the_most_free_space():
    disks = {"/a": 100 * GB, "/b": 100 * GB}
    before = cluster({1: Host(disks={"/a": 200 * GB}), 2: Host(disks=disks)}, topic("orders", [[1]] * 8, 5 * GB))
    after = before.after(planned(before, Request(Mode.BALANCE)).plan)
    assert {key: size for key, size in after.bytes_by_disk().items() if key[0] == 2} == {
        (2, "/a"): 10 * GB,
        (2, "/b"): 10 * GB,
    }
