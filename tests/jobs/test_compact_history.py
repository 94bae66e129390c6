"""The history compacted on Spark: one bad file or day stops no other, and the job says what is wrong."""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import append_sample, files_between
from rebalance_lib.jobs import compact_history as job
from tests.history.samples import EXAMPLE, sample, window, write

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


@pytest.mark.long
def test_a_day_over_which_a_worker_dies_stops_no_other(spark, history, monkeypatch, capsys):
    class Killing(Artifacts):
        """Whoever lists that day is killed, as for its memory."""

        def __truediv__(self, name):
            if name == "cluster=b/day=2026-01-01":
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__truediv__(name)

    for cluster_id in ("a", "b"):
        write(history, cluster_id, EXAMPLE | {DAY + at: rows for at, rows in EXAMPLE.items()})
    monkeypatch.setattr(job, "Artifacts", SimpleNamespace(named=Killing))
    before = spark.getActiveSession()
    assert job.main(["--history", history.uri]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("compact_history: cluster=b/day=2026-01-01 is not compacted: a worker died over it")
    files = [len({file.name for file in files_between(history, one, *window(2 * DAY))}) for one in ("a", "b")]
    assert files == [2, 5 + 1]
    assert spark.getActiveSession() is before


def test_where_spark_fails_every_day_has_a_line_and_nothing_is_raised(history, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("Cannot call methods on a stopped SparkContext.\n at line 1")

    write(history, "a", EXAMPLE | {DAY + at: rows for at, rows in EXAMPLE.items()})
    monkeypatch.setattr(job, "session", lambda _name: nullcontext(SimpleNamespace(range=fail)))
    assert job.main(["--history", history.uri]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"compact_history: cluster=a/day=2026-01-0{n} is not compacted: "
        "Spark failed: Cannot call methods on a stopped SparkContext."
        for n in (1, 2)
    ]


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
    assert f"the history at {history.uri} has no cluster yet" in capsys.readouterr().out
    append_sample(history, "c", sample(EXAMPLE[0], 0), datetime.now(UTC))
    assert job.main(["--history", history.uri]) == 0
    assert "no day is over yet" in capsys.readouterr().out
    assert job.main(["--history", history.uri, "--cluster", "x"]) == 1
    assert "clusters ['x'] are not in the history" in capsys.readouterr().err


@pytest.mark.parametrize("margin", ["soon", "-1", "nan", "1e9"])
def test_what_is_no_margin_is_refused(history, capsys, margin):
    with pytest.raises(SystemExit):
        job.main(["--history", history.uri, f"--margin={margin}"])
    assert "is no number of hours" in capsys.readouterr().err
