from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.assignors import Subscription, assign
from rebalance_lib.assignors.mixed_subscriptions import balance_score
from tests.assignors.groups import Case, next_generation, random_case
from tests.assignors.judging import changes_of_hands, judged, optimum, score


def again(members, assignment, generation=1):
    return {name: Subscription(one.topics, assignment[name], generation, one.rack) for name, one in members.items()}


def sizes(assignment):
    return [len(owned) for owned in assignment.values()]


def test_the_example_of_equal_subscriptions():
    members = {"m1": Subscription(["a", "b"], [("a", n) for n in range(3)], 1), "m2": Subscription(["a", "b"])}
    assert assign("sticky", {"a": 3, "b": 3}, members) == {
        "m1": [("a", 0), ("a", 1), ("a", 2)],
        "m2": [("b", 0), ("b", 1), ("b", 2)],
    }


def test_the_example_of_mixed_subscriptions():
    members = {"C0": Subscription(["t0"]), "C1": Subscription(["t0", "t1"]), "C2": Subscription(["t0", "t1", "t2"])}
    assert assign("sticky", {"t0": 1, "t1": 2, "t2": 3}, members) == {
        "C0": [("t0", 0)],
        "C1": [("t1", 0), ("t1", 1)],
        "C2": [("t2", 0), ("t2", 1), ("t2", 2)],
    }


CHAIN = {
    "C0": Subscription(["a"], [("a", 0), ("a", 1), ("a", 2)], 1),
    "C1": Subscription(["a", "b"], [("b", 0), ("b", 1)], 1),
    "C2": Subscription(["b"], [("b", 2)], 1),
}


def test_the_example_of_an_improvement_goes_along_a_chain():
    found = assign("sticky", {"a": 3, "b": 3}, CHAIN)
    assert sizes(found) == [2, 2, 2]
    assert changes_of_hands(Case({"a": 3, "b": 3}, CHAIN), found) == 2


def test_clients_overlook_the_chain_and_so_does_a_forecast_of_them():
    assert sizes(assign("sticky", {"a": 3, "b": 3}, CHAIN, as_clients_do=True)) == [3, 2, 1]


def test_what_a_member_leaves_goes_to_the_others_and_nothing_else_moves():
    members = {f"C{n}": Subscription([f"t{m}" for m in range(4)]) for n in range(3)}
    partitions = {f"t{m}": 2 for m in range(4)}
    first = assign("sticky", partitions, members)
    left = again(members, first)
    del left["C1"]
    second = assign("sticky", partitions, left)
    assert sizes(second) == [4, 4]
    assert all(set(first[name]) <= set(second[name]) for name in left)


def test_a_new_member_takes_only_its_share():
    members = {f"C{n}": Subscription(["t"]) for n in range(3)}
    first = assign("sticky", {"t": 12}, members)
    second = assign("sticky", {"t": 12}, again(members, first) | {"C9": Subscription(["t"])})
    assert sizes(second) == [3, 3, 3, 3]
    assert all(set(second[name]) <= set(first[name]) for name in members)


def test_a_topic_that_grows_moves_nothing():
    members = {f"C{n}": Subscription(["t"]) for n in range(3)}
    first = assign("sticky", {"t": 6}, members)
    second = assign("sticky", {"t": 9}, again(members, first))
    assert sizes(second) == [3, 3, 3]
    assert all(set(first[name]) <= set(second[name]) for name in members)


def test_partitions_that_are_no_more_are_forgotten():
    members = {"C0": Subscription(["t"], [("t", 0), ("t", 7), ("gone", 0)], 1), "C1": Subscription(["t"])}
    assert assign("sticky", {"t": 2}, members) == {"C0": [("t", 0)], "C1": [("t", 1)]}


def test_what_a_member_no_longer_subscribes_to_goes_to_another():
    members = {
        "C0": Subscription(["a"], [("a", 0), ("b", 0)], 1),
        "C1": Subscription(["a", "b"], [("a", 1)], 1),
    }
    assert assign("sticky", {"a": 2, "b": 1}, members) == {"C0": [("a", 0)], "C1": [("a", 1), ("b", 0)]}


