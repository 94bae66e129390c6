"""The jobs through a Spark Connect server: a real one, to which each job is a client in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.jobs import compact_history, compute_placement, forecast_capacity
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from sandbox.ports import free_port
from tests.history.samples import moment
from tests.jobs.test_plans import in_a_store, is_planned_in_a_store, run_of, skewed
from tests.waiting import wait_for

SPARK = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"

pytestmark = [pytest.mark.long, pytest.mark.programs, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server with two cores, which is stopped at the end."""
    directory, port = tmp_path_factory.mktemp("connect"), free_port()
    (jar,) = (SPARK / "jars").glob("spark-connect_*.jar")
    settings = {"connect.grpc.binding.address": "127.0.0.1", "connect.grpc.binding.port": port, "ui.enabled": "false"}
    command = [SPARK / "bin" / "spark-submit", "--master", "local[2]", "--class", SERVER]
    command += [word for name, value in settings.items() for word in ("--conf", f"spark.{name}={value}")]
    log = directory / "server.log"
    with log.open("w") as output:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        process = subprocess.Popen([*command, jar], env=environment, stdout=output, stderr=output, cwd=directory)
    try:
        wait_for(log.read_text, lambda text: "Spark Connect server started" in text)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def run_job(server, job, *arguments):
    """What a job logs; it starts no JVM, since there is no Java for it."""
    environment = {**os.environ, "SPARK_REMOTE": server, "JAVA_HOME": "/nowhere"}
    command = [sys.executable, job.__file__, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


EMPTY_TABLE = "a Connect client cannot infer the schema of the empty table of broker sets in jobs/checks.py"


@pytest.mark.xfail(reason=EMPTY_TABLE, strict=True)
def test_clusters_are_planned_as_on_one_machine_whole_and_in_shards(server, tmp_path):
    runs = {seed: run_of(tmp_path / str(seed), skewed(seed)) for seed in (2, 3)}
    for request in (Request(Mode.BALANCE), Request(Mode.BALANCE, shards=3)):
        arguments = [word for run in runs.values() for word in ("--run", run.uri)]
        log = run_job(server, compute_placement, *arguments, "--mode", "balance", "--shards", str(request.shards))
        assert "2 of 2 runs have a plan" in log
        for seed, run in runs.items():
            here = {one.name: one.plan.digest for one in candidates(ClusterModel.of(skewed(seed)), request)}
            assert {name: one["digest"] for name, one in run.summary()["candidates"].items()} == here


@pytest.mark.xfail(reason=EMPTY_TABLE, strict=True)
def test_a_plan_has_the_loads_of_the_history(server, tmp_path):
    run, history = in_a_store(Artifacts.at(tmp_path))
    run_job(server, compute_placement, "--run", run.uri, "--mode", "balance", "--history", history.uri)
    is_planned_in_a_store(run, Request(Mode.BALANCE))


def test_the_history_is_compacted_and_forecast(server, tmp_path):
    run, history = in_a_store(Artifacts.at(tmp_path))
    assert "compact_history: 2 days" in run_job(server, compact_history, "--history", history.uri)
    window = ["--until", moment(60).isoformat(), "--days", "2"]
    for number, of_run in enumerate((["--run", run.uri], [])):
        out = Artifacts.at(tmp_path / str(number))
        run_job(server, forecast_capacity, "--history", history.uri, *of_run, "--out", out.uri, *window)
        assert out.read_table("capacity.parquet").num_rows
