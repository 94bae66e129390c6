"""What holds for every assignor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.assignors import STRATEGIES, Subscription, assign
from rebalance_lib.assignors.assign import AS_CLIENTS_DO
from rebalance_lib.errors import InvalidInputError
from tests.assignors.groups import next_generation, random_case
from tests.assignors.judging import is_valid, score

EAGER = sorted(STRATEGIES.keys() - {"cooperative-sticky"})


def settled(case):
    """What a group of the cooperative assignor ends with: it rebalances until nobody has to give anything up."""
    members, generation = dict(case.members), max(one.generation for one in case.members.values())
    for _ in range(3):
        generation += 1
        found = assign("cooperative-sticky", case.partitions, members, racks=case.racks)
        members = {
            name: Subscription(one.topics, found[name], generation, one.rack, one.instance)
            for name, one in members.items()
        }
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_empty_group_gives_an_empty_answer(strategy):
    assert assign(strategy, {"orders": 3}, {}) == {}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_topics_without_metadata_are_left_out(strategy):
    members = {"a": Subscription(["orders", "gone"]), "b": Subscription(["gone"])}
    assert assign(strategy, {"orders": 2, "not-subscribed": 5}, members) == {
        "a": [("orders", 0), ("orders", 1)],
        "b": [],
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_topic_without_partitions_counts_as_unknown(strategy):
    assert assign(strategy, {"orders": 0}, {"a": Subscription(["orders"])}) == {"a": []}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_member_that_subscribes_to_nothing_gets_nothing(strategy):
    members = {"a": Subscription([]), "b": Subscription(["orders"])}
    assert assign(strategy, {"orders": 2}, members) == {"a": [], "b": [("orders", 0), ("orders", 1)]}


def test_an_unknown_assignor_is_named_with_those_there_are():
    with pytest.raises(InvalidInputError, match=r"no assignor 'stream'; there are range, roundrobin, sticky"):
        assign("stream", {"orders": 1}, {"a": Subscription(["orders"])})


def test_the_same_assignors_answer_as_clients_do():
    assert AS_CLIENTS_DO.keys() == STRATEGIES.keys()


@given(seed=st.integers(0, 10**9), strategy=st.sampled_from(EAGER), racks=st.booleans(), as_clients_do=st.booleans())
def test_every_partition_has_one_owner_who_subscribes_to_its_topic(seed, strategy, racks, as_clients_do):
    case = random_case(seed, racks=racks, instances=True)
    for generation in range(1, 4):
        found = assign(strategy, case.partitions, case.members, racks=case.racks, as_clients_do=as_clients_do)
        assert is_valid(case, found)
        case = next_generation(case, found, seed + generation, generation)


@given(seed=st.integers(0, 10**9))
def test_a_cooperative_group_settles_on_a_valid_assignment(seed):
    case = random_case(seed)
    for generation in (1, 2):
        found = settled(case)
        assert is_valid(case, found)
        case = next_generation(case, found, seed + generation, generation)


@given(seed=st.integers(0, 10**9))
def test_a_cooperative_group_ends_as_balanced_as_a_sticky_one(seed):
    case = random_case(seed)
    case = next_generation(case, settled(case), seed, 1)
    assert score(settled(case)) == score(assign("sticky", case.partitions, case.members))
