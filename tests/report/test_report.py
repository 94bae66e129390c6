"""What people read of a plan is what the plan does."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rebalance_lib.approval.limits import ApprovalLimits
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.plan_result import forecast_line, next_step
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import Plan, parse_plan
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Choice, ClusterModel
from rebalance_lib.report import (
    broker_table,
    forecast,
    publish,
    publish_plan,
    render_report,
    render_review,
    summarize,
    with_groups,
)
from rebalance_lib.report.durations import human_seconds
from rebalance_lib.report.fleet import fleet_rows, render_fleet
from rebalance_lib.report.moves import moves_table
from rebalance_lib.report.units import human_bytes, text_bar
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups, TopicPartition
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


def choice_of(plan):
    return Choice.given(ClusterModel.of(SNAPSHOT), plan)


def figures(summary, when):
    return [(b[when]["bytes"], b[when]["replicas"], b[when]["leaders"]) for b in summary["brokers"]]


def test_a_small_plan_by_hand():
    summary = summarize(choice_of(PLAN))
    assert figures(summary, "before") == [(40, 2, 1), (40, 2, 1), (0, 0, 0)]
    assert figures(summary, "after") == [(30, 1, 1), (40, 2, 0), (10, 1, 1)]
    assert (summary["partitions_changed"], summary["replicas_moved"], summary["bytes_moved"]) == (2, 1, 10)
    assert (summary["leaders_moved"], summary["order_only"]) == (2, 1)
    assert summary["largest_moves"][0] == {"partition": "foo-0", "from": [1, 2], "to": [3, 2], "bytes": 10}


def test_an_empty_plan_changes_nothing():
    summary = summarize(choice_of(Plan.from_assignment({})))
    assert figures(summary, "before") == figures(summary, "after")
    assert summary["bytes_moved"] == 0
    assert summary["largest_moves"] == []


def test_of_many_moves_of_one_size_the_first_are_shown():
    replicas = [("foo", number, 0, 1, True, False, 5 + (number == 40)) for number in range(60)]
    model = ClusterModel.of(snapshot_of([(1, None, True), (2, None, True)], replicas))
    plan = Plan.from_assignment({TopicPartition("foo", number): [2] for number in range(60)})
    shown = summarize(Choice.given(model, plan))["largest_moves"]
    assert [one["partition"] for one in shown] == ["foo-40", *(f"foo-{n}" for n in range(9))]


@given(st.permutations([1, 2, 3]), st.permutations([1, 2, 3]))
def test_bytes_and_replicas_are_neither_made_nor_lost(first, second):
    plan = Plan.from_assignment({TopicPartition("foo", 0): first[:2], TopicPartition("foo", 1): second[:2]})
    after = figures(summarize(choice_of(plan)), "after")
    assert tuple(map(sum, zip(*after, strict=True))) == (80, 4, 2)


def test_the_review_names_the_digest_and_the_largest_move():
    text = render_review(summarize(choice_of(PLAN)))
    assert PLAN.digest in text
    assert "| `foo-0` | 1, 2 | 3, 2 | 10 B |" in text
    assert "| 3 | `a` | 0 B | 10 B | 0 | 1 | 0 | 1 |" in text


def test_the_review_forecasts_the_plan_at_its_pace():
    slow = Pace(throttle=1)
    summary = summarize(choice_of(PLAN), slow)
    assert summary["pace"]["throttle"] == 1
    # 10 bytes at nine tenths of a throttle of 1 byte a second, of which the first answer to a fetch waits for nothing.
    assert summary["forecast"]["seconds"] == summary["candidates"]["given"]["seconds"] == pytest.approx(0.5)
    text = render_review(summary)
    assert "**Forecast**: 0.5 s at a throttle of 1 B/s on each broker." in text
    assert "| 1 | 0 s | 0.5 s | 2 | 10 B | 0 s |" in text
    assert "| 3 | not known | 0 B | 10 B | 0 s | 10 B |" in text
    assert "- min.insync.replicas is not known" in text
    assert "without a throttle" in render_review(summarize(choice_of(PLAN)))


def test_a_large_plan_is_outlined_and_the_busiest_broker_tells_its_time(monkeypatch):
    monkeypatch.setattr(forecast, "CHANGES_TO_SIMULATE", 0)
    found = summarize(choice_of(PLAN), Pace(throttle=1))["forecast"]
    assert (found["exact"], found["seconds"]) == (False, pytest.approx(10 / 0.9 + 0.5))


def test_known_write_rates_are_part_of_the_forecast():
    model = ClusterModel.of(SNAPSHOT, pa.table({"topic": ["foo"], "partition": [0], "write_rate": [5.0]}))
    assumed = summarize(Choice.given(model, PLAN))["forecast"]["assumptions"]
    assert any("What is written meanwhile is copied too" in line for line in assumed)


@pytest.mark.parametrize("simulated", [forecast.CHANGES_TO_SIMULATE, 0])
def test_a_plan_that_never_finishes_at_its_throttle_gives_no_time(monkeypatch, simulated):
    monkeypatch.setattr(forecast, "CHANGES_TO_SIMULATE", simulated)
    rows = [("foo", 0, 0, 1, True, False, 10**8), ("foo", 1, 0, 1, True, False, 0)]
    snapshot = snapshot_of([(1, None, True), (2, None, True)], rows)
    model = ClusterModel.of(snapshot, pa.table({"topic": ["foo"], "partition": [0], "write_rate": [5e6]}))
    choice = Choice.given(model, Plan.from_assignment({TopicPartition("foo", number): [2] for number in (0, 1)}))
    summary = summarize(choice, Pace(throttle=4_000_000))
    one = summary["candidates"]["given"]
    assert summary["forecast"]["seconds"] is one["seconds"] is None
    assert (one["forecast"]["never"]["count"], one["forecast"]["never"]["least_throttle"]) == (1, 5_700_000)
    words = (
        "the plan never finishes at a throttle of 4 MB/s on each broker: 1 of 2 partitions are written to as fast as "
        "they are copied, or wait for such ones (foo-0); a throttle of 5.7 MB/s (5700000) would do."
    )
    assert f"Forecast: {words}" in one["risks"]
    text = render_review(summary)
    assert f"**Forecast**: {words}" in text
    assert "| 1 | 0 s | never | 2 | 100 MB | \u2013 |" in text
    assert ApprovalLimits(max_bytes=10**9, max_seconds=60).objections(summary)[0] == "seconds inf is above 60"
    assert "never" in render_fleet(fleet_rows({"c": summary}))
    said = forecast_line(summary["forecast"], summary["pace"])
    assert said == f"Forecast: {words[:-1]}; the review has its waves."
    assert next_step(summary | {"mode": "balance"}, "out").endswith("--throttle 5700000")
    assert summarize(choice, Pace(throttle=5_700_000))["forecast"]["seconds"] > 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "never"),
        (0, "0 s"),
        (0.44, "0.4 s"),
        (42.4, "42 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (7500, "2 h 5 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_times_as_people_read_them(seconds, text):
    assert human_seconds(seconds) == text


def test_names_from_outside_cannot_put_code_on_the_page():
    summary = summarize(choice_of(PLAN))
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
        files = sorted(str(p.relative_to(tmp_path / "plan")) for p in (tmp_path / "plan").rglob("*") if p.is_file())
        assert files == [
            "brokers_before_after.parquet",
            "candidates/given/plan.json",
            "moves.parquet",
            "plan.json",
            "review.md",
            "summary.json",
        ]
        assert sorted(p.name for p in tmp_path.iterdir()) == ["plan"]
    assert parse_plan(directory.read_text("plan.json")) == PLAN
    assert json.loads(directory.read_text("summary.json"))["digest"] == PLAN.digest


def test_the_broker_table_fits_a_terminal_of_80_columns():
    brokers = summarize(choice_of(PLAN))["brokers"]
    console = Console(width=80)
    with console.capture() as printed:
        console.print(broker_table(brokers, "Brokers"))
    assert "…" not in printed.get()
    assert "40 B ████████" in printed.get()
    assert max(map(len, printed.get().splitlines())) <= 80


def test_each_copy_is_a_row_beside_the_replica_it_replaces():
    more = Plan.from_assignment({TopicPartition("foo", 0): [3, 2, 1], TopicPartition("foo", 1): [3, 2]})
    rows = moves_table(choice_of(more).recommended.outcome).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("foo", 0, None, 3, 10, None, None),
        ("foo", 1, 1, 3, 30, None, None),
    ]


def test_a_plan_for_what_the_cluster_lacks_is_refused():
    with pytest.raises(InvalidInputError, match="foo-9 is in the plan, but not in the snapshot"):
        choice_of(Plan.from_assignment({TopicPartition("foo", 9): [1]}))
    with pytest.raises(InvalidInputError, match="foo-1: the cluster has no broker 8"):
        choice_of(Plan.from_assignment({TopicPartition("foo", 0): [1], TopicPartition("foo", 1): [8]}))


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "render_review", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        publish_plan(Artifacts(tmp_path.as_uri()) / "plan", PLAN, SNAPSHOT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1536, "1.54 kB"), (999_600, "1 MB"), (123_456_789, "123 MB")],
)
def test_bytes_as_people_read_them(count, text):
    assert human_bytes(count) == text


@given(st.integers(0, 10**18), st.integers(0, 10**18))
def test_a_bar_is_as_wide_as_asked_and_never_wider(value, more):
    assert len(text_bar(value, value + more, 12)) == 12


HOSTILE = "late`|\n![x](http://elsewhere/)\x1b[2J"
SHOWN = "`late'\\|�![x](http://elsewhere/)�[2J`"


def test_names_that_clients_choose_are_shown_in_a_review_and_not_obeyed():
    offsets = [{"group": HOSTILE, "topic": "foo", "partition": 0, "committed": 0}]
    groups = Groups(
        pa.Table.from_pylist([{"group": HOSTILE, "type": "classic", "state": "Empty"}], schema=GROUP_MEMBERS),
        pa.Table.from_pylist(offsets, schema=GROUP_OFFSETS),
    )
    text = render_review(summarize(with_groups(choice_of(PLAN), groups)))
    assert f"| {SHOWN} | 0 | 1 | 0 | 0 |" in text


def test_racks_log_dirs_and_patterns_are_shown_in_a_review_and_not_obeyed():
    summary = summarize(choice_of(PLAN), Pace(throttle=1))
    summary |= {"mode": "topics", "request": {"mode": "topics", "topics": [HOSTILE], "excluded_topics": [HOSTILE]}}
    for one in summary["brokers"]:
        one["rack"] = HOSTILE
    for one in summary["forecast"]["log_dirs"]:
        one["path"] = HOSTILE
    text = render_review(summary)
    assert f"; topics {SHOWN}; excluded topics {SHOWN}." in text
    assert f"| 3 | {SHOWN} | 0 B | 10 B | 0 | 1 | 0 | 1 |" in text
    assert f"| 3 | {SHOWN} | 0 B | 10 B | 0 s | 10 B |" in text
