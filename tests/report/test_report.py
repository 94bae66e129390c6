"""What people read of a plan is what the plan does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.plan import Plan, parse_plan
from rebalance_lib.report import broker_table, publish_plan, render_report, render_review, summarize
from rebalance_lib.report.units import human_bytes, text_bar
from rebalance_lib.topology import TopicPartition
from tests.topology.test_snapshot import snapshot_of

# foo-0 of 10 bytes on 1 (leader) and 2; foo-1 of 30 bytes on 2 (leader) and 1; broker 3 is empty.
SNAPSHOT = snapshot_of(
    [(1, "a", True), (2, "b", True), (3, "a", True)],
    [
        ("foo", 0, 0, 1, True, False, 10),
        ("foo", 0, 1, 2, False, False, 10),
        ("foo", 1, 0, 2, True, False, 30),
        ("foo", 1, 1, 1, False, False, 30),
    ],
)
PLAN = Plan.from_assignment({TopicPartition("foo", 0): [3, 2], TopicPartition("foo", 1): [1, 2]})


def figures(summary, when):
    return [(b[when]["bytes"], b[when]["replicas"], b[when]["leaders"]) for b in summary["brokers"]]


def test_a_small_plan_by_hand():
    summary = summarize(PLAN, SNAPSHOT)
    assert figures(summary, "before") == [(40, 2, 1), (40, 2, 1), (0, 0, 0)]
    assert figures(summary, "after") == [(30, 1, 1), (40, 2, 0), (10, 1, 1)]
    assert (summary["partitions_changed"], summary["replicas_moved"], summary["bytes_moved"]) == (2, 1, 10)
    assert (summary["leaders_moved"], summary["order_only"]) == (2, 1)
    assert summary["largest_moves"][0] == {"partition": "foo-0", "from": [1, 2], "to": [3, 2], "bytes": 10}


def test_an_empty_plan_changes_nothing():
    summary = summarize(Plan.from_assignment({}), SNAPSHOT)
    assert figures(summary, "before") == figures(summary, "after")
    assert summary["bytes_moved"] == 0
    assert summary["largest_moves"] == []


@given(st.permutations([1, 2, 3]), st.permutations([1, 2, 3]))
def test_bytes_and_replicas_are_neither_made_nor_lost(first, second):
    plan = Plan.from_assignment({TopicPartition("foo", 0): first[:2], TopicPartition("foo", 1): second[:2]})
    after = figures(summarize(plan, SNAPSHOT), "after")
    assert tuple(map(sum, zip(*after, strict=True))) == (80, 4, 2)


def test_the_review_names_the_digest_and_the_largest_move():
    text = render_review(summarize(PLAN, SNAPSHOT))
    assert PLAN.digest in text
    assert "| `foo-0` | 1, 2 | 3, 2 | 10 B |" in text
    assert "| 3 | a | 0 B | 10 B | 0 | 1 | 0 | 1 |" in text


def test_names_from_outside_cannot_put_code_on_the_page():
    summary = summarize(PLAN, SNAPSHOT)
    outcome = {
        "result": "done",
        "approved_by": "<script>alert(1)</script>",
        "approved_at": "",
        "rate": 1000,
        "finished_at": "",
        "verdict": "",
        "throttles_left": {},
        "brokers": summary["brokers"],
    }
    page = render_report(summary, outcome)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_plan_is_published_whole_and_again(tmp_path):
    directory = Artifacts(tmp_path.as_uri()) / "plan"
    for _ in range(2):
        publish_plan(directory, PLAN, SNAPSHOT)
        assert sorted(p.name for p in (tmp_path / "plan").iterdir()) == ["plan.json", "review.md", "summary.json"]
        assert sorted(p.name for p in tmp_path.iterdir()) == ["plan"]
    assert parse_plan(directory.read_text("plan.json")) == PLAN
    assert json.loads(directory.read_text("summary.json"))["digest"] == PLAN.digest


def test_the_broker_table_fits_a_terminal_of_80_columns():
    brokers = summarize(PLAN, SNAPSHOT)["brokers"]
    console = Console(width=80)
    with console.capture() as printed:
        console.print(broker_table(brokers, "Brokers"))
    assert "…" not in printed.get()
    assert "40 B ████████" in printed.get()
    assert max(map(len, printed.get().splitlines())) <= 80


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1536, "1.54 kB"), (999_600, "1 MB"), (123_456_789, "123 MB")],
)
def test_bytes_as_people_read_them(count, text):
    assert human_bytes(count) == text


@given(st.integers(0, 10**18), st.integers(0, 10**18))
def test_a_bar_is_as_wide_as_asked_and_never_wider(value, more):
    assert len(text_bar(value, value + more, 12)) == 12
