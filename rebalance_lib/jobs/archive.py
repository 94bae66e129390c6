"""An archive of Spark's classes, which its driver maps into memory instead of reading and checking them one by one.

``kafka-rebalance compile`` makes it, where Spark and Java are installed. Starting a session and running a first task
takes 6.3 s of processor time with it, and 10.3 s without (``python -m bench.startup``). Java does not use an archive
that was made by another release of Java, or of other jars: it is then slower, and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata, util
from pathlib import Path

from rebalance_lib.artifacts import SNAPSHOT, Artifacts
from rebalance_lib.caches import find, to_be_made

HERE = Path(__file__).parent
SECONDS = 300.0
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# C1 alone, and one thread that collects: Python workers do what takes long, most of what the JVM does runs once, and a
# compiler that knows more takes longer than it saves. Session and first task: 10.3 s of processor time so, 17.1 s
# without (`python -m bench.startup`); a plan of a million partitions: 45 s so, 52 s without.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
JOB = HERE / "compute_placement.py"


def driver_java_options() -> str:
    """What suits the JVM of a planning job's driver that runs on this machine, however large the clusters are."""
    archive = find(HERE, _name())
    return " ".join([QUICK, *([f"-XX:SharedArchiveFile={archive} {QUIET}"] if archive else [])])


def archive_classes(log: Callable[[str], None]) -> Path | None:
    """Make the archive, unless there is one; None where there is no Spark, or it failed.

    Args:
        log: Where to say what takes the time, and what went wrong.
    """
    spark = util.find_spec("pyspark")
    submit = Path(spark.origin).parent / "bin" / "spark-submit" if spark and spark.origin else None
    if submit is None or not submit.is_file():
        return None
    if there := find(HERE, _name()):
        return there
    log("archiving Spark's classes, once for this installation: about 30 s")
    made = to_be_made(HERE, _name())
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as directory:
            _dump(submit, Path(directory)).replace(made)
    except (OSError, subprocess.SubprocessError) as error:
        log(f"Spark's classes could not be archived, its jobs start more slowly: {type(error).__name__}: {error}")
        return None
    return made


def _dump(submit: Path, directory: Path) -> Path:
    """Archive what the planning job loads, by planning a tiny cluster."""
    from rebalance_lib.planner.warm_up import tiny_cluster  # noqa: PLC0415 - has numba, which no other caller needs

    run, archive = Artifacts.at(directory), directory / "classes.jsa"
    for name, table in zip(("brokers", "replicas"), tiny_cluster().tables(), strict=True):
        (run / SNAPSHOT).write_table(f"{name}.parquet", table)
    options = f"-XX:ArchiveClassesAtExit={archive} {QUIET} {QUICK}"
    subprocess.run(
        [submit, "--master", "local[1]", "--driver-java-options", options, JOB, "--mode", "balance", "--run", run.uri],
        check=True,
        capture_output=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env={"SPARK_LOCAL_IP": "127.0.0.1", **os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    return archive


def _name() -> str:
    return f"spark-{metadata.version('pyspark')}.jsa"
