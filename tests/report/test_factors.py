"""A plan that changes replication factors says how many replicas go or come, and from how many copies to how many."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rebalance_lib.planner import Choice, ClusterModel, Mode, Request
from rebalance_lib.report import render_review, summarize
from rebalance_lib.report.factors import factor_lines
from tests.planner.clusters import choices, cluster, topic

TOPICS = {**topic("two", [[1, 2], [2, 3]]), **topic("three", [[1, 2, 3], [2, 3, 1], [3, 1, 2]]), **topic("one", [[1]])}


def summary_of(request):
    before = cluster([1, 2, 3], TOPICS)
    return summarize(Choice(ClusterModel.of(before.snapshot()), request, choices(before, request), {}))


@pytest.mark.parametrize(
    ("topics", "factor", "changes", "lines"),
    [
        (
            ("three",),
            2,
            [{"from": 3, "to": 2, "partitions": 3, "replicas": -3}],
            ["3 replicas are removed and not replaced: 3 partitions go from 3 copies to 2."],
        ),
        (
            ("two", "three"),
            1,
            [
                {"from": 3, "to": 1, "partitions": 3, "replicas": -6},
                {"from": 2, "to": 1, "partitions": 2, "replicas": -2},
            ],
            ["8 replicas are removed and not replaced: 3 partitions go from 3 copies to 1, 2 from 2 copies to 1."],
        ),
        (
            ("one", "three"),
            2,
            [
                {"from": 3, "to": 2, "partitions": 3, "replicas": -3},
                {"from": 1, "to": 2, "partitions": 1, "replicas": 1},
            ],
            [
                "3 replicas are removed and not replaced: 3 partitions go from 3 copies to 2.",
                "1 replica is added: 1 partition goes from 1 copy to 2.",
            ],
        ),
        (("two",), 2, [], []),
    ],
)
def test_summary_and_review_say_how_many_replicas_go_and_come(topics, factor, changes, lines):
    summary = summary_of(Request(Mode.REPLICATION_FACTOR, topics=topics, replication_factor=factor))
    assert summary["candidates"]["full"]["factor_changes"] == changes
    assert factor_lines(summary) == lines
    review = render_review(summary)
    assert all(line in review for line in lines)


def test_other_modes_change_no_factor_and_new_partitions_have_none_to_change():
    for request in (Request(Mode.BALANCE), Request(Mode.PARTITIONS, topics=("two",), partitions=5)):
        assert factor_lines(summary_of(request)) == []
    assert factor_lines({"recommended": "full", "candidates": {"full": {}}}) == []


def test_a_topic_whose_factor_is_raised_is_no_risk_though_it_has_one_replica_now():
    before = cluster([1, 2, 3], topic("one", [[1]]))
    snapshot = before.snapshot()
    rows = [{**row, "min_insync_replicas": 1} for row in snapshot.replicas.to_pylist()]
    model = ClusterModel.of(replace(snapshot, replicas=pa.Table.from_pylist(rows, snapshot.replicas.schema)))
    request = Request(Mode.REPLICATION_FACTOR, topics=("one",), replication_factor=3)
    summary = summarize(Choice(model, request, choices(before, request), {}))
    assert summary["candidates"]["full"]["risks"] == []


def test_a_hard_goal_that_a_plan_cannot_meet_is_a_risk():
    request = Request(Mode.BALANCE, min_topic_leaders=("one=1",))
    assert "min_topic_leaders" in summary_of(request)["candidates"]["full"]["risks"][0]
    assert summary_of(Request(Mode.BALANCE))["candidates"]["full"]["risks"] == []
