"""The planning job on many clusters, or on one too large for a worker: time, plans, and the memory of each process.

    python -m bench.fleet --clusters 300
    python -m bench.fleet --clusters 100 --broken
    python -m bench.fleet --clusters 1 --partitions 10000000 --brokers 3000 --name-length 75 --workers 2
    python -m bench.fleet --clusters 1 --partitions 4000000 --brokers 1000 --workers 1

Without ``--workers`` the job runs on ``local[2]``: the driver's JVM is the executor, too. With it, a standalone master
and so many workers are started on loopback, with one executor of one core and ``--executor-memory`` each, of which the
JVM gets a quarter.

With ``--broken``, five clusters are broken: a torn snapshot, a torn file of the history, a directory in which no plan
can be written, a worker that is killed while it writes, and a planner that refuses (its cluster lacks the broker that
is to be drained). All others must have a plan, and the job must end with 1.

Memory is the most resident at a time of any one process of its kind, looked up every half second.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pyspark

from bench.clusters import Parameters, generate, write_snapshot
from bench.document import machine
from rebalance_lib.artifacts import SNAPSHOT, Artifacts, read_snapshot
from rebalance_lib.history import append_snapshot
from rebalance_lib.jobs import compute_placement
from rebalance_lib.jobs.archive import driver_java_options
from sandbox.ports import free_port

SPARK = Path(pyspark.__file__).parent
KINDS = {
    "driver, JVM": "org.apache.spark.deploy.SparkSubmit",
    "driver, Python": "compute_placement.py",
    "executor, JVM": "CoarseGrainedExecutorBackend",
    "worker, Python": "pyspark.daemon",
}
SAMPLE_SECONDS = 0.5
KILLED = "killed"
KILLING = f"""
import os, signal
makedirs = os.makedirs
def killing(path, *more, **options):
    if "/{KILLED}/plan." in str(path):
        os.kill(os.getpid(), signal.SIGKILL)
    makedirs(path, *more, **options)
