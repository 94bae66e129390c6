"""Topics stay on, or move to, the brokers of one set, and each set is balanced as a cluster of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.plan import Plan, Rule, Rules, SetRule, verify_plan
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.certified import certificate_of
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.topology import Broker, TopicPartition
from tests.planner.clusters import choices, cluster, odd_clusters, planned, topic
from tests.planner.examples import EXAMPLES
from tests.planner.rules import arrivals, broken
from tests.planner.test_idempotence import AGAIN, carried_out_for_good, options_for
from tests.planner.test_rules import offered_or_refused, requests

PAYMENTS = {"payments": {"brokers": [1, 2], "topics": ["pay*"]}, "logs": [3, 4]}


def with_sets(before, sets):
    return replace(before, sets=sets)


def outside(after):
    """Replicas that are not on a broker of their topic's set."""
    return [
        (str(name), broker)
        for name, held in after.partitions.items()
        for broker in held.replicas
        if broker not in after.set_of(name.topic)
    ]


def mixed(**more):
    """Two topics over all four brokers: pay is named by a set, log has most replicas on the other one."""
    partitions = topic("pay", [[1, 3], [2, 4], [1, 2]], [5, 5, 2]) | topic("log", [[3, 4], [4, 3], [3, 1]], [9, 1, 4])
    return with_sets(cluster([1, 2, 3, 4], partitions | more), PAYMENTS)


def sets_of(before):
    model = ClusterModel.of(before.snapshot())
    return {name: model.sets.names[model.sets.topic[n]] for n, name in enumerate(model.topics)}


def test_a_topic_that_no_pattern_names_is_in_the_set_with_most_of_its_replicas():
    assert sets_of(mixed()) == {"pay": "payments", "log": "logs"}
    tie = topic("tie", [[3, 1], [2, 4]])
    assert sets_of(mixed(**tie))["tie"] == "payments"  # of equals, the set with the lowest broker id
    assert SetRule.of(mixed(**tie).snapshot()).members["tie"] == {1, 2}
    rest = with_sets(cluster([1, 2, 3], topic("a", [[1, 2], [3, 2]])), {"one": [1]})
    assert sets_of(rest) == {"a": None}  # brokers in no set form one more
    assert ClusterModel.of(cluster([1], topic("a", [[1]])).snapshot()).sets is None


def test_balance_brings_every_replica_to_its_set_and_evens_out_each_set_alone():
    after = mixed().after(planned(mixed(), Request(Mode.BALANCE)).plan)
    assert outside(after) == []
    assert after.bytes_by_broker() == {1: 12, 2: 12, 3: 14, 4: 14}


def test_a_set_that_is_full_of_data_gives_none_to_another():
    heavy = topic("log", [[3, 4]] * 6, 50)
    before = with_sets(cluster([1, 2, 3, 4], topic("pay", [[1, 2]] * 2, 1) | heavy), PAYMENTS)
    plan = planned(before, Request(Mode.BALANCE))
    assert list(arrivals(before, before.after(plan.plan))) == []
    disk = next(verdict for verdict in plan.outcome.verdicts() if verdict.goal == "disk")
    assert (disk.before, disk.after, disk.met) == (1.0, 1.0, True)
    assert plan.figures.bytes_after.most == plan.figures.bytes_after.least == 1.0


def test_goals_speak_of_the_set_that_is_farthest_from_them():
    lists = topic("pay", [[1]] * 3 + [[2]], 10) | topic("log", [[3], [4]], 10)
    before = with_sets(cluster([1, 2, 3, 4], lists), PAYMENTS)
    verdicts = {one.goal: one for one in planned(before, Request(Mode.LEADERS)).outcome.verdicts()}
    assert verdicts["disk"].after == pytest.approx(1.5)
    assert verdicts["broker_sets"].met
    assert verdicts["broker_sets"].hard


def test_the_verdict_counts_partitions_outside_of_their_set():
    plan = planned(mixed(), Request(Mode.LEADERS))
    found = next(one for one in plan.outcome.verdicts() if one.goal == "broker_sets")
    assert (found.before, found.after, found.met) == (1.5, 1.5, False)
    assert "outside of their topic's broker set" in found.why
    moved = planned(mixed(), Request(Mode.BALANCE)).outcome.verdicts()
    assert next(one for one in moved if one.goal == "broker_sets").met


def test_a_replica_outside_of_its_set_is_in_a_rack_all_the_same():
    lists = topic("pay", [[1, 3], [2, 3]], 10) | topic("log", [[3, 4]], 10)
    for rack, before_is in (("c", 1.0), ("a", 1 + 1 / 3)):
        before = with_sets(cluster({1: "a", 2: "b", 3: rack, 4: "d"}, lists), PAYMENTS)
        found = {one.goal: one for one in planned(before, Request(Mode.BALANCE)).outcome.verdicts()}
        assert (found["racks"].before, found["racks"].after) == (pytest.approx(before_is), 1.0)


