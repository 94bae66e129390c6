"""Capacity on Spark: days for every log dir, broker and cluster, whatever is torn elsewhere."""

from __future__ import annotations

import json
import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace

import pyarrow as pa
import pytest

from rebalance_lib.artifacts import SNAPSHOT, Artifacts
from rebalance_lib.history import HISTORY, append_sample, compact_day
from rebalance_lib.history.places import Question, finish
from rebalance_lib.jobs import forecast_capacity as job
from rebalance_lib.jobs.forecast_capacity import main
from rebalance_lib.report.capacity import capacity_text
from rebalance_lib.topology import BROKERS, REPLICAS, Snapshot
from tests.history.samples import moment

HOUR = 3600
HOURS = 16 * 24
DIRS = [(1, "/a"), (1, "/b"), (2, "/a")]


def held(hour):
    """Bytes by log dir: broker 1 has 100 and 200, broker 2 has 300; each gains 24 a day."""
    return [100 * (n + 1) + hour for n in range(len(DIRS))]


def append(history, cluster_id, hour):
    rows = [
        {"topic": "t", "partition": n, "broker": broker, "leader": True, "size_bytes": size, "log_dir": log_dir}
        for n, ((broker, log_dir), size) in enumerate(zip(DIRS, held(hour), strict=True))
    ]
    at = moment(hour * HOUR)
    append_sample(history, cluster_id, pa.Table.from_pylist([{**row, "taken_at": at} for row in rows], HISTORY), at)


def write_snapshot(run, cluster_id):
    """Each log dir has 1000 bytes, of which 16 are others'."""
    sizes = dict(zip(DIRS, held(HOURS - 4), strict=True))
    brokers = [
        {
            "broker": broker,
            "host": "h",
            "port": 1,
            "alive": True,
            "log_dirs": [
                {"path": path, "total_bytes": 1000, "usable_bytes": 984 - size}
                for (of, path), size in sizes.items()
                if of == broker
            ],
        }
        for broker in (1, 2)
    ]
    flags = dict.fromkeys(("in_sync", "leader"), True) | dict.fromkeys(("adding", "removing", "internal"), False)
    replicas = [
        {"topic": "t", "partition": n, "position": 0, "broker": b, "log_dir": d, "size_bytes": sizes[b, d], **flags}
        for n, (b, d) in enumerate(DIRS)
    ]
    tables = (pa.Table.from_pylist(brokers, BROKERS), pa.Table.from_pylist(replicas, REPLICAS))
    snapshot = Snapshot(cluster_id, moment(HOURS * HOUR).isoformat(), *tables)
    for name, table in zip(("brokers", "replicas"), snapshot.tables(), strict=True):
        (run / SNAPSHOT).write_table(f"{name}.parquet", table)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    history = Artifacts.at(tmp_path_factory.mktemp("history"))
    for cluster_id in ("good", "torn"):
        for hour in range(0, HOURS, 4):
            append(history, cluster_id, hour)
    torn = "cluster=torn/day=2026-01-03/2026-01-03T040000Z.parquet"
    history.write_bytes(torn, history.read_bytes(torn)[:300])
    return history


def run_job(history, out, *options):
    until = moment(HOURS * HOUR).isoformat()
    return main(["--history", history.uri, "--out", out.uri, "--until", until, "--days", "16", *options])


def by_place(out):
    rows = out.read_table("capacity.parquet").to_pylist()
    return {(row["cluster"], row["broker"], row["log_dir"]): row for row in rows}


def days(row, name):
    return (row[name] - row["last_sample"]).total_seconds() / 86_400


