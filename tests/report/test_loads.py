"""A plan says which loads it was made with, and of how many partitions they are not known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rebalance_lib.history import PLANNED_LOADS
from rebalance_lib.planner import Choice, ClusterModel
from rebalance_lib.report import render_review, summarize
from rebalance_lib.report.loads import load_figures, loads_lines
from rebalance_lib.topology.load_facts import LoadFacts
from tests.report.test_report import PLAN, SNAPSHOT

KNOWN = {"topic": "foo", "partition": 0, "size_bytes": 20, "write_rate": 5.0, "read_rate": None}
ELSEWHERE = {"topic": "gone", "partition": 0, "size_bytes": 1, "write_rate": 1.0, "read_rate": 1.0}


def loads(*rows, **facts):
    table = pa.Table.from_pylist(rows, schema=PLANNED_LOADS)
    return LoadFacts(**{"statistic": "mean", "hours": 24.0, "horizon_days": 0.0, **facts}).attach(table)


def unknown(table):
    figures = load_figures(SNAPSHOT, table)
    return tuple(figures[f"{name}_unknown"] for name in ("write_rate", "read_rate", "size"))


def test_what_has_no_row_is_as_unknown_as_what_has_null():
    assert unknown(loads(KNOWN, ELSEWHERE, horizon_days=7.0)) == (1, 2, 1)
    assert unknown(loads(horizon_days=7.0)) == (2, 2, 2)


def test_without_a_horizon_no_size_is_unknown():
    assert unknown(loads(KNOWN)) == (1, 2, 0)


def test_loads_from_elsewhere_have_no_figures():
    assert load_figures(SNAPSHOT, None) is None
    assert load_figures(SNAPSHOT, PLANNED_LOADS.empty_table()) is None


def choice(table):
    return Choice(
        ClusterModel.of(SNAPSHOT, table), None, Choice.given(ClusterModel.of(SNAPSHOT), PLAN).candidates, rates=table
    )


def test_the_review_says_so():
    reset = ("a`b", *"cdefg")
    summary = summarize(choice(loads(KNOWN, statistic="p95", horizon_days=7.0, groups_reset=reset)))
    assert summary["loads"]["groups_reset"] == list(reset)
    text = render_review(summary)
    assert "the 95th percentile of 24 hours of history, sizes as they will be in 7 days" in text
    assert "Of 2 partitions, the write rates of 1, the read rates of 2, the growth of 1 are not known." in text
    assert "count as reading nothing then: `a'b`, `c`, `d`, `e`, `f`, ..." in text


@pytest.mark.parametrize("table", [None, loads(KNOWN | {"write_rate": None}).replace_schema_metadata(None)])
def test_without_rates_the_review_says_that_too(table):
    summary = summarize(choice(table))
    assert (summary["rates_known"], summary["loads"]) == (False, None)
    assert loads_lines(summary) == ["Write rates are not known: one snapshot alone has none."]
    assert loads_lines({**summary, "partitions_changed": 0}) == []


def test_a_summary_of_an_older_version_is_read():
    summary = summarize(choice(None))
    del summary["loads"]
    assert "Write rates are not known" in render_review(summary)
