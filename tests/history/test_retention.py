"""What stays of the history: everything of the last days, one snapshot an hour before, nothing from before that."""

from __future__ import annotations

import itertools
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history import (
    Retained,
    Share,
    compact_day,
    days_over,
    files_between,
    read_loads,
    shares_of,
    thin_history,
)
from tests.history.samples import MIDNIGHT, Row, moment, write
from tests.history.watched import KilledError, killed_at, watched

HOUR, DAY = 3600, 24 * 3600
NOW = 40 * DAY + HOUR // 2
FRESH = itertools.count()
KEPT = {"now": moment(NOW), "thin_after": timedelta(days=2), "keep": timedelta(days=30)}


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.programs)])
def history(request, tmp_path):
    if request.param == "file":
        return Artifacts.at(tmp_path / "a dir with ü and %20")
    return request.getfixturevalue("object_store").bucket() / "history"


def touch(history, cluster_id, seconds):
    """Snapshots by their names alone: none of them can be opened."""
    for at in seconds:
        taken = moment(at)
        name = f"cluster={cluster_id}/day={taken:%Y-%m-%d}/{taken:%Y-%m-%dT%H%M%SZ}.parquet"
        history.write_text(name, "no Parquet")


def left(history, cluster_id):
    found = files_between(history, cluster_id, MIDNIGHT, moment(NOW + DAY))
    return [int((file.taken_at - MIDNIGHT).total_seconds()) for file in found]


def test_the_example_of_the_module(history):
    now = datetime.fromisoformat("2026-03-31T12:00:00+00:00")
    gone = ["2026-02-10T0900", "2026-03-01T1159", "2026-03-29T1020", "2026-03-29T1159"]
    stay = ["2026-03-01T1200", "2026-03-29T1000", "2026-03-29T1100", "2026-03-29T1200", "2026-03-29T1201"]
    touch(history, "c", [(datetime.fromisoformat(f"{one}Z") - MIDNIGHT).total_seconds() for one in gone + stay])
    for retained in (Retained(5, 2, 2), Retained(5, 0, 0)):
        found = thin_history(history, now=now, thin_after=timedelta(days=2), keep=timedelta(days=30))
        assert found == retained
    files = files_between(history, "c", MIDNIGHT, now)
    assert [f"{file.taken_at:%Y-%m-%dT%H%M}" for file in files] == stay
    assert "day=2026-02-10" not in (history / "cluster=c").directories()


def test_each_cluster_is_looked_after_and_what_is_no_snapshot_stays(history):
    touch(history, "a", [0, NOW])
    touch(history, "b%2F", [0, 30 * DAY, 30 * DAY + 1, NOW - 1])
    history.write_text("cluster=a/notes.txt", "mine")
    history.write_text("cluster=a/day=by hand/0.parquet", "mine")
    assert thin_history(history, **KEPT) == Retained(kept=3, thinned=1, dropped=2)
    assert left(history, "b/") == [30 * DAY, NOW - 1]
    assert (history / "cluster=a").names() == [f"day={moment(NOW):%Y-%m-%d}", "day=by hand", "notes.txt"]


def test_two_may_do_it_at_once(history):
    touch(history, "c", range(9 * DAY, 12 * DAY, 1200))
    with ThreadPoolExecutor(2) as both:
        for done in [both.submit(thin_history, history, **KEPT) for _ in range(2)]:
            done.result()
    assert left(history, "c") == [10 * DAY + 2400, *range(10 * DAY + HOUR, 12 * DAY, HOUR)]