def test_every_place_of_every_cluster_has_its_days(spark, history, tmp_path, capsys):
    before = dict(spark.conf.getAll)
    run, broken, out = (Artifacts.at(tmp_path / name) for name in ("run", "broken", "out"))
    write_snapshot(run, "good")
    broken.write_text(f"{SNAPSHOT}/brokers.parquet", "no Parquet")
    runs = ["--run", run.uri, "--run", broken.uri, "--run", f"{run.uri}/"]  # one snapshot, named in two ways
    assert run_job(history, out, *runs, "--more-brokers", "1") == 1
    rows = by_place(out)
    assert len(rows) == 2 * (1 + 2 + 3)

    dirs = rows["good", 1, "/a"]
    assert (dirs["used_bytes"], dirs["total_bytes"]) == (100 + HOURS - 4, 1000)
    assert dirs["fill"] == pytest.approx((100 + HOURS - 4 + 16) / 1000)
    assert dirs["growth_per_day"] == pytest.approx(24)
    assert days(dirs, "passes_likely") == pytest.approx((900 - 16 - dirs["used_bytes"]) / 24, abs=0.2)
    assert days(dirs, "full_likely") == pytest.approx((1000 - 16 - dirs["used_bytes"]) / 24, abs=0.2)
    broker = rows["good", 1, None]
    assert (broker["used_bytes"], broker["total_bytes"]) == (300 + 2 * (HOURS - 4), 2000)
    # Two brokers of 1500 in the mean: one more makes 2700 - 48 bytes, the limit, into half as much again.
    whole = rows["good", None, None]
    used = 600 + 3 * (HOURS - 4)
    assert days(whole, "passes_likely") == pytest.approx((2700 - 48 - used) / 72, abs=0.2)
    assert days(whole, "passes_with_more") == pytest.approx((1.5 * (2700 - 48) - used) / 72, abs=0.2)
    assert whole["passes_postponed_days"] == pytest.approx(0.5 * (2700 - 48) / 72, abs=0.2)
    assert broker["passes_with_more"] == whole["passes_with_more"]

    torn = rows["torn", None, None]
    assert (torn["samples"], torn["passes_likely"], torn["note"]) == (HOURS // 4 - 1, None, "no capacity is known")
    assert torn["growth_per_day"] == pytest.approx(72)
    said = capsys.readouterr()
    assert "left out: file://" in said.err
    assert "2026-01-03T040000Z.parquet" in said.err
    assert f"{broken.uri}/snapshot/brokers.parquet is no Parquet file" in said.err
    assert "good: 1 more broker would postpone 90% by 18 days" in said.out
    facts = json.loads(out.read_text("capacity.json"))
    assert [len(facts[name]) for name in ("unread_files", "unread_runs")] == [1, 1]
    assert dict(spark.conf.getAll) == before


@pytest.mark.long
def test_what_a_worker_dies_over_stops_no_other(spark, tmp_path, monkeypatch, capsys):
    class Killing(Artifacts):
        """Whoever reads that cluster's days or that run is killed, as for its memory."""

        def __truediv__(self, name):
            if name.startswith("cluster=b/day=") or self.uri.endswith("killed"):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__truediv__(name)

    history, out, run, killed = (Artifacts.at(tmp_path / name) for name in ("history", "out", "run", "killed"))
    for cluster_id in ("a", "b"):
        for hour in range(HOURS - 30, HOURS, 6):
            append(history, cluster_id, hour)
    write_snapshot(run, "a")
    monkeypatch.setattr(job, "Artifacts", Killing)
    before = spark.getActiveSession()
    assert run_job(history, out, "--run", killed.uri, "--run", run.uri) == 1
    assert {place: row["total_bytes"] for place, row in by_place(out).items() if place[1] is None} == {
        ("a", None, None): 3000
    }
    said = capsys.readouterr().err.splitlines()
    assert [line.partition("most likely")[0] for line in said] == [
        f"forecast_capacity: {killed.uri}: a worker died over it, ",
        "forecast_capacity: cluster b: a worker died over it, ",
    ]
    facts = json.loads(out.read_text("capacity.json"))
    assert [len(facts[name]) for name in ("unread_runs", "failed_clusters")] == [1, 1]
    assert spark.getActiveSession() is before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster", "other"], "clusters ['other'] are not in the history"),
        (["--fill", "90"], "the fill level is 90.0: give a part of the disk"),
        (["--more-brokers", "-1"], "-1 more brokers"),
        (["--days", "0"], "--days is 0.0"),
        (["--capacities", '{"disk": 1}'], "capacities has the key"),
    ],
)
def test_wrong_input_costs_no_session(history, tmp_path, capsys, options, message):
    assert run_job(history, Artifacts.at(tmp_path), *options) == 1
    assert message in capsys.readouterr().err


def test_where_spark_fails_every_cluster_and_run_has_a_line_and_nothing_is_raised(
    history, tmp_path, monkeypatch, capsys
):
    def fail(*_):
        raise RuntimeError("Cannot call methods on a stopped SparkContext.\n at line 1")

    monkeypatch.setattr(job, "session", lambda _name: nullcontext(SimpleNamespace(range=fail)))
    assert run_job(history, Artifacts.at(tmp_path), "--run", "file:///run") == 1
    assert capsys.readouterr().err.splitlines() == [
        f"forecast_capacity: {what}: Spark failed: Cannot call methods on a stopped SparkContext."
        for what in ("file:///run", "cluster good", "cluster torn")
    ]


def usage(history, *, start=0):
    """Bytes by hour, as workers read them in this process."""
    window = moment(start), moment(24 * HOUR)
    tables = job._usage(job.Sources(history, ("c",), *window))(("c", *window))
    found = {}
    for row in pa.concat_tables(tables).to_pylist():
        assert row["error"] is None
        hour = (row["taken_at"] - moment(0)).total_seconds() / HOUR
        found[hour] = found.get(hour, 0) + row["bytes"]
    return found


def test_a_moment_counts_once_in_whichever_files_it_is(tmp_path):
    history = Artifacts.at(tmp_path)
    for hour in range(5):
        append(history, "c", hour)
    (day,) = (f"cluster=c/{name}" for name in (history / "cluster=c").directories())
    single = {name: (history / day).read_bytes(name) for name in (history / day).files()}
    expected = {hour: sum(held(hour)) for hour in range(5)}
    assert usage(history) == expected
    compact_day(history, day)
    assert len((history / day).files()) == 1
    assert usage(history) == expected
    assert usage(history, start=2 * HOUR) == {hour: expected[hour] for hour in (2, 3, 4)}
    name, content = min(single.items())
    (history / day).write_bytes(name, content)  # as if compaction had died before it removed this one
    append(history, "c", 5)
    assert usage(history) == expected | {5: sum(held(5))}


def test_what_cannot_be_listed_or_forecast_stops_no_other(history, monkeypatch):
    """In this process: what workers do with an error that nobody foresaw."""

    def fail(*_):
        raise MemoryError("too much")

    window = moment(0), moment(HOURS * HOUR)
    sources = job.Sources(history, ("good",), *window)
    monkeypatch.setattr(job, "files_between", fail)
    (table,) = job._usage(sources)(("good", *window))
    assert table["error"].to_pylist() == [f"{history.uri}, cluster good: MemoryError: too much"]
    monkeypatch.setattr(job, "forecast_place", fail)
    place = {"cluster": "good", "scope": "cluster", "broker": None, "log_dir": None, "taken_at": moment(0)}
    rows = finish(job._forecasting(Question())(pa.Table.from_pylist([place]))).to_pylist()
    assert rows[0]["note"] == "MemoryError: too much"
    assert "MemoryError: too much" in capacity_text(rows, 0.9)
