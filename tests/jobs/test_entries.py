"""What a plan file may look like to the checks: an entry a line, and nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rebalance_lib.jobs import entries
from rebalance_lib.plan import Plan, PlanEntry, format_plan

GOOD = """{"version":1,"partitions":[
{"topic":"t","partition":0,"replicas":[1,2]},
{"topic":"t","partition":1,"replicas":[2,1]}
]}
"""
WRONG = {
    "no plan": ("null\n", "is not how a plan begins"),
    "no frame": ('{"topic":"t","partition":0,"replicas":[1]}\n', "is not how a plan begins"),
    "nothing but null": (GOOD.replace('{"topic":"t","partition":0,"replicas":[1,2]}', "null"), "on a line of its own"),
    "no replicas": (GOOD.replace(',"replicas":[1,2]', ""), "lacks its topic, its partition or its replicas"),
    "no number": (GOOD.replace('"partition":0', '"partition":"0"'), "JSON parse error"),
    "another field": (GOOD.replace('"partition":0', '"partition":0,"leader":1'), "unexpected field"),
    "two on a line": (GOOD.replace("},\n{", "}{"), "shares its line with another"),
    "no comma": (GOOD.replace("},\n{", "}\n{"), "no comma behind it"),
    "half a list": (GOOD.replace("[1,2]", "[1,null]"), "lacks its topic, its partition or its replicas"),
    "half an entry": (GOOD.replace(",2]}", "}"), "JSON parse error"),
}


def entries_of(text, lines=100):
    """All rows, from blocks of so many lines."""
    split = text.encode().splitlines(keepends=True)
    blocks = [b"".join(split[start : start + lines]) for start in range(0, len(split), lines)]
    return pa.concat_tables(entries.entries_of(blocks))


@pytest.mark.parametrize("lines", [1, 2, 3, 4, 100])
def test_blocks_of_a_file_are_read_one_after_the_other(lines):
    plan = Plan.from_entries([PlanEntry("t", number, (1, 2)) for number in range(7)])
    rows = entries_of(format_plan(plan), lines).to_pylist()
    assert [(row["partition"], row["line"]) for row in rows] == [(number, None) for number in range(7)]
    cut = entries_of(format_plan(plan).removesuffix("]}\n"), lines).to_pylist()
    assert any(row["line"] is not None for row in cut)


def test_what_is_written_is_read():
    plan = Plan.from_entries([PlanEntry("a", 0, (1, 2)), PlanEntry("b", 7, (3,), ("/d1",))])
    rows = entries_of(format_plan(plan)).to_pylist()
    assert [(row["topic"], row["partition"], row["replicas"], row["log_dirs"], row["line"]) for row in rows] == [
        ("a", 0, [1, 2], None, None),
        ("b", 7, [3], ["/d1"], None),
    ]
    assert entries_of(format_plan(Plan.from_entries([]))).num_rows == 0


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_plan_is_told_in_one_row(name):
    text, why = WRONG[name]
    (row,) = entries_of(text).to_pylist()
    assert why in row["line"]
    assert row["topic"] is None