def test_of_two_claims_the_later_generation_is_believed():
    members = {
        "C0": Subscription(["t"], [("t", 0), ("t", 1)], 1),
        "C1": Subscription(["t"], [("t", 0), ("t", 2)], 2),
    }
    found = assign("sticky", {"t": 4}, members)
    assert {("t", 0), ("t", 2)} <= set(found["C1"])
    assert ("t", 1) in found["C0"]


@pytest.mark.parametrize("topics", [(["t"], ["t"]), (["t"], ["t", "u"])], ids=["equal", "mixed"])
def test_two_claims_of_one_generation_are_both_dropped(topics):
    members = {
        "C0": Subscription(topics[0], [("t", 0), ("t", 1)], 1),
        "C1": Subscription(topics[1], [("t", 0), ("t", 2)], 1),
    }
    found = assign("sticky", {"t": 4}, members)
    assert sizes(found) == [2, 2]
    assert ("t", 1) in found["C0"]
    assert ("t", 2) in found["C1"]


def test_a_partition_that_must_move_goes_back_to_who_had_it_before():
    """C1 has it of a later generation, but too many; C0 had it before that, and C2 has fewer than C0."""
    members = {
        "C0": Subscription(["t"], [("t", 0), ("t", 5)], 1),
        "C1": Subscription(["t"], [("t", n) for n in range(5)], 2),
        "C2": Subscription(["t", "u"], [], 2),
    }
    assert assign("sticky", {"t": 6}, members, as_clients_do=True) == {
        "C0": [("t", 0), ("t", 5)],
        "C1": [("t", 3), ("t", 4)],
        "C2": [("t", 1), ("t", 2)],
    }


def test_members_get_partitions_of_their_own_rack():
    near = [["a"], ["a"], ["b"], ["b"]]
    members = {"C0": Subscription(["t"], rack="b"), "C1": Subscription(["t"], rack="a")}
    found = assign("sticky", {"t": 4}, members, racks={"t": near})
    assert found == {"C0": [("t", 2), ("t", 3)], "C1": [("t", 0), ("t", 1)]}


def test_the_cooperative_assignor_waits_for_what_another_member_still_has():
    members = {"m1": Subscription(["a"], [("a", 0), ("a", 1)], 1), "m2": Subscription(["a"])}
    first = assign("cooperative-sticky", {"a": 2}, members)
    assert first == {"m1": [("a", 0)], "m2": []}
    members = {"m1": Subscription(["a"], first["m1"], 2), "m2": Subscription(["a"], [], 2)}
    assert assign("cooperative-sticky", {"a": 2}, members) == {"m1": [("a", 0)], "m2": [("a", 1)]}


@given(seed=st.integers(0, 10**9))
def test_a_group_in_which_nothing_happens_keeps_all(seed):
    case = random_case(seed)
    first = assign("sticky", case.partitions, case.members)
    assert assign("sticky", case.partitions, again(case.members, first)) == first


@given(seed=st.integers(0, 10**9))
def test_members_with_equal_subscriptions_differ_by_one_at_most(seed):
    case = random_case(seed, equal=True)
    found = sizes(assign("sticky", case.partitions, case.members))
    assert max(found) - min(found) <= 1


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_the_balance_score_is_the_sum_over_all_pairs(found):
    assignment = {str(n): [("t", 0)] * size for n, size in enumerate(found)}
    assert balance_score(np.array(found, np.int64)) == score(assignment)


@pytest.mark.parametrize("seed", range(40))
def test_no_assignment_is_more_balanced_and_none_as_balanced_keeps_more(seed):
    case = random_case(seed, equal=False, largest=6)
    for generation in (1, 2):
        found = assign("sticky", case.partitions, case.members)
        assert judged(case, found) == optimum(case)
        case = next_generation(case, found, seed, generation)
