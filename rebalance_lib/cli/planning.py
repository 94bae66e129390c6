"""From a request to published files: plan, check, write, with a message for each stage; here or on Spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import rebalance_lib
from rebalance_lib.artifacts import PLAN, RATES, SNAPSHOT, Artifacts, write_groups
from rebalance_lib.cli.stages import COMPILING, Stages
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import LoadOptions, clusters, planned_loads
from rebalance_lib.jobs.archive import driver_java_options
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Choice, ClusterModel, Request, Scope
from rebalance_lib.planner.candidates import names
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.planner.compiling import is_compiled
from rebalance_lib.report import publish_choice, with_groups
from rebalance_lib.threads import beside
from rebalance_lib.topology import ClusterFile, Snapshot

JOB = Path(rebalance_lib.__file__).parent / "jobs" / "compute_placement.py"
COMPLAINT = "compute_placement: "  # what the job begins each of its errors with


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


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What a plan is made from: the cluster, the request, the pace that its forecast counts with, and past loads."""

    cluster: ClusterFile
    request: Request
    pace: Pace
    past: Past | None = None

    def model(self) -> tuple[ClusterModel, pa.Table | None]:
        """The cluster with its loads, and these, where they are known."""
        loads = self.past.of(self.cluster.snapshot) if self.past else self.cluster.loads
        return ClusterModel.of(self.cluster.snapshot, loads), loads


def plan_here(inputs: PlanInputs, out: Artifacts, stages: Stages) -> None:
    """Plan in this process.

    The certificate is worked out beside the plans, and the plans are checked while their files are made.
    """
    request = inputs.request
    with stages("model", "reading"):
        model, loads = inputs.model()
    hint = "" if is_compiled() else f" ({COMPILING})"
    polishing = f", then polishing for {request.polish:g} s" if request.polish else ""

    with stages("candidates", f"planning {', '.join(names(request))}{hint}{polishing}"):
        choice = Choice.planned(model, request, loads, stages.seconds)

    def check() -> None:
        with stages("check", "checking and writing"):
            check_candidates(model, request, choice.candidates)

    checked = beside(check, model.partitions)
    if inputs.cluster.groups is not None:
        with stages("groups", "looking at consumer groups"):
            choice = with_groups(choice, inputs.cluster.groups)
    publish_choice(out, choice, inputs.pace, checked.result)


def plan_on_spark(inputs: PlanInputs, out: Artifacts, stages: Stages, master: str | None) -> None:
    """Plan on Spark, in a run of its own beside the place of the results."""
    cluster = inputs.cluster
    with stages("model", "reading"):
        Scope.of(ClusterModel.of(cluster.snapshot), inputs.request)  # a wrong name costs no Spark
    run = out.staging()
    try:
        stages.show("writing the snapshot")
        for name, table in zip(("brokers", "replicas"), cluster.snapshot.tables(), strict=True):
            (run / SNAPSHOT).write_table(f"{name}.parquet", table)
        write_groups(run / SNAPSHOT, cluster.groups)
        if cluster.loads is not None:
            (run / SNAPSHOT).write_table(RATES, cluster.loads)
        stages.show("planning on Spark")
        submit(run, inputs, master)
        if not (run / PLAN).exists("summary.json"):
            raise RebalanceError("the Spark job ended well, but left no plan")
        out.publish(run / PLAN)
    finally:
        run.remove()


def submit(run: Artifacts, inputs: PlanInputs, master: str | None) -> None:
    """Run the Spark job on a run that has its snapshot; the results are in the run's ``plan``."""
    request, pace, past = inputs.request, inputs.pace, inputs.past
    programs = Path(sys.executable).parent
    program = shutil.which("spark-submit", path=f"{programs}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise InvalidInputError("spark-submit is not there: install Spark, or plan with --engine local")
    chosen = ["--master", master] if master else []
    arguments = ["--run", run.uri, "--request", json.dumps(request.as_dict()), "--pace", json.dumps(pace.as_dict())]
    if past:
        arguments += ["--history", past.history.uri, *past.options.arguments()]
    environment: dict[str, Any] = {
        "PYSPARK_PYTHON": sys.executable,
        **_driver(),
        **os.environ,
    }
    done = subprocess.run(
        [program, *chosen, str(JOB), *arguments],
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


def _driver() -> dict[str, str]:
    """What suits the job's driver; a Java or a Spark that somebody has set up is left as it is."""
    if os.environ.keys() & {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_CONF_DIR", "SPARK_HOME"}:
        return {}
    return {"SPARK_DRIVER_MEMORY": "4g", "SPARK_SUBMIT_OPTS": driver_java_options()}
