"""How the cost of planning grows: four sizes of each thing that can grow, the rest held fast.

    python -m bench.scaling                          measure all, write docs/scaling.md
    python -m bench.scaling --axes brokers           measure one, keep the figures of the others
    python -m bench.scaling --axes ""                only write the document again

Partitions and brokers are grown in a cluster that is expanded by half, planned by ``kafka-rebalance plan`` on this
machine without Spark. Clusters are planned by one Spark job for all of them, history is worked through by another.

Every size is a process of its own. The figures of each axis are kept in ``.local/bench/scaling``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from bench.clusters import Parameters, generate, write_snapshot
from bench.history import generate as generate_history
from bench.measure import measure
from bench.peers import PeerUnavailableError, Task, ThisProject, timings
from bench.scaling_report import AXES, render
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.jobs import compute_placement
from tests.java.reference import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = ROOT / ".local" / "bench" / "scaling"
SCENARIO = "expand"
BROKERS_HELD, PARTITIONS_HELD = 300, 300_000
PARTITIONS_OF_A_CLUSTER, BROKERS_OF_A_CLUSTER = 10_000, 30
SNAPSHOTS_OF_A_DAY, REPLICATION_FACTOR = 24, 3


@dataclass(frozen=True)
class Point:
    """One size: seconds of the work alone where told, of the whole process, and its peak of memory."""

    size: int
    seconds: float | None
    whole_seconds: float
    peak_bytes: int
    timings: dict[str, float]
    reason: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how the cost of planning grows.")
    parser.add_argument("--axes", default=",".join(AXES), help="what to measure now, separated by commas")
    parser.add_argument("--sizes", default="", help="other sizes than the usual, for a single axis")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a size may take")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for axis in filter(None, options.axes.split(",")):
        if axis not in AXES:
            parser.error(f"no axis {axis}; there are {', '.join(AXES)}")
        sizes = [int(size) for size in options.sizes.split(",") if size] or AXES[axis].sizes
        points = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as directory:
                points.append(point(axis, size, Path(directory), options.limit))
            print(f"{axis:11}{size:>10,}  {points[-1].reason or f'{points[-1].whole_seconds:.2f} s'}", flush=True)
        (RESULTS / f"{axis}.json").write_text(json.dumps([asdict(point) for point in points], indent=1))
    render(dict(recorded()), ROOT / "docs")


def recorded() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """The figures of every axis that was measured, now or earlier."""
    for axis in AXES:
        file = RESULTS / f"{axis}.json"
        if file.is_file():
            yield axis, json.loads(file.read_text())


def point(axis: str, size: int, directory: Path, limit: float) -> Point:
    """Measure one size."""
    out = directory / "out"
    out.mkdir()
    if axis == "partitions":
        command = plan_command(directory, out, partitions=size, brokers=BROKERS_HELD)
    elif axis == "brokers":
        command = plan_command(directory, out, partitions=PARTITIONS_HELD, brokers=size)
    elif axis == "clusters":
        command = fleet_command(directory, size)
    else:
        generate_history(Artifacts.at(directory / "history"), size * SNAPSHOTS_OF_A_DAY, REPLICATION_FACTOR)
        command = [sys.executable, "-m", "bench.loads_job", (directory / "history").as_uri(), str(out)]
    measured = measure(command, limit=limit)
    told = timings(out)
    return Point(size, told.get("plan"), measured.seconds, measured.peak_bytes, told, measured.error)


def plan_command(directory: Path, out: Path, *, partitions: int, brokers: int) -> list[str]:
    planner = ThisProject()
    try:
        planner.install()
    except PeerUnavailableError as error:
        raise SystemExit(str(error)) from error
    file = directory / "cluster.json"
    generate(Parameters(scenario=SCENARIO, partitions=partitions, brokers=brokers)).write(file)
    return planner.command(Task(file, SCENARIO, out))


def fleet_command(directory: Path, count: int) -> list[str]:
    """One job for as many clusters as asked for."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(submit), "--master", "local[*]", "--conf", "spark.ui.enabled=false", "--driver-memory", "4g"]
    command += ["--conf", f"spark.pyspark.python={sys.executable}", compute_placement.__file__, "--mode", "balance"]
    for seed in range(1, count + 1):
        cluster = Parameters(
            scenario="skew", partitions=PARTITIONS_OF_A_CLUSTER, brokers=BROKERS_OF_A_CLUSTER, seed=seed
        )
        run = directory / f"cluster-{seed:04d}"
        write_snapshot(generate(cluster), run / "snapshot")
        command += ["--run", run.as_uri()]
    return command


if __name__ == "__main__":
    main()
