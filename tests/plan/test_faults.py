"""The fault that is reported is the first in the file, whatever rule it breaks."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.plan import PLAN_SCHEMA
from rebalance_lib.plan.faults import first_fault
from rebalance_lib.topology.naming import topic_problem
from tests.plan.strategies import entry_lists


def table(*rows):
    names = PLAN_SCHEMA.names
    entries = [dict(zip(names, row, strict=False)) for row in rows]
    return pa.Table.from_pylist(entries, pa.schema([(field.name, field.type) for field in PLAN_SCHEMA]))


def test_the_worked_example():
    expected = "entry 1 (foo-1): replicas is [3, 3]: broker 3 is listed twice; list each broker once"
    assert str(first_fault(table(("foo", 0, [1, 2]), ("foo", 1, [3, 3])))) == expected


def test_a_message_stays_readable_whatever_was_given():
    assert len(str(first_fault(table(("x" * 100_000, 0, [1]))))) < 400
    assert len(str(first_fault(table(("foo", 0, [7] * 100_000))))) < 400


@pytest.mark.parametrize("name", ["a", "__consumer_offsets", "A.b_c-9", "...", "x" * 249])
def test_names_that_kafka_gives_to_topics(name):
    assert topic_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "x" * 250])
def test_names_that_kafka_gives_to_no_topic(name):
    assert topic_problem(name) is not None


BAD = [
    ("bad topic", 0, [1], None),
    ("bad", -1, [1], None),
    ("bad", 0, [], None),
    ("bad", 0, [1, 1], None),
    ("bad", 0, [-1], None),
    ("bad", 0, [1], ["relative"]),
    ("bad", 0, [1], []),
]


@given(entry_lists, st.lists(st.tuples(st.integers(0, 8), st.sampled_from(BAD)), min_size=1, max_size=3))
def test_the_earliest_entry_with_a_fault_is_named(entries, bad):
    rows = [tuple(entry.get(name) for name in PLAN_SCHEMA.names) for entry in entries]
    for place, row in bad:
        rows.insert(place, row)
    fault = first_fault(table(*rows))
    assert fault is not None
    assert fault.entry == next(number for number, row in enumerate(rows) if row in BAD)


@given(entry_lists)
def test_legal_entries_have_no_fault(entries):
    assert first_fault(table(*(tuple(entry.get(name) for name in PLAN_SCHEMA.names) for entry in entries))) is None
