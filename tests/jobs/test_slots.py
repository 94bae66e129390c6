"""A plan beside its cluster: rows that are alike are counted, and add up to what a walk over all replicas finds."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.jobs.entries import ENTRY
from rebalance_lib.jobs.files import REPLICAS
from rebalance_lib.jobs.slots import Cluster
from rebalance_lib.planner import Mode, Request

BALANCE = Request(Mode.BALANCE)
BROKERS = pa.table({"broker": [1, 2, 3, 4], "rack": ["a", "b", "b", "a"], "alive": [True, True, True, False]})


def replicas(lists, sizes=None, adding=()):
    """Rows of a snapshot: of each partition its brokers, the leader first."""
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "position": position,
            "broker": broker,
            "leader": position == 0,
            "adding": (topic, partition, broker) in adding,
            "internal": False,
            "size_bytes": 5 if sizes is None else sizes.get((topic, partition, broker)),
            "log_dir": f"/d{broker}",
        }
        for (topic, partition), brokers in lists.items()
        for position, broker in enumerate(brokers)
    ]
    return pa.Table.from_pylist(rows, REPLICAS)


def plan(lists, log_dirs=None):
    rows = [
        {"topic": topic, "partition": partition, "replicas": brokers, "log_dirs": (log_dirs or {}).get(partition)}
        for (topic, partition), brokers in lists.items()
    ]
    table = pa.Table.from_pylist(rows, ENTRY)
    return table.append_column("entry", pa.array(range(len(rows)), pa.int64()))


def beside(before, after, request=BALANCE, brokers=BROKERS, **options):
    cluster = Cluster.of(replicas(before, **options), brokers)
    return {kind: table.to_pylist() for kind, table in cluster.beside("full", plan(after), request).items()}


def of(row, *names):
    return tuple(row[name] for name in names)


def test_the_example():
    found = beside({("foo", 0): [1, 2], ("foo", 1): [1, 2]}, {("foo", 0): [1, 3], ("foo", 1): [1, 3]})
    slots = sorted(
        of(row, "broker", "comes", "goes", "leads", "led", "number", "bytes", "copied") for row in found["slots"]
    )
    assert slots == [
        (1, False, False, True, True, 2, 10, 0),
        (2, False, True, False, False, 2, 10, 0),
        (3, True, False, False, False, 2, 0, 10),
    ]
    (entry,) = found["entries"]
    assert of(entry, "number", "first", "adds", "drops", "leader_changes") == (2, "foo-0", True, True, False)
    (topic,) = found["topic_entries"]
    assert of(topic, "topic", "number", "lowest", "highest") == ("foo", 2, 0, 1)


def test_brokers_of_one_rack_are_alike_and_partitions_with_the_same_racks_one_row():
    found = beside({("foo", 0): [1, 2], ("foo", 1): [1, 3]}, {("foo", 0): [1, 3], ("foo", 1): [1, 2]})
    rows = sorted(of(row, "broker", "before", "after", "number", "first") for row in found["rack_slots"])
    assert rows == [(1, 0, 1, 2, "foo-0"), (1, 1, 0, 2, "foo-0"), (2, 0, 1, 2, "foo-0"), (2, 1, 0, 2, "foo-0")]
    dead = beside({("foo", 0): [4, 2]}, {("foo", 0): [1, 2]})["rack_slots"]
    assert sorted(of(row, "broker", "before") for row in dead) == [(1, 0), (2, 0), (2, 1), (4, 1)]


def test_a_size_that_is_not_known_is_the_largest_and_what_is_being_added_does_not_count():
    sizes = {("foo", 0, 1): 7, ("foo", 0, 2): None, ("foo", 0, 3): 9}
    rows = replicas({("foo", 0): [3, 1, 2]}, sizes, {("foo", 0, 3)})
    loads = Cluster.of(rows, BROKERS).loads().to_pylist()
    assert loads == [
        {"broker": 1, "replicas": 1, "bytes": 7, "leaders": 1},
        {"broker": 2, "replicas": 1, "bytes": 7, "leaders": 0},
    ]


def test_what_is_wrong_with_an_entry_is_seen():
    found = beside({("foo", 0): [1, 2]}, {("foo", 0): [3, 3], ("foo", 9): [1], ("bar", 0): []})["entries"]
    assert {row["first"]: of(row, "known", "distinct", "before", "after") for row in found} == {
        "foo-0": (True, False, 2, 2),
        "foo-9": (False, True, 0, 1),
        "bar-0": (False, False, 0, 0),
    }


def test_an_entry_that_is_there_twice_is_seen():
    twice = pa.concat_tables([plan({("foo", 0): [1, 2]})] * 2)
    cluster = Cluster.of(replicas({("foo", 0): [1, 2]}), BROKERS)
    (entry,) = cluster.beside("full", twice, BALANCE)["entries"].to_pylist()
    assert of(entry, "repeated", "number") == (True, 2)


@pytest.mark.parametrize(("after", "expected"), [([3, 2], True), ([2, 3], False), ([1, 2], False)])
def test_replaced_is_the_same_list_with_the_other_broker(after, expected):
    request = Request(Mode.REPLACE, brokers=(1,), replacements=(3,))
    (entry,) = beside({("foo", 0): [1, 2]}, {("foo", 0): after}, request)["entries"]
    assert entry["replaced"] is expected


def test_log_dirs_that_a_plan_names():
    cluster = Cluster.of(replicas({("foo", 0): [1, 2], ("foo", 1): [1, 2]}), BROKERS)
    named = plan({("foo", 0): [1, 3], ("foo", 1): [1, 3]}, {0: ["/x", "any"]})
    rows = cluster.beside("full", named, BALANCE)["slots"].to_pylist()
    assert Counter((row["broker"], row["log_dir"], row["named"]) for row in rows) == {
        (1, "/d1", "/x"): 1,
        (1, "/d1", None): 1,
        (2, "/d2", None): 1,
        (3, None, None): 1,
    }


def test_replicas_that_a_plan_does_not_name():
    cluster = Cluster.of(replicas({("foo", 0): [1, 2], ("foo", 1): [2, 1], ("bar", 0): [2, 3]}), BROKERS)
    rows = cluster.unplanned("full", plan({("foo", 0): [1, 3]}), [2]).to_pylist()
    assert {of(row, "topic", "broker", "number", "first") for row in rows} == {
        ("foo", 2, 1, "foo-1"),
        ("bar", 2, 1, "bar-0"),
    }


LISTS = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True)
PARTITIONS = st.tuples(st.sampled_from(["a", "b-c", "b"]), st.integers(0, 3))


@given(st.dictionaries(PARTITIONS, LISTS, max_size=8), st.dictionaries(PARTITIONS, LISTS, max_size=8), st.data())
def test_slots_add_up_to_what_a_walk_over_all_replicas_finds(before, after, data):
    sizes = {(*key, broker): data.draw(st.integers(0, 9)) for key, brokers in before.items() for broker in brokers}
    found = beside(before, after, sizes=sizes)
    expected: Counter = Counter()
    for key, new in after.items():
        old = before.get(key, [])
        copy = sizes[(*key, old[0])] if old else 0
        for broker in {*old, *new}:
            comes, goes = broker not in old, broker not in new
            flags = (broker, comes, goes, broker == new[0], broker in old[:1])
            expected[(*flags, "number")] += 1
            expected[(*flags, "bytes")] += 0 if comes else sizes[(*key, broker)]
            expected[(*flags, "copied")] += copy if comes else 0
    seen: Counter = Counter()
    for row in found["slots"]:
        for name in ("number", "bytes", "copied"):
            seen[(*of(row, "broker", "comes", "goes", "leads", "led"), name)] += row[name]
    assert +seen == +expected
    assert sum(row["number"] for row in found["entries"]) == len(after)
    moving = sum(row["number"] * row["after"] for row in found["rack_slots"])
    assert moving == sum(len(new) for key, new in after.items() if key in before and {*new} != {*before[key]})
