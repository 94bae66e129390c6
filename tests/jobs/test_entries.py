"""What a plan file may look like to the checks: an entry a line, and nothing else."""

from __future__ import annotations

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.jobs import entries
from rebalance_lib.jobs.entries import entries_of
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


def test_what_is_written_is_read():
    plan = Plan.from_entries([PlanEntry("a", 0, (1, 2)), PlanEntry("b", 7, (3,), ("/d1",))])
    for size in (1, 7, 1000):
        assert read(format_plan(plan), size) == [
            {"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": None},
            {"topic": "b", "partition": 7, "replicas": [3], "log_dirs": ["/d1"]},
        ]
        assert read(format_plan(Plan.from_entries([])), size) == []


def read(text, size):
    pieces = (text[begin : begin + size].encode() for begin in range(0, len(text), size))
    return [row for table in entries_of(pieces) for row in table.to_pylist()]


def test_a_large_file_is_read_some_entries_at_a_time(monkeypatch):
    monkeypatch.setattr(entries, "_BLOCK", 100)
    plan = Plan.from_entries([PlanEntry("a", number, (1, 2)) for number in range(50)])
    text = format_plan(plan)
    tables = list(entries_of(text[begin : begin + 64].encode() for begin in range(0, len(text), 64)))
    assert len(tables) > 10
    assert [row["partition"] for table in tables for row in table.to_pylist()] == list(range(50))


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_plan_is_refused(name):
    text, why = WRONG[name]
    with pytest.raises(InvalidInputError, match=why):
        read(text, 50)
