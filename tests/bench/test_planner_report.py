"""The tables keep every planner: with its figures, or with the reason why there are none."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from bench.clusters import Parameters, generate
from bench.planner import Result
from bench.planner_report import (
    CHOSEN_HEAD,
    GOALS_HEAD,
    GOALS_PART,
    HEAD,
    KERNEL,
    PEER_GOALS_ROW,
    PLANNERS_PART,
    render,
)
from bench.score import score
from rebalance_lib.plan import Plan

CLUSTER = generate(Parameters(scenario="expand", partitions=200, brokers=6))


def result(planner, **more):
    return asdict(Result(planner=planner, scenario="expand", partitions=200, brokers=6, **more))


@pytest.fixture
def docs(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "benchmarks.md").write_text("<!-- planner: begin -->\n<!-- planner: end -->\n")
    figures = score(CLUSTER, Plan.from_assignment({}))
    results = [
        result("before", figures=figures),
        result("this project", seconds=0.5, whole_seconds=1.0, peak_bytes=10**8, figures=figures),
        result("fast", seconds=0.25, whole_seconds=0.75, peak_bytes=10**8, figures=figures),
        result("slow", whole_seconds=120.1, peak_bytes=10**8, reason="stopped after 120 s"),
        result("absent", reason="not installed: no such version"),
    ]
    render({"command": "--seed 1", "limit": 120, "results": results}, tmp_path)
    return tmp_path


def rows_of(docs):
    lines = (docs / "benchmarks.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: dict(zip(HEAD, row, strict=True)) for row in cells}


def test_every_planner_has_its_row(docs):
    rows = rows_of(docs)
    assert rows["this project"]["planning"] == "0.500 s"
    assert rows["this project"]["ratio"] == "1.00"
    assert rows["fast"]["ratio"] == "0.50"
    assert rows["slow"]["planning"] == "stopped after 120 s"
    assert rows["absent"]["planning"] == "not installed: no such version"


def test_the_cluster_as_it_is_has_its_balance_and_no_cost(docs):
    before = rows_of(docs)["before"]
    assert before["planning"] == before["bytes moved"] == before["faults"] == ""
    assert float(before["disk"]) > 1


def test_charts_show_who_planned_or_was_stopped_and_no_one_else(docs):
    text = (docs / "benchmarks.md").read_text()
    images = re.findall(r"\((images/[^)]+)\)", text)
    assert len(images) == 2
    chart = (docs / "images" / "planner-200-time.svg").read_text()
    assert "slow" in chart
    assert "stopped after 120 s" in chart
    assert "absent" not in chart


def rendered(tmp_path, part, head, results):
    (tmp_path / "benchmarks.md").write_text(f"<!-- {part}: begin -->\n<!-- {part}: end -->\n")
    render({"command": "--seed 1", "limit": 120, "results": results}, tmp_path, part)
    lines = (tmp_path / "benchmarks.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells[0] == list(head)
    assert {len(row) for row in cells} == {len(head)}
    return {row[0]: row for row in cells}


def test_goals_that_nothing_is_known_of_stay_empty(tmp_path):
    figures = score(CLUSTER, Plan.from_assignment({}))
    results = [
        result("before", figures=figures),
        result("this project", seconds=0.5, whole_seconds=1.0, figures=figures),
        result("absent", reason="not installed: no such version"),
    ]
    rows = rendered(tmp_path, GOALS_PART, GOALS_HEAD, results)
    ours = dict(zip(GOALS_HEAD, rows["this project"], strict=True))
    assert ours["network in"] == ""
    assert ours["disk"] == f"{figures['goals']['disk']:.3f}"
    assert rows["before"][GOALS_HEAD.index("disk")] == ours["disk"]
    assert rows["absent"][1] == "not installed: no such version"


def test_a_peer_is_as_many_times_slower_as_it_takes_a_processor_longer(tmp_path):
    figures = score(CLUSTER, Plan.from_assignment({}))
    results = [
        result("before", figures=figures),
        result(PEER_GOALS_ROW, seconds=0.4, whole_seconds=9.0, whole_cpu_seconds=2.0, figures=figures),
        result(KERNEL, seconds=0.1, cpu_seconds=0.05, whole_seconds=9.0, whole_cpu_seconds=2.0, figures=figures),
        result("peer", seconds=90.0, cpu_seconds=5.0, whole_seconds=91.0, whole_cpu_seconds=6.0, figures=figures),
    ]
    rows = rendered(tmp_path, PLANNERS_PART, CHOSEN_HEAD, results)
    assert rows["peer"][CHOSEN_HEAD.index("over kernel")] == "100.00"
    assert rows["peer"][CHOSEN_HEAD.index("over ours")] == "3.00"
