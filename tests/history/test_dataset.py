"""Every snapshot is one file, where cluster and day say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history import HISTORY, append_snapshot, clusters, dataset, files_between
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups
from tests.history.samples import Row, moment, sample, window, write
from tests.planner.clusters import cluster as make_cluster
from tests.topology.test_snapshot import ORDERS

SNAPSHOT = replace(ORDERS, cluster_id="PwnVvJcCTeWGnoYIFvmhSQ", taken_at="2026-11-16T10:58:07+01:00")
FILE = "cluster=PwnVvJcCTeWGnoYIFvmhSQ/day=2026-11-16/2026-11-16T095807Z.parquet"


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.programs)])
def history(request, tmp_path):
    if request.param == "s3":
        return request.getfixturevalue("object_store").bucket() / "history"
    return Artifacts((tmp_path / "history").as_uri() if request.param == "file" else f"memory://{tmp_path}/history")


def test_the_example_of_the_design(history):
    assert append_snapshot(history, SNAPSHOT).name == FILE
    written = history.read_table(FILE).select(HISTORY.names)
    assert written.schema.equals(HISTORY)
    assert written.drop_columns(["taken_at"]).to_pylist() == [
        {
            "topic": "orders",
            "partition": 0,
            "position": position,
            "broker": broker,
            "leader": position == 0,
            "size_bytes": size,
            "start_offset": None,
            "end_offset": None,
            "log_dir": None,
            "committed": None,
        }
        for position, (broker, size) in enumerate([(2, 10), (1, 9), (3, None)])
    ]
    assert set(written["taken_at"].to_pylist()) == {datetime(2026, 11, 16, 9, 58, 7, tzinfo=UTC)}


def test_what_groups_committed_stands_with_the_leader_of_each_partition(history):
    brokers = {1: "a", 2: "a"}
    snapshot = make_cluster(brokers, {"b-0": ([1, 2], 1), "a-1": ([2, 1], 1), "a-0": ([1], 1)}).snapshot()
    committed = [("x", "b", 0, 7), ("x", "gone", 0, 1), ("y", "a", 1, 3), ("y", "b", 0, 9), ("y", "b", 5, 2)]
    rows = [dict(zip(GROUP_OFFSETS.names, row, strict=True)) for row in committed]
    groups = Groups(GROUP_MEMBERS.empty_table(), pa.Table.from_pylist(rows, schema=GROUP_OFFSETS))
    name = append_snapshot(history, replace(snapshot, taken_at=SNAPSHOT.taken_at), groups).name
    found = history.read_table(name).select(["topic", "partition", "position", "committed"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("a", 0, 0, []),
        ("a", 1, 0, [{"group": "y", "offset": 3}]),
        ("a", 1, 1, None),
        ("b", 0, 0, [{"group": "x", "offset": 7}, {"group": "y", "offset": 9}]),
        ("b", 0, 1, None),
    ]


def test_a_snapshot_appended_twice_is_one_file_and_nothing_else(tmp_path):
    history = Artifacts.at(tmp_path)
    append_snapshot(history, SNAPSHOT)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    append_snapshot(history, SNAPSHOT)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert [path for path in before if path.is_file()] == [tmp_path / FILE]


def test_rows_are_sorted_however_they_came(history):
    append_snapshot(history, replace(SNAPSHOT, replicas=SNAPSHOT.replicas.take([2, 0, 1])))
    assert history.read_table(FILE)["position"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("cluster_id", ["../../etc", "a/b", "..", "a%2Fb", "a b", "ü*?[x]{y}", "a=b", "x" * 200])
def test_any_cluster_id_stays_below_the_history_and_comes_back(history, cluster_id):
    snapshot = replace(SNAPSHOT, cluster_id=cluster_id)
    name = append_snapshot(history, snapshot).name
    assert name.count("/") == 2
    assert clusters(history) == [cluster_id]
    day = datetime(2026, 11, 16, tzinfo=UTC)
    assert [file.name for file in files_between(history, cluster_id, day, day + timedelta(days=1))] == [name]


@pytest.mark.parametrize("cluster_id", ["", "x" * 300])
def test_what_cannot_be_a_directory_is_no_cluster(history, cluster_id):
    with pytest.raises(InvalidInputError, match="cannot be the id of a cluster"):
        append_snapshot(history, replace(SNAPSHOT, cluster_id=cluster_id))


def test_a_window_holds_its_start_and_not_its_end(history):
    day = 24 * 3600
    write(history, "c", {at: [Row("t", 0, 1, True, 1, 0, 1)] for at in (0, 10, 20, day, day + 10)})
    write(history, "other", {15: [Row("t", 0, 1, True, 1, 0, 1)]})
    found = [file.taken_at for file in files_between(history, "c", *window(day + 10, start=10))]
    assert found == [moment(10), moment(20), moment(day)]
    assert files_between(history, "nobody", *window(day)) == []
    elsewhere = timezone(timedelta(hours=-7))
    assert len(files_between(history, "c", *(end.astimezone(elsewhere) for end in window(day + 10, start=10)))) == 3


def test_what_is_no_file_of_the_history_is_not_listed(history):
    write(history, "c", {0: [Row("t", 0, 1, True, 1, 0, 1)]})
    history.write_text("cluster=c/day=2026-01-01/notes.txt", "x")
    history.write_text("cluster=c/day=2026-01-01/_2026-01-01T000000Z.parquet.0a.tmp", "x")
    history.write_text("README", "x")
    assert clusters(history) == ["c"]
    assert len(files_between(history, "c", *window(100))) == 1


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (moment(5), moment(5), "is empty: swap its ends"),
        (moment(5).replace(tzinfo=None), moment(9), "without a time zone"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(history, start, end, message):
    with pytest.raises(InvalidInputError, match=message):
        files_between(history, "c", start, end)


def test_a_snapshot_without_a_time_is_refused(history):
    with pytest.raises(InvalidInputError, match="'soon', which is no time"):
        append_snapshot(history, replace(SNAPSHOT, taken_at="soon"))


@given(st.lists(st.integers(1, 30), max_size=12), st.integers(1, 3), st.integers(1, 12))
def test_row_groups_hold_whole_topics_or_part_of_one(partitions, replicas, size):
    rows = [
        Row(f"t{n:02}", p, broker, broker == 0, 1, 0, 1)
        for n, count in enumerate(partitions)
        for p in range(count)
        for broker in range(replicas)
    ]
    bounds = dataset.row_groups(sample(rows, 0), size)
    assert (bounds[0], bounds[-1]) == (0, len(rows))
    groups = [rows[begin:end] for begin, end in pairwise(bounds)]
    held = [{(row.topic, row.partition) for row in group} for group in groups]
    assert sum(map(len, held)) == sum(partitions)
    for group, keys in zip(groups, held, strict=True):
        counts = Counter(topic for topic, _ in keys)
        assert len(counts) == 1 or all(count == partitions[int(topic[1:])] for topic, count in counts.items())
        assert len(group) <= size + replicas - 1


def test_other_readers_see_cluster_and_day_as_columns(tmp_path):
    append_snapshot(Artifacts.at(tmp_path), SNAPSHOT)
    table = pq.read_table(tmp_path)
    assert set(table["cluster"].to_pylist()) == {"PwnVvJcCTeWGnoYIFvmhSQ"}
    assert set(table["day"].to_pylist()) == {"2026-11-16"}
