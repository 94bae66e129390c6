"""From a request to published files: read, plan, check, write, with a message for each stage; here or on Spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import rebalance_lib
from rebalance_lib.artifacts import (
    GROUPS,
    PLAN,
    RATES,
    SNAPSHOT,
    Artifacts,
    read_checked_snapshot,
    read_groups,
    write_groups,
)
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import LoadOptions, clusters, planned_loads
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Choice, ClusterModel, Request, Scope
from rebalance_lib.planner.candidates import FULL, UNLIMITED, all_candidates, names, undominated
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.planner.compiling import is_compiled
from rebalance_lib.report import publish_choice, with_groups
from rebalance_lib.topology import ClusterFile, Snapshot, parse_cluster

JOB = Path(rebalance_lib.__file__).parent / "jobs" / "compute_placement.py"
MANY_REPLICAS = 1_000_000  # from here on, Java's second compiler is worth its time
COMPILING = "compiling the planner, once"
COMPLAINT = "compute_placement: "  # what the job begins each of its errors with
FILES = {
    "plan.json",
    "candidates",
    "moves.parquet",
    "brokers_before_after.parquet",
    GROUPS,
    RATES,
    "summary.json",
    "review.md",
}


@dataclass(frozen=True, slots=True)
class Stages:
    """What is being done, shown to whoever waits, and how long each part took."""

    show: Callable[[str], None]
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str, words: str) -> Iterator[None]:
        """Do one stage; its seconds add to what the stages of this name took before."""
        self.show(words)
        begun = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun


def read_cluster(place: str) -> ClusterFile:
    """A snapshot directory, a run that has one, or a cluster's JSON file."""
    file = Path(place)
    if "://" not in place and file.is_file():
        try:
            return parse_cluster(file.read_bytes())
        except OSError as error:
            raise InvalidInputError(f"{place} cannot be read: {error.strerror}") from error
        except InvalidInputError as error:
            raise InvalidInputError(f"{place}: {error}") from error
    found = Artifacts.named(place)
    for directory in (found, found / SNAPSHOT):
        if directory.exists("brokers.parquet"):
            snapshot, groups = read_checked_snapshot(directory), read_groups(directory)
            return ClusterFile(snapshot, targets=None, add=(), remove=(), groups=groups)
    raise InvalidInputError(
        f"there is no snapshot at {place}: give a directory that kafka-rebalance snapshot --out wrote, the URI of a "
        "run, or a cluster's JSON file"
    )


def free_for_plans(out: Artifacts) -> None:
    """Refuse a directory that holds anything but an earlier plan: what is there will be replaced."""
    if foreign := sorted(set(out.names()) - FILES):
        raise InvalidInputError(
            f"{out.uri} has {foreign[0]!r} in it, and would be replaced as a whole: give a new directory, or that of "
            "an earlier plan"
        )


@dataclass(frozen=True, slots=True)
class Past:
    """Where loads come from: a history of snapshots, and what of it counts."""

    history: Artifacts
    options: LoadOptions

    def of(self, snapshot: Snapshot) -> pa.Table | None:
        """The loads before a snapshot, where they are known."""
        return planned_loads(self.history, snapshot.cluster_id, snapshot.taken_at, self.options)

    def check_cluster(self, snapshot: Snapshot) -> None:
        """Raise if the history does not know the snapshot's cluster at all."""
        if not snapshot.cluster_id:
            raise InvalidInputError("a cluster's JSON does not say which cluster it is: leave out --history")
        if snapshot.cluster_id not in (known := clusters(self.history)):
            raise InvalidInputError(
                f"cluster {snapshot.cluster_id} is not in the history at {self.history.uri}, which has {known}: append "
                "to it with kafka-rebalance snapshot --history, or leave out --history"
            )


