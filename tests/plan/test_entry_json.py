"""Entries are written by whole columns and still are the JSON that the standard library would write."""

import json

import pyarrow as pa
from hypothesis import given

from rebalance_lib.plan import Plan, entry_json
from rebalance_lib.topology import TopicPartition
from tests.plan.strategies import entry_lists


def texts(plan):
    return "\n".join(entry_json.entry_texts(plan.entries, "\n")).split("\n")


def test_the_worked_example():
    plan = Plan.from_assignment({TopicPartition("foo", 0): [1, 2]})
    assert texts(plan) == ['{"topic":"foo","partition":0,"replicas":[1,2]}']


@given(entry_lists.filter(bool))
def test_each_entry_is_compact_json(entries):
    plan = Plan.from_table(pa.Table.from_pylist(entries))
    for text, entry in zip(texts(plan), plan, strict=True):
        fields = {"topic": entry.topic, "partition": entry.partition, "replicas": entry.replicas}
        if entry.log_dirs is not None:
            fields["log_dirs"] = entry.log_dirs
        assert text == json.dumps(fields, separators=(",", ":"))


def test_entries_are_written_some_at_a_time_and_none_is_lost(monkeypatch):
    monkeypatch.setattr(entry_json, "_ROWS_AT_A_TIME", 3)
    plan = Plan.from_assignment({TopicPartition("foo", number): [1, 2] for number in range(7)})
    assert [some.count("topic") for some in entry_json.entry_texts(plan.entries, ",")] == [3, 3, 1]
    assert [json.loads(text)["partition"] for text in texts(plan)] == list(range(7))
