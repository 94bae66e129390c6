"""The load of a partition is what its samples say, and nothing that they do not say."""

from __future__ import annotations

from itertools import count, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history import (
    GROUP_READS,
    HISTORY,
    LOADS,
    Share,
    files_between,
    read_group_reads,
    read_loads,
    shares,
    shares_of,
)
from rebalance_lib.topology import TopicPartition
from tests.history.recomputed import RATES, recomputed, recomputed_groups
from tests.history.samples import EXAMPLE, Row, window, write

DAY = 24 * 3600
FRESH = count()


def loads_of(by_second, cuts=None):
    """The loads of a history, by partition; ``cuts`` are the partitions between which it is cut."""
    history = Artifacts(f"memory://loads-{next(FRESH)}")
    write(history, "c", by_second)
    files = tuple(files_between(history, "c", *window(DAY)))
    ends = [None, *sorted(cuts or []), None]
    tables = [read_loads(history, Share("c", files, low, high)) for low, high in pairwise(ends)]
    table = pa.concat_tables(tables)
    assert table.schema.equals(LOADS)
    rows = table.to_pylist()
    found = {(row["topic"], row["partition"]): row for row in rows}
    assert list(found) == sorted(found)
    assert len(found) == len(rows)
    return found


def one(by_second):
    (found,) = loads_of(by_second).values()
    return found


def test_the_example_of_the_design():
    assert one(EXAMPLE) == {
        "cluster": "c",
        "topic": "orders",
        "partition": 0,
        "size_bytes": 300,
        "size_p95": pytest.approx(1900),
        "growth": pytest.approx(700 / 300),
        "growth_p95": pytest.approx(9.2),
        "write_rate": pytest.approx(1700 / 300),
        "write_rate_p95": pytest.approx(9.5),
        "write_rate_last": pytest.approx(2),
        "read_rate": None,
        "read_rate_p95": None,
        "read_rate_last": None,
        "groups_reset": None,
        "samples": 5,
    }


def test_with_one_snapshot_rates_are_unknown():
    found = one({0: [Row("t", 0, 1, True, 500, 0, 5)]})
    assert (found["size_bytes"], found["size_p95"], found["samples"]) == (500, 500, 1)
    assert [found[name] for name in RATES[1:]] == [None] * 9


def test_the_leaders_replica_counts_through_a_change_of_leaders():
    found = one(
        {
            0: [Row("t", 0, 1, True, 100, 0, 1), Row("t", 0, 2, False, 7, 0, 1)],
            10: [Row("t", 0, 1, False, 9, 0, 2), Row("t", 0, 2, True, 200, 0, 2)],
        }
    )
    assert (found["size_bytes"], found["growth"], found["write_rate"]) == (200, 10, 10)


def test_without_a_leader_there_is_no_sample_and_the_interval_is_longer():
    found = one(
        {
            0: [Row("t", 0, 1, True, 100, 0, 1)],
            10: [Row("t", 0, 1, False, 999, None, None)],
            20: [Row("t", 0, 1, True, None, 0, 3)],
            40: [Row("t", 0, 1, True, 500, 0, 5)],
        }
    )
    assert (found["samples"], found["growth"], found["write_rate"]) == (2, 10, 10)


def test_what_retention_deleted_is_growth_below_zero_and_no_less_written():
    found = one({0: [Row("t", 0, 1, True, 1000, 0, 10)], 10: [Row("t", 0, 1, True, 500, 6, 11)]})
    assert (found["growth"], found["write_rate"]) == (-50, 10)


def test_without_offsets_growth_is_known_and_the_write_rate_is_not():
    found = one({0: [Row("t", 0, 1, True, 100, None, None)], 10: [Row("t", 0, 1, True, 200, None, None)]})
    assert (found["growth"], found["write_rate"], found["write_rate_p95"]) == (10, None, None)


def test_where_no_start_offset_is_known_intervals_without_records_do_not_count_as_idle():
    ends = {0: 100, 10: 100, 20: 140, 30: 140}
    found = one({at: [Row("t", 0, 1, True, 100 + at, None, end)] for at, end in ends.items()})
    assert (found["growth"], found["write_rate"], found["write_rate_last"]) == (1, None, None)


def test_an_idle_partition_is_written_at_zero_even_where_nothing_is_left():
    found = one({0: [Row("t", 0, 1, True, 100, 0, 10)], 10: [Row("t", 0, 1, True, 0, 10, 10)]})
    assert (found["growth"], found["write_rate"]) == (-10, 0)


def test_partitions_come_and_go():
    found = loads_of(
        {
            0: [Row("b", 0, 1, True, 1, 0, 1)],
            10: [Row("a", 0, 1, True, 5, 0, 1), Row("b", 0, 1, True, 2, 0, 2), Row("b", 1, 1, True, 7, 0, 1)],
            20: [Row("b", 1, 1, True, 17, 0, 2)],
        }
    )
    assert {key: (row["size_bytes"], row["growth"], row["samples"]) for key, row in found.items()} == {
        ("a", 0): (5, None, 1),
        ("b", 0): (2, 0.1, 2),
        ("b", 1): (17, 1.0, 2),
    }


offsets = st.one_of(st.none(), st.integers(0, 60))
rows = st.builds(
    Row,
    topic=st.sampled_from(["a", "b", "b.c"]),
    partition=st.integers(0, 2),
    broker=st.integers(1, 3),
    leader=st.booleans(),
    size=st.one_of(st.none(), st.integers(0, 10_000)),
    start=offsets,
    end=offsets,
    committed=st.one_of(st.none(), st.dictionaries(st.sampled_from("xyz"), st.integers(0, 60))),
)