def test_the_certificate_of_a_set_that_holds_nothing_yet_counts_with_what_comes():
    model = ClusterModel.of(with_sets(cluster([1, 2, 3, 4], topic("pay", [[3], [4]], 10**10)), PAYMENTS).snapshot())
    request = Request(Mode.BALANCE)
    found = certificate_of(model, candidates(model, request)[0].outcome.scope, request)
    assert (found.best["disk"], found.least_bytes) == (pytest.approx(1.0), 2 * 10**10)


def test_a_partition_that_would_be_left_outside_of_its_set_only_is_refused_in_words():
    before = with_sets(cluster({1: "a", 2: "b", 3: "a"}, topic("pay", [[3, 1]])), {"x": [1, 2], "y": [3]})
    lagging = {name: replace(held, lagging=(1,)) for name, held in before.partitions.items()}
    request = Request(Mode.REPLICATION_FACTOR, topics=("pay",), replication_factor=1)
    with pytest.raises(InvalidInputError, match=r"broker set x: .* pay-0 would be in fewer racks than now"):
        planned(replace(before, partitions=lagging), request)


def test_the_certificate_is_by_set():
    model = ClusterModel.of(mixed().snapshot())
    plan = candidates(model, Request(Mode.BALANCE))[0]
    found = certificate_of(model, plan.outcome.scope, Request(Mode.BALANCE))
    assert len(found.best_of_sets) == 2
    assert found.least_bytes <= plan.figures.bytes_moved
    assert found.best["disk"] == max(best["disk"] for best in found.best_of_sets)


def test_modes_that_only_place_what_they_must_leave_the_rest_where_it_is():
    drained = mixed().after(
        planned(mixed(), Request(Mode.REPLICATION_FACTOR, topics=("log",), replication_factor=1)).plan
    )
    assert outside(drained) == [("pay-0", 3), ("pay-1", 4)]  # of log, what was outside went first
    wider = mixed().after(planned(mixed(), Request(Mode.PARTITIONS, topics=("*",), partitions=5)).plan)
    assert outside(wider) == outside(mixed())
    assert set(wider.partitions[TopicPartition("pay", 4)].replicas) == {1, 2}


@pytest.mark.parametrize(
    ("before", "request_", "message"),
    [
        (
            with_sets(cluster([1, 2, 3, 4], topic("pay", [[1, 2, 3]])), PAYMENTS),
            Request(Mode.BALANCE),
            "broker set payments: pay-0 has 3 replicas, but only 2 live brokers are there to hold them: add brokers",
        ),
        (
            with_sets(cluster([1, 2, 3, 4], topic("pay", [[1, 2]])), PAYMENTS),
            Request(Mode.REPLICATION_FACTOR, topics=("pay",), replication_factor=3),
            "broker set payments: a replication factor of 3 cannot be reached: pay-0 is to have 3 replicas, but only 2",
        ),
        (
            with_sets(cluster([1, 2, 3, 4], topic("pay", [[1, 2]])), PAYMENTS),
            Request(Mode.DRAIN, brokers=(1,)),
            "broker set payments: pay-0 has 2 replicas, but only 1 live brokers",
        ),
        (
            with_sets(cluster([1, 2, 3, 4], topic("pay", [[1, 2]])), PAYMENTS),
            Request(Mode.REPLACE, brokers=(1,), replacements=(3,)),
            "broker 3 cannot replace another: it would get pay-0 of broker set payments, in which it is not",
        ),
        (
            mixed(),
            Request(Mode.BALANCE, byte_budget=13),
            "broker set logs: the replicas that are outside of it cannot be brought there: 4 bytes must move, but the",
        ),
    ],
)
def test_what_a_set_cannot_hold_is_refused_by_its_name(before, request_, message):
    with pytest.raises(InvalidInputError) as caught:
        choices(before, request_)
    assert message in str(caught.value)


def test_sets_share_the_budgets():
    lists = topic("pay", [[1]] * 4, 10) | topic("log", [[3]] * 4, 10)
    before = with_sets(cluster([1, 2, 3, 4], lists), PAYMENTS)
    after = before.after(planned(before, Request(Mode.BALANCE, byte_budget=20)).plan)
    assert after.bytes_by_broker() == {1: 30, 2: 10, 3: 30, 4: 10}


SETS = st.integers(0, 2)


@st.composite
def clusters_with_sets(draw, **options):
    before = draw(odd_clusters(**options))
    names = ("x", "y", None)
    registered = sorted(id_ for id_, host in before.hosts.items() if host.registered)
    chosen = {id_: names[draw(SETS)] for id_ in registered}
    sets = {}
    for name in ("x", "y"):
        if members := [id_ for id_ in registered if chosen[id_] == name]:
            patterns = draw(st.sampled_from([[], [], ["t0"] if name == "x" else ["t1"]]))
            sets[name] = {"brokers": members, "topics": patterns} if patterns else members
    return with_sets(before, sets)


