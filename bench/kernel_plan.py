"""One plan by the kernel alone: the cluster already in memory, the code already loaded.

    python -m bench.kernel_plan MODE GOALS cluster.json directory

What a service pays that plans again and again, and what a benchmark of algorithms compares: the command line pays for
imports, compiled code and files each time. The plan is made twice and the second one is timed; both are the same.
``GOALS`` is a list as ``--goals`` takes it, empty for the default.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.cluster_json import read_cluster
from rebalance_lib.plan import format_plan
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, candidate


def main(mode: str, goals: str, cluster_file: str, directory: str) -> None:
    cluster = read_cluster(Path(cluster_file))
    model = ClusterModel.of(cluster.snapshot(), cluster.loads())
    about = {Mode.EXPAND: cluster.add, Mode.DRAIN: cluster.remove}.get(Mode(mode), [])
    request = Request(Mode(mode), brokers=tuple(about), goals=tuple(goals.split(",")) if goals else ())
    for _ in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        plan = candidate(model, Scope.of(model, request), request, FULL).plan
        took = {"plan": time.perf_counter() - wall, "plan_cpu": time.process_time() - cpu}
    out = Path(directory)
    (out / "plan.json").write_text(format_plan(plan))
    (out / "summary.json").write_text(json.dumps({"timings": took}))


if __name__ == "__main__":
    main(*sys.argv[1:])
