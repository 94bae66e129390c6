"""Old runs go, but never one that is still needed, and nothing that is no run."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution import drop_old_runs
from rebalance_lib.execution.throttles.saved import SAVED

FILES = (
    "run.json",
    "snapshot/brokers.parquet",
    "plan/plan.json",
    "plan/candidates/full/plan.json",
    "journal/1.json",
    "audit.json",
)
TOMORROW, LONG_AGO = (datetime.now(UTC) + timedelta(days=days) for days in (1, -100))


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.programs)])
def root(request, tmp_path):
    if request.param == "file":
        return Artifacts.at(tmp_path / "a dir with ü and %20")
    return request.getfixturevalue("object_store").bucket()


def make(root, *runs):
    for run in runs:
        for name in FILES:
            (root / run).write_text(name, "{}")


def test_runs_without_a_sign_of_life_are_removed(root):
    make(root, "dag/one", "dag/two", "other/three")
    assert drop_old_runs(root, LONG_AGO) == []
    assert drop_old_runs(root, TOMORROW) == [f"{root.uri}/{run}" for run in ("dag/one", "dag/two", "other/three")]
    assert (root / "dag").names() == (root / "other").names() == []
    assert drop_old_runs(root, TOMORROW) == []


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(["run.json"], id="it failed before its snapshot"),
        pytest.param(["requests/000001-1f3a9c0e.json"], id="it was cancelled before it began"),
        pytest.param(["fleet.json", "first/run.json", "first/snapshot/x", "second/run.json"], id="of many clusters"),
    ],
)
def test_runs_that_left_little_or_are_about_many_clusters_are_removed_too(root, files):
    for name in files:
        (root / "dag/run").write_text(name, "{}")
    assert drop_old_runs(root, LONG_AGO) == []
    assert drop_old_runs(root, TOMORROW) == [f"{root.uri}/dag/run"]
    assert (root / "dag").names() == []


def test_a_run_with_stale_throttles_stays(root):
    make(root, "dag/stale", "dag/restored", "dag/unreadable")
    saved = {"cluster_id": "c", "topics": {}, "brokers": {}}
    (root / "dag/restored").write_json(SAVED, saved)
    (root / "dag/stale").write_json(SAVED, {**saved, "brokers": {"1": {}}})
    (root / "dag/unreadable").write_text(SAVED, "{")
    assert drop_old_runs(root, TOMORROW) == [f"{root.uri}/dag/restored"]
    for run in ("stale", "unreadable"):
        assert (root / "dag" / run).exists("snapshot/brokers.parquet")


def test_the_history_and_what_is_no_run_stay(root):
    others = ["history/cluster=c/day=2026-01-01/2026-01-01T000000Z.parquet", "dag/notes/a.txt", "snapshot/x", "b.txt"]
    for name in others:
        root.write_text(name, "")
    make(root, "dag/run")
    assert drop_old_runs(root, TOMORROW) == [f"{root.uri}/dag/run"]
    assert all(root.exists(name) for name in others)


def test_what_was_half_removed_goes_the_next_time(root, monkeypatch):
    make(root, "dag/run")
    remove, done = Artifacts.remove, []

    def die_after_one(self):
        if done:
            raise KeyboardInterrupt
        done.append(remove(self))

    with monkeypatch.context() as patched:
        patched.setattr(Artifacts, "remove", die_after_one)
        with pytest.raises(KeyboardInterrupt):
            drop_old_runs(root, TOMORROW)
    assert not (root / "dag/run").exists("journal")
    assert drop_old_runs(root, TOMORROW) == [f"{root.uri}/dag/run"]
    assert not root.exists("dag/run/snapshot")


def test_the_newest_file_is_the_sign_of_life(tmp_path):
    root = Artifacts.at(tmp_path)
    make(root, "dag/run")
    day = timedelta(days=1)
    for number, name in enumerate(FILES):
        at = (LONG_AGO + number * day).timestamp()
        os.utime(tmp_path / "dag" / "run" / name, (at, at))
    newest = LONG_AGO + (len(FILES) - 1) * day
    assert drop_old_runs(root, newest - day / 2) == []
    assert drop_old_runs(root, newest + day / 2) == [f"{root.uri}/dag/run"]


def test_a_moment_without_a_time_zone_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="add a time zone"):
        drop_old_runs(Artifacts.at(tmp_path), datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
