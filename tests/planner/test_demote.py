"""``demote`` takes leadership from brokers, copies nothing and changes no other list."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request, Scope
from rebalance_lib.report import summarize
from rebalance_lib.topology import TopicPartition
from tests.planner.clusters import Host, choices, cluster, odd_clusters, planned, topic
from tests.planner.rules import broken

DEMOTE_1 = Request(Mode.DEMOTE, brokers=(1,))


def lists(before, request):
    return {str(name): replicas for name, replicas in planned(before, request).plan.as_dict().items()}


def test_the_example():
    before = cluster([1, 2, 3], topic("orders", [[1, 2, 3], [1, 3, 2], [2, 1, 3], [3, 2, 1]]))
    assert lists(before, DEMOTE_1) == {"orders-0": (2, 3, 1), "orders-1": (3, 2, 1), "orders-2": (2, 3, 1)}


def test_leadership_goes_to_those_that_lead_the_least_and_nobody_else_changes():
    before = cluster([1, 2, 3, 4], topic("orders", [[1, 2, 3], [1, 2, 4]] * 6 + [[2, 3, 4]] * 6 + [[3, 4]] * 2))
    one = planned(before, DEMOTE_1)
    after = before.after(one.plan)
    assert one.figures.bytes_moved == one.figures.replicas_moved == 0
    assert one.figures.order_only == one.figures.leaders_moved == 12
    assert {name.partition for name in one.plan.as_dict()} == set(range(12))
    assert after.leaders_by_broker() == {2: 7, 3: 7, 4: 6}
    assert len(planned(after, DEMOTE_1).plan) == 0


def test_several_brokers_go_to_the_end_in_their_order():
    before = cluster([1, 2, 3, 4], topic("orders", [[1, 2, 3, 4], [2, 3, 1, 4]]))
    after = before.after(planned(before, Request(Mode.DEMOTE, brokers=(1, 2))).plan)
    found = [held.replicas for held in after.partitions.values()]
    assert [replicas[2:] for replicas in found] == [(1, 2), (2, 1)]
    assert Counter(replicas[0] for replicas in found) == {3: 1, 4: 1}


def test_leaders_afterwards_gives_it_back():
    before = cluster([1, 2, 3], topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 4))
    demoted = before.after(planned(before, DEMOTE_1).plan)
    assert demoted.leaders_by_broker() == {2: 6, 3: 6}
    restored = demoted.after(planned(demoted, Request(Mode.LEADERS)).plan)
    assert restored.leaders_by_broker() == {1: 4, 2: 4, 3: 4}


def test_internal_topics_are_demoted_too():
    before = cluster([1, 2], topic("__consumer_offsets", [[1, 2]]), internal=["__consumer_offsets"])
    assert lists(before, DEMOTE_1) == {"__consumer_offsets-0": (2, 1)}


def out_of_sync(before, name, *brokers):
    held = replace(before.partitions[name], lagging=brokers)
    return replace(before, partitions={**before.partitions, name: held})


def test_a_replica_that_is_out_of_sync_is_not_preferred():
    before = cluster([1, 2, 3], topic("orders", [[1, 2, 3]]))
    assert lists(out_of_sync(before, TopicPartition("orders", 0), 2), DEMOTE_1) == {"orders-0": (3, 2, 1)}


def test_partitions_that_nobody_else_can_lead_stay_and_are_a_named_risk():
    before = cluster([1, 2, 3], {**topic("alone", [[1]]), **topic("lags", [[1, 2]]), **topic("fine", [[1, 3]])})
    before = out_of_sync(before, TopicPartition("lags", 0), 2)
    assert lists(before, DEMOTE_1) == {"fine-0": (3, 1)}
    model = ClusterModel.of(before.snapshot())
    summary = summarize(Choice(model, DEMOTE_1, choices(before, DEMOTE_1), {}))
    assert summary["leaders_kept"] == {"count": 2, "partitions": ["alone-0", "lags-0"]}
    (risk,) = summary["candidates"]["full"]["risks"]
    assert risk == (
        "Brokers 1 stay the preferred leaders of 2 partitions that are left out, or have no other replica in sync that "
        "may lead: alone-0, lags-0."
    )


def test_excluded_brokers_are_given_nothing_to_lead():
    before = cluster([1, 2, 3], topic("orders", [[1, 2, 3], [2, 1, 3]]))
    request = replace(DEMOTE_1, excluded_brokers=(2,))
    assert lists(before, request) == {"orders-0": (3, 2, 1), "orders-1": (2, 3, 1)}


def test_brokers_that_lead_without_being_preferred_are_a_remark():
    before = cluster([1, 2], topic("orders", [[2, 1]]))
    snapshot = before.snapshot()
    rows = [{**row, "leader": row["broker"] == 1} for row in snapshot.replicas.to_pylist()]
    snapshot = replace(snapshot, replicas=pa.Table.from_pylist(rows, snapshot.replicas.schema))
    (remark,) = Scope.of(ClusterModel.of(snapshot), DEMOTE_1).remarks
    assert "1 partitions now without being their preferred leaders" in remark
    assert "kafka-leader-election.sh" in remark


@pytest.mark.parametrize(
    ("options", "words"),
    [({}, "mode demote needs brokers"), ({"brokers": (9,)}, r"unknown brokers \[9\]")],
)
def test_what_cannot_be_demoted_is_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        planned(cluster([1, 2], topic("orders", [[1, 2]])), Request(Mode.DEMOTE, **options))


@given(odd_clusters())
def test_of_any_cluster_only_the_order_changes_and_only_where_a_demoted_broker_is(before):
    first = min(before.live)
    request = Request(Mode.DEMOTE, brokers=(first,))
    plan = planned(before, request).plan
    after = before.after(plan)
    assert broken(before, plan, request) == []
    for name, replicas in plan.as_dict().items():
        had = before.partitions[name].replicas
        assert sorted(replicas) == sorted(had)
        assert replicas[-1] == first
        if had[0] != first:
            assert replicas == (*(broker for broker in had if broker != first), first)
    assert len(planned(after, request).plan) == 0


def test_partitions_with_a_replica_on_a_dead_broker_are_left_alone_as_in_leaders():
    before = cluster({1: Host(alive=False), 2: Host()}, topic("orders", [[1, 2]]))
    assert lists(before, DEMOTE_1) == {}