def consistent(found):
    """One row for a replica, and one leader at most of a partition."""
    replicas, led = {}, set()
    for row in found:
        leads = row.leader and (row.topic, row.partition) not in led
        if (row.topic, row.partition, row.broker) not in replicas:
            replicas[row.topic, row.partition, row.broker] = row._replace(leader=leads)
            led |= {(row.topic, row.partition)} if leads else set()
    return list(replicas.values())


histories = st.dictionaries(st.integers(0, 500), st.lists(rows, max_size=12).map(consistent), min_size=1, max_size=9)
partitions = st.builds(TopicPartition, st.sampled_from(["a", "b", "b.b", "z"]), st.integers(0, 3))


@given(by_second=histories, cuts=st.sets(partitions, max_size=3))
def test_loads_are_what_a_plain_recomputation_gives_however_they_are_cut(by_second, cuts):
    found = loads_of(by_second, cuts)
    expected = recomputed(by_second)
    assert set(found) == set(expected)
    for key, load in expected.items():
        for name, value in load.items():
            assert found[key][name] == nearly(value), (key, name)


@given(by_second=histories, cuts=st.sets(partitions, max_size=3))
def test_what_each_group_reads_is_what_a_plain_recomputation_gives_however_it_is_cut(by_second, cuts):
    history = Artifacts(f"memory://loads-{next(FRESH)}")
    write(history, "c", by_second)
    files = tuple(files_between(history, "c", *window(DAY)))
    parts = [Share("c", files, low, high) for low, high in pairwise([None, *sorted(cuts), None])]
    table = pa.concat_tables([read_group_reads(history, share) for share in parts])
    assert table.schema.equals(GROUP_READS)
    found = {(row["topic"], row["partition"], row["group"]): row for row in table.to_pylist()}
    assert list(found) == sorted(found)
    expected = recomputed_groups(by_second)
    assert set(found) == set(expected)
    for key, load in expected.items():
        for name, value in load.items():
            assert found[key][name] == nearly(value), (key, name)


def nearly(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value


def test_a_share_reads_no_row_group_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr("rebalance_lib.history.dataset.SMALLEST_GROUP", 4)
    monkeypatch.setattr(shares, "SAMPLES_WORTH_A_TASK", 1)
    history = Artifacts.at(tmp_path)
    topics = {"a": 10, "b": 9, "c": 3, "d": 2}
    at_once = [Row(topic, p, 1, True, p, 0, p) for topic, count in topics.items() for p in range(count)]
    write(history, "c", {0: at_once, 10: at_once})
    files = files_between(history, "c", *window(DAY))
    cut = shares_of(history, "c", files, tasks=4)
    assert [share.low for share in cut] == [None, ("a", 8), ("b", 4), ("b", 8)]
    assert [read_loads(history, share).num_rows for share in cut] == [8, 6, 4, 6]
    with history.open_parquet(files[0].name) as parquet:
        groups = [parquet.metadata.row_group(n) for n in range(parquet.num_row_groups)]
    read = [[n for n, group in enumerate(groups) if shares._overlaps(group, (1, 2), share)] for share in cut]
    assert read == [[0, 1], [2, 3], [4], [5, 6, 7]]


def test_small_histories_are_one_share_and_nothing_is_none(tmp_path):
    history = Artifacts.at(tmp_path)
    write(history, "c", EXAMPLE)
    files = files_between(history, "c", *window(DAY))
    assert shares_of(history, "c", files, tasks=8) == [Share("c", tuple(files))]
    assert shares_of(history, "c", [], tasks=8) == []


def test_files_of_older_versions_have_no_groups_and_are_read_all_the_same(tmp_path):
    history = Artifacts.at(tmp_path)
    write(history, "c", {at: [row._replace(committed={"g": at}) for row in rows] for at, rows in EXAMPLE.items()})
    files = files_between(history, "c", *window(DAY))
    for file in files[:2]:
        history.write_table(file.name, history.read_table(file.name).select(HISTORY.names[:-1]))
    (row,) = read_loads(history, Share("c", tuple(files))).to_pylist()
    assert row["write_rate"] == pytest.approx(1700 / 300)
    assert row["read_rate"] == pytest.approx(100 * 300 / 3 / 100), "of the last interval alone: it was created again"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"topic": ["t"]}), "has no column partition: it is no file of a history"),
        (
            pa.table({name: pa.array([], pa.string()) for name in shares.COLUMNS}),
            "partition is string, not int32: it is no file of a history",
        ),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path, table, message):
    history = Artifacts.at(tmp_path)
    write(history, "c", EXAMPLE)
    files = files_between(history, "c", *window(DAY))
    history.write_table(files[1].name, table)
    with pytest.raises(InvalidInputError, match=f"{files[1].name}.*{message}"):
        read_loads(history, Share("c", tuple(files)))


def test_a_broken_file_is_named(tmp_path):
    history = Artifacts.at(tmp_path)
    write(history, "c", EXAMPLE)
    files = files_between(history, "c", *window(DAY))
    history.write_text(files[0].name, "x" * 100)
    with pytest.raises(InvalidInputError, match=f"{files[0].name} is no Parquet file"):
        read_loads(history, Share("c", tuple(files)))
