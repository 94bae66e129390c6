from __future__ import annotations

from rebalance_lib.assignors import Subscription, assign


def test_the_example_of_the_module():
    members = {name: Subscription(["t0", "t1"]) for name in ("C0", "C1")}
    assert assign("roundrobin", {"t0": 3, "t1": 3}, members) == {
        "C0": [("t0", 0), ("t0", 2), ("t1", 1)],
        "C1": [("t0", 1), ("t1", 0), ("t1", 2)],
    }


def test_who_does_not_subscribe_is_passed_over():
    members = {
        "C0": Subscription(["t0"]),
        "C1": Subscription(["t0", "t1"]),
        "C2": Subscription(["t0", "t1", "t2"]),
    }
    assert assign("roundrobin", {"t0": 1, "t1": 2, "t2": 3}, members) == {
        "C0": [("t0", 0)],
        "C1": [("t1", 0)],
        "C2": [("t1", 1), ("t2", 0), ("t2", 1), ("t2", 2)],
    }


def test_the_turn_goes_on_from_one_topic_to_the_next():
    members = {name: Subscription(["a", "b"]) for name in ("x", "y", "z")}
    found = assign("roundrobin", {"a": 2, "b": 2}, members)
    assert found == {"x": [("a", 0), ("b", 1)], "y": [("a", 1)], "z": [("b", 0)]}


def test_static_members_keep_their_turn_whatever_their_member_ids():
    first = {"m1": Subscription(["a"], instance="i0"), "m2": Subscription(["a"], instance="i1")}
    again = {"m9": Subscription(["a"], instance="i0"), "m3": Subscription(["a"], instance="i1")}
    before, after = (assign("roundrobin", {"a": 4}, members) for members in (first, again))
    assert list(before.values()) == list(after.values())
