"""What stays of the history: everything of the last days, one snapshot an hour before, nothing from before that."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history import Retained, files_between, read_loads, shares_of, thin_history
from tests.history.samples import MIDNIGHT, Row, moment, write

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