def test_growth_between_snapshots_that_stay_is_what_it_was(history):
    sizes = [1000, 5000, 2000, 2500, 9000, 4000, 4000, 100]
    begin = 20 * DAY
    rows = {begin + n * HOUR // 2: [Row("orders", 0, 1, True, size, 0, n)] for n, size in enumerate(sizes)}
    write(history, "c", rows)

    def loads():
        files = files_between(history, "c", moment(begin), moment(begin + 3 * HOUR + 1))
        (share,) = shares_of(history, "c", files, 1)
        (row,) = read_loads(history, share).to_pylist()
        return row

    before = loads()
    assert thin_history(history, **KEPT) == Retained(kept=4, thinned=4, dropped=0)
    after = loads()
    assert (before["samples"], after["samples"]) == (7, 4)
    assert after["growth"] == pytest.approx(before["growth"])
    assert after["size_bytes"] == before["size_bytes"] == 4000


def rows_at(times):
    return {at: [Row("orders", 0, 1, True, at, 0, at, {"g": at})] for at in times}


def test_a_compacted_day_is_thinned_and_dropped_as_a_whole(history):
    old, young = (range(day * DAY + 20 * HOUR, (day + 1) * DAY, 1200) for day in (10, 38))
    write(history, "c", rows_at([*old, *young]))
    for day in days_over(history, "c", moment(NOW)):
        compact_day(history, day)
    assert thin_history(history, **KEPT) == Retained(kept=16, thinned=8), "of the young day, half an hour is young"
    assert left(history, "c") == [*old[::3], *young]
    files = files_between(history, "c", moment(10 * DAY), moment(11 * DAY))
    (name,) = {file.name for file in files}
    assert "/day-0002-" in name
    (row,) = read_loads(history, Share("c", tuple(files))).to_pylist()
    assert (row["samples"], row["growth"], row["read_rate"]) == (4, 1, 1)
    assert thin_history(history, **KEPT) == Retained(kept=16)
    later = {**KEPT, "now": moment(NOW + DAY)}
    assert thin_history(history, **later) == Retained(kept=4, thinned=8, dropped=4)


def test_a_late_snapshot_beside_a_compacted_day_counts_for_its_hour(history):
    write(history, "c", rows_at([20 * DAY + 600, 20 * DAY + 1200]))
    compact_day(history, days_over(history, "c", moment(NOW))[0])
    write(history, "c", rows_at([20 * DAY, 20 * DAY + HOUR]))
    assert thin_history(history, **KEPT) == Retained(kept=2, thinned=2)
    assert left(history, "c") == [20 * DAY, 20 * DAY + HOUR]
    assert thin_history(history, **KEPT) == Retained(kept=2)


def test_a_compacted_day_that_cannot_be_read_stays_until_it_is_too_old_and_is_named(history):
    write(history, "c", rows_at([20 * DAY, 20 * DAY + 600]))
    write(history, "d", rows_at([20 * DAY, 20 * DAY + 600]))
    (day,) = days_over(history, "c", moment(NOW))
    history.write_text(f"{day}/day-0001-00000000.parquet", "no Parquet")
    found = thin_history(history, **KEPT)
    assert found[:3] == (1, 1, 0), "of the other cluster"
    assert "day-0001-00000000.parquet is no Parquet file" in found.problems[0]
    assert thin_history(history, **{**KEPT, "now": moment(60 * DAY)}).problems == ()
    assert (history / "cluster=c").directories() == []


def test_killed_while_a_compacted_day_is_thinned_no_hour_is_lost(tmp_path):
    local = Artifacts.at(tmp_path / "history")
    times = [20 * DAY + at for at in (0, 600, HOUR, HOUR + 600)]
    write(local, "c", rows_at(times))
    (day,) = days_over(local, "c", moment(NOW))
    compact_day(local, day)
    for number in itertools.count():
        copy = Artifacts.at(tmp_path / f"copy-{number}")
        shutil.copytree(local.path, copy.path)
        with suppress(KilledError):
            with killed_at(number):
                thin_history(watched(copy), **KEPT)
            break
        assert left(copy, "c") in (times, times[::2]), number
        thin_history(copy, **KEPT)
        assert left(copy, "c") == times[::2], number
    assert number > 10


def test_no_history_is_no_work(history):
    assert thin_history(history, **KEPT) == Retained(0, 0, 0)


def test_a_moment_without_a_time_zone_is_refused(history):
    with pytest.raises(InvalidInputError, match="without a time zone"):
        thin_history(history, **{**KEPT, "now": datetime(2026, 1, 1)})  # noqa: DTZ001 - that is the point


ages = st.integers(0, 9 * DAY // 60).map(lambda minutes: timedelta(minutes=minutes))


@given(
    times=st.sets(st.integers(0, 9 * DAY // 600).map(lambda n: n * 600), max_size=60),
    thin_after=ages,
    keep=ages,
    later=ages,
)
def test_whatever_the_ages_nothing_young_goes_and_old_hours_have_their_first(times, thin_after, keep, later):
    history = Artifacts(f"memory://retention-{next(FRESH)}")
    touch(history, "c", times)
    now = 9 * DAY
    ends = {"thin_after": thin_after, "keep": keep}
    found = thin_history(history, now=moment(now), **ends)
    there = left(history, "c")
    thin_before, drop_before = (now - age.total_seconds() for age in (thin_after, keep))
    young = {at for at in times if at >= max(thin_before, drop_before)}
    hours = {at // HOUR for at in times if drop_before <= at < thin_before}
    firsts = {min(at for at in times if at // HOUR == hour and at >= drop_before) for hour in hours}
    assert set(there) == young | firsts
    assert found == Retained(len(there), len(times) - len(there) - found.dropped, sum(at < drop_before for at in times))
    assert thin_history(history, now=moment(now), **ends) == Retained(len(there), 0, 0)
    thin_history(history, now=moment(now) + later, **ends)
    assert set(left(history, "c")) <= set(there)
