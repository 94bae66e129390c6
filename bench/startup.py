"""Where the time of a small plan goes: each step of starting Spark by itself, then the whole job.

    python -m bench.startup
    python -m bench.startup --partitions 10000 --repetitions 3
    python -m bench.startup --java=-XX:TieredStopAtLevel=1 --conf spark.ui.enabled=true

Every row is a spark-submit of its own, which does what the row before does and one thing more:

    python        a program that does nothing: spark-submit's two JVMs, and the driver's Python
    session       `rebalance_lib.jobs.session`
    task          one task of mapInArrow on each core, which does nothing: the Python workers start
    imports       such tasks that import what the planner's tasks import
    job           compute_placement for a cluster of so many partitions

*local* is the same plan by ``kafka-rebalance plan --engine local``, without Spark. Of several runs, the one with the
least processor time is shown: on a machine with other work, that says more than the clock.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from bench.clusters import Parameters, generate, write_snapshot
from bench.document import machine, table
from bench.measure import Measured, measure
from kafka_rebalance_airflow.spark import DEFAULTS
from rebalance_lib.jobs import compute_placement
from rebalance_lib.jobs.archive import driver_java_options

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
LIMIT = 300.0
SESSION = "from rebalance_lib.jobs.session import session\nwith session('start-up') as spark:\n    "
TASK = """tasks = spark.range(0, 2, 1, 2).mapInArrow(work, "id bigint").collect()"""
STEPS = {
    "python": "pass",
    "session": SESSION + "pass",
    "task": "def work(batches):\n    yield from batches\n\n" + SESSION + TASK,
    "imports": ("def work(batches):\n    import rebalance_lib.jobs.tasks\n    yield from batches\n\n" + SESSION + TASK),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", default="40,10000", help="of the clusters to plan, with commas")
    parser.add_argument("--steps", default=",".join((*STEPS, "job", "local")), help="which rows, with commas")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--java", help="options of the driver's JVM; default what Airflow's operator gives, '' for none"
    )
    parser.add_argument("--conf", action="append", default=[], help="a property of Spark; repeatable")
    options = parser.parse_args()
    steps = options.steps.split(",")
    conf = [f"{name}={value}" for name, value in DEFAULTS.items()] + options.conf
    submit = [str(SUBMIT), "--master", options.master, *(word for one in conf for word in ("--conf", one))]
    submit += ["--conf", f"spark.pyspark.python={sys.executable}"]
    java = driver_java_options() if options.java is None else options.java
    if java:
        submit += ["--driver-java-options", java]
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name, program in STEPS.items():
            if name in steps:
                (root / f"{name}.py").write_text(program)
                rows.append(row(name, [*submit, str(root / f"{name}.py")], options.repetitions))
        for size in map(int, options.partitions.split(",")):
            run = root / f"run-{size}"
            cluster = Parameters(scenario="skew", partitions=size, brokers=max(6, size // 300))
            write_snapshot(generate(cluster), run / "snapshot")
            if "job" in steps:
                job = [*submit, compute_placement.__file__, "--mode", "balance", "--run", run.as_uri()]
                rows.append(row(f"job, {size:,} partitions", job, options.repetitions))
            if "local" in steps:
                plan = [sys.executable, "-m", "rebalance_lib.cli", "plan", "--mode", "balance"]
                plan += ["--snapshot", run.as_uri(), "--out", str(root / f"out-{size}"), "--engine", "local"]
                rows.append(row(f"local, {size:,} partitions", plan, options.repetitions))
    print(f"\nOn {machine()}, master {options.master}:\n")
    print(table(("", "processor", "clock"), [one[:3] for one in rows]))
    for name, _, _, error in rows:
        if error:
            print(f"{name}: {error}", file=sys.stderr)
    return int(any(error for *_, error in rows))


def row(name: str, command: Sequence[str], repetitions: int) -> tuple[str, str, str, str]:
    """The best of some runs, as a row of the table, and what went wrong."""
    best: Measured = min((measure(command, limit=LIMIT) for _ in range(repetitions)), key=lambda one: one.cpu_seconds)
    print(f"{name:30} {best.cpu_seconds:6.1f} s  {best.seconds:6.1f} s  {best.error}", flush=True)
    return name, f"{best.cpu_seconds:.1f} s", f"{best.seconds:.1f} s", best.error


if __name__ == "__main__":
    sys.exit(main())
