from __future__ import annotations

from rebalance_lib.assignors import Subscription, assign


def numbers(assignment, topic):
    return {member: [n for t, n in owned if t == topic] for member, owned in assignment.items()}


def test_five_partitions_over_three_consumers():
    members = {f"consumer_{n}": Subscription(["topic_a"]) for n in range(3)}
    found = numbers(assign("range", {"topic_a": 5}, members), "topic_a")
    assert found == {"consumer_0": [0, 1], "consumer_1": [2, 3], "consumer_2": [4]}


def test_each_topic_is_cut_for_itself_so_the_first_get_one_more_of_each():
    members = {f"consumer_{n}": Subscription(["a", "b"]) for n in range(3)}
    found = assign("range", {"a": 5, "b": 5}, members)
    assert [len(owned) for owned in found.values()] == [4, 4, 2]
    assert numbers(found, "a") == numbers(found, "b")


def test_only_subscribers_of_a_topic_share_it():
    members = {"c0": Subscription(["a"]), "c1": Subscription(["a", "b"]), "c2": Subscription(["b"])}
    found = assign("range", {"a": 3, "b": 2}, members)
    assert found == {"c0": [("a", 0), ("a", 1)], "c1": [("a", 2), ("b", 0)], "c2": [("b", 1)]}


def test_more_members_than_partitions_leave_the_last_idle():
    members = {f"c{n}": Subscription(["a"]) for n in range(4)}
    assert numbers(assign("range", {"a": 2}, members), "a") == {"c0": [0], "c1": [1], "c2": [], "c3": []}


def test_static_members_come_first_in_the_order_of_their_instance_ids():
    members = {
        "a": Subscription(["t"]),
        "b": Subscription(["t"], instance="second"),
        "c": Subscription(["t"], instance="first"),
    }
    assert numbers(assign("range", {"t": 3}, members), "t") == {"a": [2], "b": [1], "c": [0]}


def test_the_example_with_racks():
    members = {"C0": Subscription(["t"], rack="a"), "C1": Subscription(["t"], rack="b")}
    found = assign("range", {"t": 4}, members, racks={"t": [["b"], ["b"], ["a"], ["a"]]})
    assert numbers(found, "t") == {"C0": [2, 3], "C1": [0, 1]}


def test_racks_make_no_difference_where_every_partition_is_in_all_of_them():
    members = {"C0": Subscription(["t"], rack="b"), "C1": Subscription(["t"], rack="a")}
    found = assign("range", {"t": 4}, members, racks={"t": [["a", "b"]] * 4})
    assert numbers(found, "t") == {"C0": [0, 1], "C1": [2, 3]}


def test_topics_with_the_same_subscribers_and_sizes_stay_together_in_racks():
    members = {"C0": Subscription(["s", "t"], rack="a"), "C1": Subscription(["s", "t"], rack="b")}
    near = [["b"], ["a"]]
    found = assign("range", {"s": 2, "t": 2}, members, racks={"s": near, "t": near})
    assert numbers(found, "s") == numbers(found, "t") == {"C0": [1], "C1": [0]}