os.makedirs = killing
"""
DRAINED = 1
PATH_LENGTH = 4040  # so deep a directory that a snapshot can be written there, and a plan cannot


def main() -> None:
    """Generate the clusters, run the job, and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--clusters", type=int, default=10)
    add("--partitions", type=int, default=10_000, help="of each cluster")
    add("--brokers", type=int, default=30, help="of each cluster")
    add("--name-length", type=int, default=0, help="characters of a topic's name, if it would be shorter")
    add("--scenario", default="skew")
    add("--broken", action="store_true", help="break five of the clusters")
    add("--workers", type=int, default=0, help="of a standalone master; 0: local[2]")
    add("--executor-memory", type=int, default=4096, help="MB of each executor, Python included")
    add("--directory", type=Path, help="where to keep the clusters for another run; by default nowhere")
    add("arguments", nargs="*", help="more arguments of the job, behind --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.directory or Path(temporary)
        runs, history = fleet(directory, options)
        with cluster(options, Path(temporary)) as settings:
            run_job(runs, history, settings, options, Path(temporary))


def fleet(directory: Path, options: argparse.Namespace) -> tuple[dict[str, Path], Path]:
    """The runs by name; broken ones are made again each time."""
    runs = {}
    broken = (KILLED, "storage", "planner", "snapshot", "history") if options.broken else ()
    for seed in range(1, options.clusters - len(broken) + 1):
        runs[f"cluster-{seed:04d}"] = directory / f"cluster-{seed:04d}"
        make(runs[f"cluster-{seed:04d}"], options, seed)
    for seed, name in enumerate(broken, start=1001):
        runs[name] = deep(directory / name) if name == "storage" else directory / name
        make(runs[name], options, seed)
    for run in runs.values():
        for left in run.glob("plan*"):
            shutil.rmtree(left)
    history = directory / "history"
    if broken:
        shutil.rmtree(runs["planner"] / SNAPSHOT)
        smaller = Parameters(scenario="skew", partitions=100, brokers=3, first_id=DRAINED + 1)
        write_snapshot(generate(smaller), runs["planner"] / SNAPSHOT)
        torn = runs["snapshot"] / SNAPSHOT / "replicas.parquet"
        torn.write_bytes(torn.read_bytes()[:4] + bytes(400) + torn.read_bytes()[404:])
        kept = Artifacts.at(runs["history"] / SNAPSHOT)
        snapshot = replace(read_snapshot(kept), cluster_id="torn", taken_at="2026-11-18T12:00:00+00:00")
        for name, table in zip(("brokers", "replicas"), snapshot.tables(), strict=True):
            kept.write_table(f"{name}.parquet", table)
        file = history / append_snapshot(Artifacts.at(history), snapshot).name
        file.write_bytes(file.read_bytes()[:1000])
    return runs, history


def make(run: Path, options: argparse.Namespace, seed: int) -> None:
    if (run / SNAPSHOT).exists():
        return
    parameters = Parameters(
        scenario=options.scenario, partitions=options.partitions, brokers=options.brokers, seed=seed
    )
    drawn = generate(parameters)
    longer = [name.ljust(options.name_length, "x") for name in drawn.topics.to_pylist()]
    write_snapshot(replace(drawn, topics=pa.array(longer, pa.string())), run / SNAPSHOT)


def deep(directory: Path) -> Path:
    for _ in range((PATH_LENGTH - len(str(directory))) // 201):
        directory /= "d" * 200
    return directory / ("d" * (PATH_LENGTH - len(str(directory)) - 1))


@contextmanager
def cluster(options: argparse.Namespace, directory: Path) -> Iterator[list[str]]:
    """What spark-submit needs to know; a master and its workers run meanwhile, if they are asked for."""
    if not options.workers:
        yield ["--master", "local[2]", "--driver-memory", "4g"]
        return
    heap = options.executor_memory // 4
    settings = {
        "driver.host": "127.0.0.1",
        "executor.cores": "1",
        "executor.memory": f"{heap}m",
        "executor.memoryOverhead": f"{options.executor_memory - heap}m",
    }
    environment = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_DAEMON_MEMORY": "256m"}
    port, *pages = (free_port() for _ in range(2 + options.workers))
    url = f"spark://127.0.0.1:{port}"
    daemons = []

    def start(name: str, *arguments: object) -> None:
        command = [SPARK / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
        with (directory / f"{name}.log").open("a") as log:
            daemons.append(subprocess.Popen([*command, *map(str, arguments)], env=environment, stdout=log, stderr=log))

    try:
        start("master.Master", "--port", port, "--webui-port", pages[0])
        time.sleep(5)
        for page in pages[1:]:
            work = ("--work-dir", directory / f"work-{page}")
            start("worker.Worker", "--webui-port", page, "--cores", 1, "--memory", f"{heap}m", *work, url)
        time.sleep(5)
        words = [word for name, value in settings.items() for word in ("--conf", f"spark.{name}={value}")]
        yield ["--master", url, "--driver-memory", "512m", *words]
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait()


def run_job(
    runs: dict[str, Path], history: Path, settings: list[str], options: argparse.Namespace, directory: Path
) -> None:
    """Run the job and print its figures."""
    (directory / "sitecustomize.py").write_text(KILLING)
    path = os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **({"PYTHONPATH": path} if options.broken else {})}
    command = [str(SPARK / "bin" / "spark-submit"), *settings, "--conf", f"spark.pyspark.python={sys.executable}"]
    command += ["--driver-java-options", driver_java_options()]
    command += ["--conf", "spark.log.level=WARN", compute_placement.__file__]
    command += ["--mode", "drain", "--brokers", str(DRAINED), "--history", history.as_uri()] if options.broken else []
    command += [] if options.broken else ["--mode", "balance"]
    command += [*options.arguments, *(word for run in runs.values() for word in ("--run", run.as_uri()))]
    log = directory / "job.log"
    begun, most = time.perf_counter(), defaultdict(int)
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        while process.poll() is None:
            sample(most)
            time.sleep(SAMPLE_SECONDS)
    seconds = time.perf_counter() - begun
    published = [name for name, run in runs.items() if (run / "plan" / "plan.json").exists()]
    print(f"{len(runs)} clusters of {options.partitions} partitions and {options.brokers} brokers; {machine()}")
    print(f"{seconds:.1f} s, exit code {process.returncode}, {len(published)} of {len(runs)} have a plan")
    for kind, memory in sorted(most.items()):
        print(f"{kind}: {memory / 2**30:.2f} GB")
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("compute_placement: "):
            print(re.sub("/d{40}[^:]*", "/d...", line))


def sample(most: dict[str, int]) -> None:
    """Note the memory of all processes of the job."""
    for process in psutil.process_iter():
        try:
            command = " ".join(process.cmdline())
            kind = next((kind for kind, word in KINDS.items() if word in command), None)
            if kind == "driver, Python" and KINDS["driver, JVM"] in command:
                kind = "driver, JVM"
            if kind is not None:
                most[kind] = max(most[kind], process.memory_info().rss)
        except psutil.Error:
            continue


if __name__ == "__main__":
    main()
