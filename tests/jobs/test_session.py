"""The session of a job: somebody else's stays as it is, and one of its own gives way to what was set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from rebalance_lib.jobs.session import (
    ALWAYS,
    FOR_FEW,
    OWN,
    another_session,
    close_session,
    parallelism,
    session,
    tune_spark,
)

ADAPTIVE, SHUFFLE = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
SUBMIT = Path(sys.executable).with_name("spark-submit")


def test_a_session_that_is_active_keeps_its_settings_its_views_and_its_place(spark):
    from pyspark.sql import SparkSession

    spark.createDataFrame(pa.table({"a": [1]}))  # it becomes the active one, whatever other tests did
    spark.conf.set(BROADCAST, "123")
    before = dict(spark.conf.getAll)
    with session("a job") as own:
        assert own is not spark
        assert own.conf.get(BROADCAST) != "123", "what others set is theirs alone"
        own.conf.set(ADAPTIVE, "true")
        own.createDataFrame(pa.table({"a": [1]})).createOrReplaceTempView("of_the_job")
        assert own.table("of_the_job").count() == 1
        assert parallelism(own) == spark.sparkContext.defaultParallelism
    assert spark.conf.getAll == before
    assert SparkSession.getActiveSession() is spark
    assert not spark.catalog.tableExists("of_the_job")
    assert spark.sparkContext._jsc is not None, "it still runs"
    spark.conf.unset(BROADCAST)


def test_what_was_set_for_the_application_goes_before_what_suits_the_job(spark):
    with session("a job") as own:
        tune_spark(own, 100_000_000)
        assert own.conf.get(SHUFFLE) == "1", "the tests' own setting, not 200"


def test_a_session_on_the_same_application_is_closed_without_ending_it(spark):
    close_session(another_session(spark))
    assert spark.range(2).count() == 2


class Client:
    def __init__(self):
        self.calls = []

    def release_session(self):
        self.calls.append("release")
        raise OSError("the server is gone")

    def close(self):
        self.calls.append("close")


class Remote:
    """A session of a Connect server; to stop one ends a server that pyspark started, for all others too."""

    def __init__(self):
        self.client = Client()

    def cloneSession(self):  # noqa: N802 - pyspark's name
        self.cloned = Remote()
        return self.cloned


Remote.__module__ = "pyspark.sql.connect.session"


def test_a_session_cloned_on_a_connect_server_is_released_and_the_active_one_is_not(monkeypatch):
    from pyspark.sql import SparkSession

    active = Remote()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: active)
    with session("a job") as own:
        assert own is active.cloned
        assert own.client.calls == []
    assert own.client.calls == ["release", "close"], "what cannot be released fails no job that is done"
    assert active.client.calls == []


def test_two_attempts_of_a_task_never_run_at_a_time_in_a_session_of_ours():
    assert OWN["spark.speculation"] == "false"


class Settings(dict):
    """The settings of a session that nobody has set anything for."""

    @property
    def getAll(self):  # noqa: N802 - pyspark's name
        return dict(self)

    set = dict.__setitem__


@pytest.mark.parametrize(
    ("partitions", "shuffle", "few"),
    [(40, "1", True), (100_000, "1", True), (1_000_000, "1", False), (10**9, "200", False)],
)
def test_counted_rows_need_no_second_plan_and_few_no_compiler(partitions, shuffle, few):
    class Made:
        conf = Settings()

    tune_spark(Made, partitions)
    assert Made.conf == ALWAYS | {SHUFFLE: shuffle} | (FOR_FEW if few else {})


JOB = """
from rebalance_lib.jobs.session import another_session, close_session, parallelism, session, tune_spark

def doubled(batches):
    import pyarrow as pa
    for batch in batches:
        yield pa.record_batch({"id": [2 * one for one in batch["id"].to_pylist()]})

with session("a job") as spark:
    tune_spark(spark, 40)
    close_session(another_session(spark))
    rows = spark.range(0, 4, 1, 2).mapInArrow(doubled, "id bigint").toArrow()
    print("rows", sorted(rows["id"].to_pylist()), "tasks", parallelism(spark))
    print("set", {name: spark.conf.get(name) for name in %r})
with session("another") as spark:
    print("again", spark.range(2).count())
"""


def submitted(tmp_path, job, *options):
    (tmp_path / "job.py").write_text(job)
    done = subprocess.run(
        [SUBMIT, "--master", "local[2]", "--conf", "spark.log.level=ERROR", *options, tmp_path / "job.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.long
@pytest.mark.programs
def test_what_spark_submit_gives_goes_before_what_the_job_would_set(tmp_path):
    names = ["spark.app.name", "spark.ui.enabled", "spark.ui.showConsoleProgress", ADAPTIVE, SHUFFLE]
    options = ["--name", "mine", "--conf", f"{SHUFFLE}=7", "--conf", "spark.ui.showConsoleProgress=true"]
    said = submitted(tmp_path, JOB % (names,), *options)
    assert "rows [0, 2, 4, 6] tasks 2" in said
    values = dict(zip(names, ["mine", "false", "true", "false", "7"], strict=True))
    assert f"set {values}" in said
    assert "again 2" in said


@pytest.mark.long
@pytest.mark.programs
def test_a_connect_server_is_used_where_one_is_configured(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "local[2]")
    (tmp_path / "job.py").write_text(JOB % ([ADAPTIVE, SHUFFLE],))
    done = subprocess.run(
        [sys.executable, "job.py"], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=250
    )
    assert "rows [0, 2, 4, 6] tasks 2" in done.stdout, done.stderr[-2000:]
    assert f"set {{'{ADAPTIVE}': 'false', '{SHUFFLE}': '1'}}" in done.stdout
