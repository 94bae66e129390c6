"""Of a day that is over, one file is made of many; whatever happens meanwhile, each snapshot is there, once."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from itertools import count, pairwise

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import (
    HISTORY,
    Compacted,
    Share,
    append_sample,
    compact_day,
    compaction,
    day_file,
    days_over,
    files_between,
    read_group_reads,
    read_loads,
    shares_of,
)
from tests.history.samples import READ_EXAMPLE, Row, moment, sample, window, write
from tests.history.test_loads import histories, partitions
from tests.history.watched import KilledError, killed_at, telling, watched

DAY = 24 * 3600
DIRECTORY = "cluster=c/day=2026-01-01"
FRESH = count()
ROWS = {
    at: [
        Row(topic, partition, broker, broker == 1, 1000 * at + partition, 0, at + 1, {"g": at, "h": 2 * at})
        for topic in ("a", "b")
        for partition in range(3)
        for broker in (1, 2)
    ]
    for at in range(0, 500, 100)
}
FEW = {at: ROWS[at][:3] for at in (0, 100, 300)}


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.programs)])
def history(request, tmp_path):
    if request.param == "file":
        return Artifacts.at(tmp_path / "a dir with ü and %20")
    return request.getfixturevalue("object_store").bucket() / "history"


@pytest.fixture
def local(tmp_path):
    return Artifacts.at(tmp_path / "history")


def names(history):
    return [name for name in (history / DIRECTORY).files() if not name.startswith("_")]


def snapshots(history):
    """By moment, all rows as they are read: none is missing, and none is there twice."""
    files = files_between(history, "c", *window(DAY))
    tables = {file.name: history.read_table(file.name).select(HISTORY.names).to_pylist() for file in files}
    return {
        file.taken_at: [row for row in tables[file.name] if row["taken_at"].replace(microsecond=0) == file.taken_at]
        for file in files
    }


def loads(history, files=None):
    share = Share("c", tuple(files or files_between(history, "c", *window(DAY))))
    return read_loads(history, share).to_pylist(), read_group_reads(history, share).to_pylist()


def test_one_file_has_all_snapshots_and_the_others_are_gone(history):
    write(history, "c", ROWS)
    before = snapshots(history), loads(history)
    assert compact_day(history, DIRECTORY) == Compacted(snapshots=5, rows=60, removed=5)
    (name,) = names(history)
    assert compaction.DAY_FILE.fullmatch(name)
    assert (snapshots(history), loads(history)) == before
    assert compact_day(history, DIRECTORY) == Compacted()
    assert names(history) == [name]


def test_rows_are_in_the_order_of_partitions_and_of_time_and_any_tool_reads_them(local):
    write(local, "c", ROWS)
    compact_day(local, DIRECTORY)
    table = pq.read_table(local.path)
    assert table.select(HISTORY.names).schema.equals(HISTORY)
    found = [(row["topic"], row["partition"], row["taken_at"], row["broker"]) for row in table.to_pylist()]
    assert found == sorted(found)
    assert set(table["cluster"].to_pylist()) == {"c"}
    write(local, "c", {450: ROWS[400]})
    assert pq.read_table(local.path).num_rows == table.num_rows + len(ROWS[400])


def test_a_large_day_is_merged_in_parts_and_row_groups_have_whole_topics(local, monkeypatch):
    monkeypatch.setattr(day_file, "ROWS_AT_A_TIME", 25)
    monkeypatch.setattr(day_file, "ROWS_OF_A_GROUP", 10)
    write(local, "c", ROWS)
    before = snapshots(local)
    compact_day(local, DIRECTORY)
    assert snapshots(local) == before
    with local.open_parquet(f"{DIRECTORY}/{names(local)[0]}") as parquet:
        groups = [parquet.read_row_group(n).select(["topic", "partition"]) for n in range(parquet.num_row_groups)]
    assert [set(map(tuple, (row.values() for row in group.to_pylist()))) for group in groups] == [
        {(topic, partition)} for topic in ("a", "b") for partition in range(3)
    ]


def test_days_that_are_over_are_compacted_and_none_that_is_still_appended_to(local):
    write(local, "c", dict.fromkeys((0, DAY, 2 * DAY), ROWS[0]))
    local.write_text("cluster=c/day=by hand/0.parquet", "mine")
    hour = timedelta(hours=1)
    assert days_over(local, "c", moment(2 * DAY) + hour - timedelta(seconds=1), hour) == [DIRECTORY]
    assert days_over(local, "c", moment(2 * DAY) + hour, hour) == [DIRECTORY, "cluster=c/day=2026-01-02"]
    assert days_over(local, "nobody", moment(9 * DAY), hour) == []


def test_a_late_snapshot_is_read_beside_the_day_file_and_merged_by_the_next_compaction(history):
    late = 200
    write(history, "c", {at: rows for at, rows in ROWS.items() if at != late})
    compact_day(history, DIRECTORY)
    write(history, "c", {late: ROWS[late]})
    beside = snapshots(history), loads(history)
    assert len(names(history)) == 2
    assert compact_day(history, DIRECTORY) == Compacted(snapshots=5, rows=60, removed=2)
    assert len(names(history)) == 1
    assert (snapshots(history), loads(history)) == beside
    assert beside[0].keys() == {moment(at) for at in ROWS}


def test_a_snapshot_that_is_in_the_day_file_is_not_appended_again(local):
    write(local, "c", ROWS)
    compact_day(local, DIRECTORY)
    (name,) = names(local)
    assert append_sample(local, "c", sample(ROWS[100], 100), moment(100)).name == f"{DIRECTORY}/{name}"
    assert names(local) == [name]


def test_files_that_were_listed_before_are_found_in_the_day_file(history):
    write(history, "c", ROWS)
    listed = files_between(history, "c", *window(DAY))
    before = loads(history)
    compact_day(history, DIRECTORY)
    assert loads(history, listed) == before
    in_day_file = files_between(history, "c", *window(DAY))
    write(history, "c", {450: ROWS[400]})
    compact_day(history, DIRECTORY)
    assert loads(history, in_day_file) == before
    assert len(shares_of(history, "c", listed, 1)) == 1


def test_a_window_within_a_day_has_its_moments_alone(local):
    write(local, "c", ROWS)
    files = files_between(local, "c", *window(350, start=100))
    before = loads(local, files)
    compact_day(local, DIRECTORY)
    inside = files_between(local, "c", *window(350, start=100))
    assert [file.taken_at for file in inside] == [file.taken_at for file in files]
    assert loads(local, inside) == before


def late_beside_a_day_file(history):
    write(history, "c", FEW)
    compact_day(history, DIRECTORY)
    write(history, "c", {200: ROWS[200]})


def two_day_files(history):
    write(history, "c", {at: FEW[at] for at in (0, 100)})
    compact_day(history, DIRECTORY)
    (first,) = names(history)
    kept = history.read_bytes(f"{DIRECTORY}/{first}")
    late_beside_a_day_file(history)
    history.write_bytes(f"{DIRECTORY}/{first}", kept)


@pytest.mark.parametrize(
    "prepare",
    [lambda history: write(history, "c", FEW), late_beside_a_day_file, two_day_files],
    ids=["snapshots", "late", "two day files"],
)
def test_killed_at_any_moment_nothing_is_lost_or_doubled_and_the_next_run_ends_it(local, tmp_path, prepare):
    prepare(local)
    before, kills = snapshots(local), 0
    for number in count():
        copy = Artifacts.at(tmp_path / f"copy-{number}")
        shutil.copytree(local.path, copy.path)
        try:
            with killed_at(number):
                compact_day(watched(copy), DIRECTORY)
            break
        except KilledError:
            kills += 1
        assert snapshots(copy) == before, number
        compact_day(copy, DIRECTORY)
        assert snapshots(copy) == before, number
        assert len(names(copy)) == 1, number
    assert kills > 10


KILLED = """
import os, signal, sys
from itertools import count
from rebalance_lib.history import compact_day
from tests.history.watched import Artifacts, telling, watched

