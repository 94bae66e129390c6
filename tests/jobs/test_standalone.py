"""The job on a real standalone master with two workers, each a process of its own, as on a cluster of machines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Run
from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.planner import ClusterModel, Mode, Request, candidates
from sandbox.ports import free_port

SPARK = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The address of a master with two workers, all of them stopped at the end."""
    directory = tmp_path_factory.mktemp("standalone")
    ports = [free_port() for _ in range(4)]
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    started = []

    def start(name, *arguments):
        log = (directory / f"{len(started)}.log").open("w")
        command = [SPARK / "bin" / "spark-class", f"{DEPLOY}.{name}", "--host", "127.0.0.1", *map(str, arguments)]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=directory)
        started.append(process)
        return Path(log.name)

    url = f"spark://127.0.0.1:{ports[0]}"
    try:
        log = start("master.Master", "--port", ports[0], "--webui-port", ports[1])
        for port in ports[2:]:
            work = directory / f"work-{port}"
            start("worker.Worker", "--webui-port", port, "--cores", 1, "--memory", "1g", "--work-dir", work, url)
        wait_for(log, "Registering worker", times=2)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


def wait_for(log, words, times):
    deadline = time.monotonic() + 60
    while log.read_text().count(words) < times:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def test_two_workers_work_out_the_plan_of_one_machine(master, tmp_path):
    snapshot = generate(Parameters(scenario="skew", partitions=300, brokers=6)).snapshot()
    run = Run(Artifacts.at(tmp_path).uri)
    run.write_snapshot(snapshot)
    command = [SPARK / "bin" / "spark-submit", "--master", master, "--conf", "spark.ui.enabled=false"]
    command += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m"]
    command += ["--conf", "spark.sql.shuffle.partitions=2", job.__file__, "--run", run.uri, "--mode", "balance"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    here = candidates(ClusterModel.of(snapshot), Request(Mode.BALANCE))
    assert run.plan().digest == here[0].plan.digest
    assert {one.name for one in here} == set(run.summary()["candidates"])