@pytest.mark.parametrize("mode", Mode)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_plan_gives_a_replica_to_a_broker_outside_of_its_set(mode, data):
    before = data.draw(clusters_with_sets())
    request, offered = offered_or_refused(before, data.draw(requests(before, mode)))
    for one in offered:
        assert broken(before, one.plan, request) == []
        assert one.figures.least_bytes_for_balance <= one.figures.least_bytes <= one.figures.bytes_moved
        verdicts = {verdict.goal: verdict for verdict in one.outcome.verdicts(request)}
        sets = verdicts.get("broker_sets")
        assert sets is None or sets.after <= sets.before
    if request is not None:
        check_candidates(ClusterModel.of(before.snapshot()), request, offered)


@pytest.mark.parametrize("mode", AGAIN)
@settings(max_examples=EXAMPLES)
@given(before=clusters_with_sets(sizes=st.one_of(st.integers(0, 30), st.integers(1, 1000)), alike=True))
def test_planning_again_after_a_plan_finds_nothing_to_do(mode, before):
    found = carried_out_for_good(before, Request(mode=mode, **options_for(mode, before)))
    if found is not None and mode in (Mode.BALANCE, Mode.REPAIR) and found[0].outcome.scope.movable.all():
        assert outside(found[1]) == []


@pytest.mark.parametrize(
    ("replicas", "gathered"),
    [([1, 3], False), ([1, 4], True), ([3, 1], True)],
)
def test_the_verifier_refuses_a_replica_outside_of_its_set(replicas, gathered):
    before = with_sets(cluster([1, 2, 3, 4], topic("pay", [[1, 2], [1, 4]])), PAYMENTS)
    rule = SetRule.of(before.snapshot(), gathered=gathered)
    plan = Plan.from_assignment({TopicPartition("pay", 0): tuple(replicas), TopicPartition("pay", 1): (1, 2)})
    known = Plan.from_assignment(before.assignment())
    brokers = [Broker(id_) for id_ in before.hosts]
    assert {one.rule for one in verify_plan(plan, brokers=brokers, before=known, rules=Rules(broker_sets=rule))} == {
        Rule.BROKER_SET
    }
    right = Plan.from_assignment({TopicPartition("pay", 0): (2, 1), TopicPartition("pay", 1): (1, 2)})
    assert verify_plan(right, brokers=brokers, before=known, rules=Rules(broker_sets=rule)) == []


def test_the_verifier_finds_a_replica_that_was_to_be_brought_home_and_was_not():
    before = with_sets(cluster([1, 2, 3, 4], topic("pay", [[1, 2], [1, 4]])), PAYMENTS)
    brokers, known = [Broker(id_) for id_ in before.hosts], Plan.from_assignment(before.assignment())
    rule = SetRule.of(before.snapshot(), gathered=True)
    found = verify_plan(Plan.from_assignment({}), brokers=brokers, before=known, rules=Rules(broker_sets=rule))
    assert [(str(one.partition), one.rule) for one in found] == [("pay-1", Rule.BROKER_SET)]
    kept = replace(rule, may_keep=frozenset({4}))
    assert verify_plan(Plan.from_assignment({}), brokers=brokers, before=known, rules=Rules(broker_sets=kept)) == []


def test_a_plan_that_leaves_its_set_is_not_written():
    model = ClusterModel.of(mixed().snapshot())
    request = Request(Mode.BALANCE)
    wrong = candidates(replace(model, sets=None), request)
    with pytest.raises(RebalanceError, match="broker-set"):
        check_candidates(model, request, wrong)


def test_the_sizes_of_a_part_are_those_of_its_partitions():
    model = ClusterModel.of(mixed().snapshot())
    plan = candidates(model, Request(Mode.PARTITIONS, topics=("*",), partitions=5))[0]
    parts = plan.outcome.of_sets
    assert sum(part.placement.model.partitions for part in parts) == 10
    assert np.array_equal(sum(part.loads()["bytes"][1] for part in parts), plan.outcome.loads()["bytes"][1])


def test_lowering_a_factor_never_drops_the_last_replica_in_sync():
    """Its leader is outside of the set, and nobody in it has all of its data."""
    held = cluster([1, 2, 3, 4], topic("t", [[1, 2, 3]] * 4, 5))
    lagging = {name: replace(one, lagging=(2, 3)) for name, one in held.partitions.items()}
    before = replace(held, partitions=lagging, sets={"a": {"brokers": [2, 3], "topics": ["t"]}, "b": [1, 4]})
    plan = planned(before, Request(Mode.REPLICATION_FACTOR, topics=("*",), replication_factor=1)).plan
    assert all(entry.replicas == (1,) for entry in plan)


def test_the_review_says_how_many_topics_each_set_has_and_which_patterns_match_none():
    before = with_sets(
        cluster([1, 2, 3, 4], topic("pay", [[1, 2]])), PAYMENTS | {"logs": {"brokers": [3, 4], "topics": ["lgs*"]}}
    )
    remarks = planned(before, Request(Mode.BALANCE)).outcome.scope.remarks
    assert remarks == (
        "Broker set payments has 1 topics.",
        "Broker set logs has 0 topics.",
        "No topic matches 'lgs*' of broker set logs.",
    )