done = count()
def before(operation, path):
    if next(done) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
with telling(before):
    compact_day(watched(Artifacts(sys.argv[1])), "cluster=c/day=2026-01-01")
"""


@pytest.mark.long
def test_a_process_that_is_killed_at_any_of_ten_moments_loses_no_row(local, tmp_path):
    write(local, "c", ROWS)
    before, totals = snapshots(local), added_up(local)
    for number in range(2, 22, 2):
        copy = Artifacts.at(tmp_path / f"copy-{number}")
        shutil.copytree(local.path, copy.path)
        ended = subprocess.run([sys.executable, "-c", KILLED, copy.uri, str(number)], check=False)
        assert ended.returncode == -signal.SIGKILL
        assert (snapshots(copy), added_up(copy)) == (before, totals)
        compact_day(copy, DIRECTORY)
        assert (snapshots(copy), added_up(copy)) == (before, totals)
        assert len(names(copy)) == 1


def added_up(history):
    """The number of rows and the sum of sizes, over all moments."""
    rows = [row for found in snapshots(history).values() for row in found]
    return len(rows), sum(row["size_bytes"] for row in rows)


def test_whoever_reads_at_any_moment_reads_the_same(local):
    write(local, "c", FEW)
    listed = files_between(local, "c", *window(DAY))
    before, moments = loads(local), []

    def read(operation, path):
        moments.append(operation)
        assert loads(local) == before
        assert loads(local, listed) == before

    with telling(read):
        compact_day(watched(local), DIRECTORY)
    assert len(moments) > 10
    assert {"mv", "rm"} <= set(moments)
    assert loads(local) == before


def test_two_at_once_lose_nothing_wherever_the_second_comes_in(local, tmp_path):
    write(local, "c", FEW)
    expected = snapshots(local)
    for number in count():
        copy = Artifacts.at(tmp_path / f"copy-{number}")
        shutil.copytree(local.path, copy.path)
        done = count()

        def before(operation, path, *, here=number, there=copy, done=done):
            if next(done) == here:
                compact_day(there, DIRECTORY)
                write(there, "c", {450: ROWS[400]})  # and then a third one
                compact_day(there, DIRECTORY)

        with telling(before):
            compact_day(watched(copy), DIRECTORY)
        if next(done) <= number:
            break
        found = snapshots(copy)
        assert found.pop(moment(450)), number
        assert found == expected, number
        compact_day(copy, DIRECTORY)
        assert len(names(copy)) == 1, number
        assert len(snapshots(copy)) == 4, number
    assert number > 10


def test_two_at_once_leave_one_file(local):
    write(local, "c", ROWS)
    came = count()

    def before(operation, path):
        if operation == "mv" and next(came) == 0:
            compact_day(local, DIRECTORY)

    with telling(before):
        compact_day(watched(local), DIRECTORY)
    assert len(names(local)) == 1
    assert len(snapshots(local)) == 5


def tear(history, name, *, inside):
    whole = history.read_bytes(name)
    history.write_bytes(name, whole[:4] + bytes(200) + whole[204:] if inside else whole[: len(whole) // 2])


@pytest.mark.parametrize("inside", [True, False])
def test_a_torn_file_is_named_and_stays_and_the_others_are_compacted(local, inside):
    write(local, "c", ROWS)
    torn = f"{DIRECTORY}/2026-01-01T000320Z.parquet"
    tear(local, torn, inside=inside)
    found = compact_day(local, DIRECTORY)
    assert (found.snapshots, found.removed) == (4, 4)
    assert len(found.problems) == 1
    assert f"{local.uri}/{torn}" in found.problems[0]
    assert "it stays as it is" in found.problems[0]
    left = names(local)
    assert len(left) == 2
    with pytest.raises(RebalanceError, match=torn):
        loads(local)
    assert compact_day(local, DIRECTORY) == Compacted(problems=found.problems)
    assert names(local) == left


def test_a_torn_day_file_stays_and_new_snapshots_are_compacted_beside_it(local):
    write(local, "c", {at: ROWS[at] for at in (0, 100)})
    compact_day(local, DIRECTORY)
    (torn,) = names(local)
    local.write_text(f"{DIRECTORY}/{torn}", "no Parquet")
    with pytest.raises(InvalidInputError, match=f"{torn} is no Parquet file"):
        files_between(local, "c", *window(DAY))
    for at in (200, 300):
        local.write_bytes(f"{DIRECTORY}/2026-01-01T000{at // 60}{at % 60:02}Z.parquet", single(at))
    found = compact_day(local, DIRECTORY)
    assert (found.snapshots, found.removed, len(found.problems)) == (2, 2, 1)
    assert torn in names(local)
    assert names(local)[1].startswith("day-0002-")


def single(at):
    elsewhere = Artifacts(f"memory://compaction-{next(FRESH)}")
    write(elsewhere, "c", {at: ROWS[at]})
    return elsewhere.read_bytes(f"{DIRECTORY}/2026-01-01T000{at // 60}{at % 60:02}Z.parquet")


def test_rows_of_another_moment_than_the_files_are_named_and_stay(local):
    write(local, "c", ROWS)
    odd = f"{DIRECTORY}/2026-01-01T000320Z.parquet"
    local.write_bytes(odd, single(300))
    found = compact_day(local, DIRECTORY)
    assert (found.removed, len(found.problems)) == (4, 1)
    assert "has rows of 2026-01-01T00:05:00+00:00, which is no moment of this file" in found.problems[0]
    assert odd.rpartition("/")[2] in names(local)


def test_a_file_that_says_something_else_of_a_moment_than_the_day_file_stays_and_is_named(local):
    write(local, "c", ROWS)
    compact_day(local, DIRECTORY)
    before = snapshots(local)
    other = f"{DIRECTORY}/2026-01-01T000140Z.parquet"
    table = sample([row._replace(size=7) for row in ROWS[100]], 100)
    local.write_table(other, table)
    found = compact_day(local, DIRECTORY)
    assert (found.removed, len(found.problems)) == (0, 1)
    assert "differs from" in found.problems[0]
    assert snapshots(local) == before


def test_a_file_that_was_not_written_as_it_should_be_is_removed_and_no_other(local, monkeypatch):
    def forget_a_row(*arguments):
        return merged(*arguments).slice(1)

    merged = day_file._merged
    monkeypatch.setattr(day_file, "_merged", forget_a_row)
    write(local, "c", ROWS)
    before = names(local)
    with pytest.raises(RebalanceError, match=r"does not have the rows of 2026-01-01T00:00:00\+00:00"):
        compact_day(local, DIRECTORY)
    assert names(local) == before


def test_files_of_older_versions_and_empty_snapshots_are_compacted_with_the_others(local):
    write(local, "c", {**ROWS, 450: []})
    old = f"{DIRECTORY}/2026-01-01T000140Z.parquet"
    local.write_table(old, local.read_table(old).select(HISTORY.names[:-1]))
    before = loads(local)
    assert compact_day(local, DIRECTORY) == Compacted(snapshots=6, rows=60, removed=6)
    assert loads(local) == before
    assert snapshots(local)[moment(450)] == []


def test_moments_of_a_fraction_of_a_second_are_what_they_were(local):
    half = timedelta(milliseconds=500)
    for at, rows in READ_EXAMPLE.items():
        table = sample(rows, at)
        taken_at = [one + half for one in table["taken_at"].to_pylist()]
        table = table.set_column(0, HISTORY.field("taken_at"), [taken_at])
        append_sample(local, "c", table, moment(at) + half)
    before = snapshots(local), loads(local)
    compact_day(local, DIRECTORY)
    assert (snapshots(local), loads(local)) == before


@settings(max_examples=max(6, settings.default.max_examples // 8))
@given(by_second=histories, late=histories, cuts=st.sets(partitions, max_size=2))
def test_loads_of_any_history_are_what_they_were_however_they_are_cut(by_second, late, cuts):
    history = Artifacts(f"memory://compaction-{next(FRESH)}")
    write(history, "c", by_second)
    compact_day(history, DIRECTORY)
    write(history, "c", late)
    plain = Artifacts(f"memory://compaction-{next(FRESH)}")
    write(plain, "c", late | by_second)
    ends = list(pairwise([None, *sorted(cuts), None]))
    expected = parts(plain, ends)
    assert parts(history, ends) == expected
    compact_day(history, DIRECTORY)
    assert parts(history, ends) == expected


def parts(history, ends):
    files = tuple(files_between(history, "c", *window(DAY)))
    cut = [Share("c", files, low, high) for low, high in ends]
    return [read(history, share).to_pylist() for share in cut for read in (read_loads, read_group_reads)]
