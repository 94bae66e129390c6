"""One plan by the planner alone, from a cluster that is already in memory.

    python -m bench.kernel_plan first|again MODE GOALS cluster.json directory

``first`` times the first plan of a process, which loads the compiled code; ``again`` the one after it, as a service
pays that plans again and again. Both are the same plan. The command line also pays for imports, for files, and for the
candidates that move less. ``GOALS`` is a list as ``--goals`` takes it, empty for the default.
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

TIMES = {"first": 1, "again": 2}


def main(which: str, mode: str, goals: str, cluster_file: str, directory: str) -> None:
    cluster = read_cluster(Path(cluster_file))
    model = ClusterModel.of(cluster.snapshot(), cluster.loads())
    about = {Mode.EXPAND: cluster.add, Mode.DRAIN: cluster.remove}.get(Mode(mode), [])
    request = Request(Mode(mode), brokers=tuple(about), goals=tuple(goals.split(",")) if goals else ())
    for _ in range(TIMES[which]):
        wall, cpu = time.perf_counter(), time.process_time()
        plan = candidate(model, Scope.of(model, request), request, FULL).plan
        took = {"plan": time.perf_counter() - wall, "plan_cpu": time.process_time() - cpu}
    out = Path(directory)
    (out / "plan.json").write_text(format_plan(plan))
    (out / "summary.json").write_text(json.dumps({"timings": took}))


if __name__ == "__main__":
    main(*sys.argv[1:])
