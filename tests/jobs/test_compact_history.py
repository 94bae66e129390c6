"""The history compacted on Spark: one bad file or day stops no other, and the job says what is wrong."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import files_between
from rebalance_lib.jobs import compact_history as job
from tests.history.samples import EXAMPLE, window, write

DAY = 24 * 3600


@pytest.fixture
def history(tmp_path):
    return Artifacts.at(tmp_path / "a dir with ü and %20")


def test_every_cluster_and_day_that_is_over_becomes_one_file(spark, history, capsys):
    for cluster_id in ("c/1", "c2"):
        write(history, cluster_id, EXAMPLE | {DAY + at: rows for at, rows in EXAMPLE.items()})
    torn = "cluster=c2/day=2026-01-01/2026-01-01T000320Z.parquet"
    history.write_text(torn, "no Parquet")
    assert job.main(["--history", history.uri]) == 1
    said = capsys.readouterr()
    assert "4 days; 19 snapshots with 19 rows are in one file a day now, and 19 files went" in said.out
    assert said.err.count("compact_history: ") == 1
    assert f"{history.uri}/{torn} is no Parquet file" in said.err
    assert len({file.name for file in files_between(history, "c/1", *window(2 * DAY))}) == 2
    assert len(files_between(history, "c/1", *window(2 * DAY))) == 10
    assert min((history / "cluster=c2/day=2026-01-01").files()) == torn.rpartition("/")[2]


def test_clusters_can_be_named(spark, history):
    for cluster_id in ("a", "b"):
        write(history, cluster_id, EXAMPLE)
    assert job.main(["--history", history.uri, "--cluster", "a"]) == 0
    assert [len({file.name for file in files_between(history, one, *window(DAY))}) for one in ("a", "b")] == [1, 5]


def test_whatever_goes_wrong_with_a_day_is_said(monkeypatch, history):
    def fail(*_):
        raise OSError("the disk is on fire")

    monkeypatch.setattr(job, "compact_day", fail)
    assert job._compacted(history, "x").problems == ("x is not compacted: OSError: the disk is on fire",)


def test_without_a_day_that_is_over_no_session_is_started(history, capsys):
    assert job.main(["--history", history.uri]) == 0
    assert "no day is over yet" in capsys.readouterr().out
    assert job.main(["--history", history.uri, "--cluster", "x"]) == 1
    assert "clusters ['x'] are not in the history" in capsys.readouterr().err


@pytest.mark.parametrize("margin", ["soon", "-1", "nan", "1e9"])
def test_what_is_no_margin_is_refused(history, capsys, margin):
    with pytest.raises(SystemExit):
        job.main(["--history", history.uri, f"--margin={margin}"])
    assert "is no number of hours" in capsys.readouterr().err
