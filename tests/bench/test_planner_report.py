"""The tables keep every planner: with its figures, or with the reason why there are none."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from bench.clusters import Parameters, generate
from bench.planner import Result
from bench.planner_report import HEAD, render
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
