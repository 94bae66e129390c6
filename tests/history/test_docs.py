"""The example of the docs is what the code computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import LoadOptions, Statistic, group_reads, planned_loads
from tests.history.samples import Row, moment, write

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "history.md").read_text(encoding="utf-8")


def table(first):
    """The rows of the table whose header begins with this cell."""
    body = re.search(rf"^\| {re.escape(first)} \|.*\n\|[-:| ]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)[1]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in body.splitlines()]


@pytest.fixture
def history():
    by_second = {}
    for second, size, offsets, *committed in table("second"):
        start, end = map(int, offsets.split(".."))
        groups = {group: int(at) for group, at in zip(("billing", "audit"), committed, strict=True) if at}
        by_second[int(second)] = [Row("orders", 0, 1, True, int(size), start, end, groups)]
    history = Artifacts("memory://docs-of-history")
    write(history, "c", by_second)
    return history


def test_the_loads_of_the_example(history):
    rows = table("`--load`")
    assert [row[0] for row in rows] == [f"`{one}`" for one in Statistic]
    for name, *expected in rows:
        options = LoadOptions(statistic=Statistic(name.strip("`")), horizon_days=1)
        (found,) = planned_loads(history, "c", moment(300).isoformat(), options).to_pylist()
        values = [found[column] for column in ("write_rate", "read_rate", "size_bytes")]
        assert values == [pytest.approx(float(value), abs=0.001) for value in expected]


def test_what_each_group_of_the_example_reads(history):
    rows = group_reads(history, "c", moment(300).isoformat()).to_pylist()
    assert {row["group"]: (round(row["read_rate"], 3), row["resets"]) for row in rows} == {
        "billing": (8.667, 1),
        "audit": (13, 0),
    }
