"""Each broker leads at least so many partitions of chosen topics."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.clusters import Parameters, generate
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from tests.planner.clusters import Host, cluster, odd_clusters, planned, topic
from tests.planner.examples import EXAMPLES
from tests.planner.rules import broken
from tests.planner.test_idempotence import carried_out, carried_out_for_good, options_for

MODES = (Mode.BALANCE, Mode.EXPAND, Mode.TOPICS, Mode.LEADERS, Mode.DRAIN)
METRICS = topic("metrics", [[1, 2]] * 3, [3, 2, 1])
ORDERS = topic("orders", [[1, 2], [2, 3], [3, 1]] * 4, 10)
ONE_OF_METRICS = Request(Mode.BALANCE, min_topic_leaders=("metrics*=1",))


def led(after, name):
    """How many partitions of a topic each broker leads."""
    return Counter(held.replicas[0] for one, held in after.partitions.items() if one.topic == name)


def verdict(plan, request):
    return next(one for one in plan.outcome.verdicts(request) if one.goal == "min_topic_leaders")


def test_leadership_is_taken_over_where_there_is_a_replica_and_the_smallest_is_moved_where_there_is_none():
    before = cluster([1, 2, 3], METRICS | ORDERS)
    plan = planned(before, ONE_OF_METRICS)
    assert led(before.after(plan.plan), "metrics") == {1: 1, 2: 1, 3: 1}
    assert plan.figures.bytes_moved == 1
    found = verdict(plan, ONE_OF_METRICS)
    assert (found.hard, found.before, found.after, found.met) == (True, pytest.approx(1 + 2 / 3), 1.0, True)


def test_without_the_option_nothing_is_said_of_it():
    before = cluster([1, 2, 3], METRICS)
    plan = planned(before, Request(Mode.BALANCE))
    assert all(one.goal != "min_topic_leaders" for one in plan.outcome.verdicts(Request(Mode.BALANCE)))


def test_mode_leaders_copies_nothing_and_says_who_lacks_what():
    before = cluster([1, 2, 3], METRICS | ORDERS)
    request = replace(ONE_OF_METRICS, mode=Mode.LEADERS)
    plan = planned(before, request)
    assert led(before.after(plan.plan), "metrics") == {1: 2, 2: 1}
    assert plan.figures.bytes_moved == 0
    found = verdict(plan, request)
    assert (found.met, found.after) == (False, pytest.approx(1 + 1 / 3))
    assert "broker 3 leads 0 of metrics instead of 1: it holds 0 of 3 partitions" in found.why


def test_leadership_goes_along_a_chain_of_brokers():
    before = cluster([1, 2, 3], topic("metrics", [[1, 2], [1, 2], [2, 3]]))
    request = replace(ONE_OF_METRICS, mode=Mode.LEADERS)
    assert led(before.after(planned(before, request).plan), "metrics") == {1: 1, 2: 1, 3: 1}


def test_a_replica_out_of_sync_is_not_made_the_leader():
    before = cluster([1, 2], topic("metrics", [[1, 2], [1, 2]]))
    lagging = {name: replace(held, lagging=(2,)) for name, held in before.partitions.items()}
    request = replace(ONE_OF_METRICS, mode=Mode.LEADERS)
    assert planned(replace(before, partitions=lagging), request).plan.as_dict() == {}


def test_too_few_partitions_are_no_error():
    before = cluster([1, 2, 3], METRICS)
    request = Request(Mode.BALANCE, min_topic_leaders=("metrics=2",))
    plan = planned(before, request)
    found = verdict(plan, request)
    assert not found.met
    assert "the topic has 3 partitions, and 3 brokers need 6; add partitions, or ask for less" in found.why
    assert planned(before.after(plan.plan), request).plan.as_dict() == {}


def test_a_broker_without_disk_space_is_given_nothing():
    full = Host(None, True, {"/d0": 10}, other_data=10)
    before = cluster({1: Host(None, True, {"/d0": 100}), 2: Host(None, True, {"/d0": 100}), 3: full}, METRICS)
    plan = planned(before, ONE_OF_METRICS)
    assert led(before.after(plan.plan), "metrics") == {1: 2, 2: 1}
    assert "broker 3 leads 0 of metrics" in verdict(plan, ONE_OF_METRICS).why


def test_racks_are_kept():
    before = cluster({1: "a", 2: "b", 3: "b"}, topic("metrics", [[1, 2]] * 4))
    after = before.after(planned(before, ONE_OF_METRICS).plan)
    assert min(led(after, "metrics")[id_] for id_ in (1, 2, 3)) >= 1
    assert all(1 in held.replicas for held in after.partitions.values())


def test_only_brokers_of_the_topic_s_set_need_to_lead_it():
    before = replace(cluster([1, 2, 3, 4], topic("metrics", [[1], [1], [1]]) | ORDERS), sets={"one": [1, 2]})
    plan = planned(before, ONE_OF_METRICS)
    assert set(led(before.after(plan.plan), "metrics")) == {1, 2}
    assert verdict(plan, ONE_OF_METRICS).met


def test_a_drained_broker_is_emptied_and_the_others_lead():
    before = cluster([1, 2, 3, 4], topic("metrics", [[1, 2]] * 6) | ORDERS)
    request = replace(ONE_OF_METRICS, mode=Mode.DRAIN, brokers=(1,), balance=True)
    after = before.after(planned(before, request).plan)
    assert set(led(after, "metrics")) == {2, 3, 4}
    assert after.replicas_by_broker()[1] == 0


def test_of_several_patterns_the_greatest_number_counts():
    before = cluster([1, 2], topic("metrics", [[1, 2]] * 4) | topic("other", [[1, 2]] * 4))
    request = Request(Mode.LEADERS, min_topic_leaders=("*=1", "metrics=2"), goals=("leaders=9",))
    after = before.after(planned(before, request).plan)
    assert (led(after, "metrics"), led(after, "other")) == ({1: 2, 2: 2}, {1: 3, 2: 1})


def test_a_pattern_that_matches_no_topic_is_a_remark():
    request = Request(Mode.BALANCE, min_topic_leaders=("gone-*=1",))
    plan = planned(cluster([1, 2], METRICS), request)
    assert plan.outcome.scope.remarks == ("No topic matches 'gone-*', which each broker is to lead some of.",)


def test_candidates_of_a_byte_budget_spend_no_more():
    before = cluster([1, 2, 3], topic("metrics", [[1, 2]] * 3, 5))
    request = replace(ONE_OF_METRICS, byte_budget=4)
    plan = planned(before, request)
    assert (plan.figures.bytes_moved, verdict(plan, request).met) == (0, False)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"mode": "balance", "min_topic_leaders": ["metrics"]}, "'metrics' is not PATTERN=NUMBER"),
        ({"mode": "balance", "min_topic_leaders": ["metrics=0"]}, "'metrics=0' is not PATTERN=NUMBER"),
        ({"mode": "balance", "min_topic_leaders": ["a=1", "a=2"]}, "min topic leaders name 'a' twice"),
        ({"mode": "balance", "min_topic_leaders": "a=1"}, "give a list of PATTERN=NUMBER"),
        (
            {"mode": "repair", "min_topic_leaders": ["a=1"]},
            "mode repair has no use for min_topic_leaders, only balance",
        ),
        ({"mode": "drain", "brokers": [1], "min_topic_leaders": ["a=1"]}, "only with balance"),
    ],
)
def test_what_is_no_such_request_is_refused(given_, message):
    with pytest.raises(InvalidInputError) as caught:
        Request.from_dict(given_)
    assert message in str(caught.value)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=EXAMPLES)
@given(before=odd_clusters(sizes=st.integers(0, 30), alike=True), least=st.integers(1, 2))
def test_no_rule_is_broken_and_planning_again_finds_nothing(mode, before, least):
    options = options_for(mode, before) | ({"balance": True} if mode is Mode.DRAIN else {})
    request = Request(mode=mode, min_topic_leaders=(f"t[01]={least}",), **options)
    if found := carried_out_for_good(before, request):
        assert broken(before, found[0].plan, request) == []


@settings(max_examples=3 * EXAMPLES)
@given(
    before=odd_clusters(most_brokers=5, most_partitions=16, sizes=st.integers(0, 30), dead=False, alike=True),
    least=st.integers(1, 2),
)
def test_every_broker_leads_so_many_if_there_are_enough_partitions_and_disks(before, least):
    assume(all(size is None for host in before.hosts.values() for size in host.disks.values()))
    request = Request(Mode.BALANCE, min_topic_leaders=(f"*={least}",), include_internal=True)
    after = before.after(planned(before, request).plan)
    for name in {one.topic for one in before.partitions}:
        found = led(after, name)
        if sum(found.values()) >= least * len(before.hosts):
            assert min(found[id_] for id_ in before.hosts) >= least


@settings(max_examples=2 * EXAMPLES)
@given(before=odd_clusters(most_brokers=5, sizes=st.just(1), dead=False, alike=True), least=st.integers(1, 2))
def test_by_order_alone_as_much_is_met_as_any_order_can(before, least):
    request = Request(Mode.LEADERS, min_topic_leaders=(f"*={least}",), include_internal=True)
    after = before.after(planned(before, request).plan)
    for name in {one.topic for one in before.partitions}:
        lists = [held.replicas for one, held in before.partitions.items() if one.topic == name]
        found = led(after, name)
        assert sum(min(least, found[id_]) for id_ in before.hosts) == most_met(lists, least)


def most_met(lists, least):
    """How many leaders up to the least of each broker any order gives them: a matching, by augmenting paths."""
    taken: dict[tuple[int, int], int] = {}

    def place(p, seen):
        for slot in ((broker, n) for broker in lists[p] for n in range(least)):
            if slot not in seen:
                seen.add(slot)
                if slot not in taken or place(taken[slot], seen):
                    taken[slot] = p
                    return True
        return False

    return sum(place(p, set()) for p in range(len(lists)))


@pytest.mark.parametrize("shards", [1, 3])
def test_a_large_cluster_is_balanced_around_them(shards):
    snapshot = generate(Parameters(scenario="skew", partitions=2000, brokers=12, seed=5)).snapshot()
    model = ClusterModel.of(snapshot)
    counts = Counter(name for name, _ in {(row["topic"], row["partition"]) for row in snapshot.replicas.to_pylist()})
    wide = next(name for name, count in sorted(counts.items()) if 12 <= count <= 60)
    request = Request(Mode.BALANCE, min_topic_leaders=(f"{wide}=1",), shards=shards)
    first = candidates(model, request)[0]
    assert verdict(first, request).met
    assert first.figures.bytes_after.most < 1.02
    assert len(candidates(ClusterModel.of(carried_out(snapshot, first.plan)), request)[0].plan) == 0