def plan_here(
    cluster: ClusterFile, request: Request, out: Artifacts, stages: Stages, *, pace: Pace, past: Past | None = None
) -> None:
    """Plan in this process."""
    with stages("model", "reading"):
        loads = past.of(cluster.snapshot) if past else cluster.loads
        model = ClusterModel.of(cluster.snapshot, loads)
    scope = Scope.of(model, request)
    hint = "" if is_compiled() else f" ({COMPILING})"
    polishing = f", then polishing for {request.polish:g} s" if request.polish else ""
    with stages("candidates", f"planning {', '.join(names(request))}{hint}{polishing}"):
        found = all_candidates(model, scope, request)
    stages.seconds["plan"] = sum(one.seconds for one in found if one.name in {UNLIMITED, FULL})
    with stages("candidates", "comparing candidates"):
        kept = undominated(found, request)
    with stages("check", "checking"):
        check_candidates(model, request, kept)
    choice = Choice(model, request, kept, stages.seconds, rates=loads)
    if cluster.groups is not None:
        with stages("groups", "looking at consumer groups"):
            choice = with_groups(choice, cluster.groups)
    stages.show("writing")
    publish_choice(out, choice, pace)


def plan_on_spark(
    cluster: ClusterFile,
    request: Request,
    out: Artifacts,
    master: str | None,
    stages: Stages,
    *,
    pace: Pace,
    past: Past | None = None,
) -> None:
    """Plan on Spark, in a run of its own beside the place of the results."""
    with stages("model", "reading"):
        Scope.of(ClusterModel.of(cluster.snapshot), request)  # a wrong name costs no Spark
    run = out.staging()
    try:
        stages.show("writing the snapshot")
        for name, table in zip(("brokers", "replicas"), cluster.snapshot.tables(), strict=True):
            (run / SNAPSHOT).write_table(f"{name}.parquet", table)
        write_groups(run / SNAPSHOT, cluster.groups)
        if cluster.loads is not None:
            (run / SNAPSHOT).write_table(RATES, cluster.loads)
        stages.show("planning on Spark")
        submit(run, request, master, cluster.snapshot.replicas.num_rows, pace=pace, past=past)
        if not (run / PLAN).exists("summary.json"):
            raise RebalanceError("the Spark job ended well, but left no plan")
        out.publish(run / PLAN)
    finally:
        run.remove()


def submit(
    run: Artifacts, request: Request, master: str | None, replicas: int, *, pace: Pace, past: Past | None = None
) -> None:
    """Run the Spark job on a run that has its snapshot; the results are in the run's ``plan``."""
    beside = Path(sys.executable).parent
    program = shutil.which("spark-submit", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise InvalidInputError("spark-submit is not there: install Spark, or plan with --engine local")
    chosen = ["--master", master] if master else []
    settings = ["--conf", "spark.log.level=WARN", "--conf", "spark.ui.enabled=false"]
    arguments = ["--run", run.uri, "--request", json.dumps(request.as_dict()), "--pace", json.dumps(pace.as_dict())]
    if past:
        arguments += ["--history", past.history.uri, *past.options.arguments()]
    environment: dict[str, Any] = {"PYSPARK_PYTHON": sys.executable, **_driver(replicas), **os.environ}
    done = subprocess.run(
        [program, *chosen, *settings, str(JOB), *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    if done.returncode:
        complaint = _complaint(done.stdout, done.stderr) or f"exit code {done.returncode}"
        raise RebalanceError(complaint.removeprefix(f"{run.uri}: "))


def _complaint(stdout: str, stderr: str) -> str | None:
    """What a job that failed said last, if anything.

    spark-submit prints all that the Python program says, its stderr too, on its stdout, and Spark's own log on stderr.
    """
    lines = [line for text in (stderr, stdout) for line in text.splitlines() if line.strip()]
    reported = [line.removeprefix(COMPLAINT) for line in lines if line.startswith(COMPLAINT)]
    return (reported or lines)[-1] if lines else None


def _driver(replicas: int) -> dict[str, str]:
    """What suits a cluster of this size; a Java or a Spark that somebody has set up is left as it is."""
    if os.environ.keys() & {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_CONF_DIR", "SPARK_HOME"}:
        return {}
    quick = "" if replicas >= MANY_REPLICAS else " -XX:TieredStopAtLevel=1"
    return {"SPARK_DRIVER_MEMORY": "4g", "SPARK_SUBMIT_OPTS": f"-XX:+UseParallelGC{quick}"}
