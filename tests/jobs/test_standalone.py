"""The job as it is submitted to a cluster: a real standalone master, its executors, and all data in an object store.

What it reads and writes is out of reach for everything but fsspec's package for the store.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.planner import Mode, Request
from sandbox.ports import free_port
from tests.jobs.test_plans import in_a_store, is_planned_in_a_store
from tests.object_store import SECRET
from tests.waiting import wait_for

SPARK = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"


@pytest.fixture
def master(object_store, tmp_path):
    """The address of a master with a worker for two executors, all of them stopped at the end."""
    daemons = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"]}
    environment = {**os.environ, "SPARK_HOME": str(SPARK), **daemons}
    started = []

    def start(name, *arguments):
        log = tmp_path / f"{name}.log"
        command = [SPARK / "bin" / "spark-class", f"{DEPLOY}.{name}", "--host", "127.0.0.1", *map(str, arguments)]
        with log.open("w") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=tmp_path)
        started.append(process)
        return log

    port, *pages = (free_port() for _ in range(3))
    url = f"spark://127.0.0.1:{port}"
    try:
        log = start("master.Master", "--port", port, "--webui-port", pages[0])
        start("worker.Worker", "--webui-port", pages[1], "--cores", 2, "--memory", "1g", "--work-dir", tmp_path, url)
        wait_for(log.read_text, lambda text: "Registering worker" in text)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


@pytest.mark.long
@pytest.mark.programs
@pytest.mark.timeout(900)  # six JVMs
def test_two_executors_work_out_the_plan_of_one_machine(master, object_store):
    run, history = in_a_store(object_store.bucket())
    settings = {
        "driver.host": "127.0.0.1",
        "executor.cores": "1",
        "executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
        "executor.memory": "512m",
        "ui.enabled": "false",
    }
    command = [SPARK / "bin" / "spark-submit", "--master", master]
    command += [word for name, value in settings.items() for word in ("--conf", f"spark.{name}={value}")]
    command += [job.__file__, "--run", run.uri, "--mode", "balance", "--history", history.uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert SECRET not in done.stdout + done.stderr
    assert "Granted executor ID app-" in done.stderr
    is_planned_in_a_store(run, Request(Mode.BALANCE))
