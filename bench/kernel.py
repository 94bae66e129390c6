"""The planner's kernel alone: arrays in, arrays out, at several sizes in one run.

    python -m bench.kernel
    python -m bench.kernel --sizes 100000,1000000 --scenarios expand,skew --seeds 1,2

Per scenario and size: the best of several runs of the full plan, from a cluster already in memory to the placement, and
how good it is, scored by ``bench.score`` from the plan alone. The last column divides the time per partition by that of
the smallest size: 1 is linear growth.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bench.clusters import SCENARIOS, Parameters, generate
from bench.document import table
from bench.score import score
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, candidate

MODES = {"steady": Mode.BALANCE, "skew": Mode.BALANCE, "expand": Mode.EXPAND, "decommission": Mode.DRAIN}
HEAD = ("cluster", "seconds", "bytes over least", "leaders", "disk", "replicas", "leaders over best", "per partition")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the planner's kernel.")
    parser.add_argument("--sizes", default="100000,1000000", help="partitions, with commas")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    rows = []
    for scenario in options.scenarios.split(","):
        for seed in map(int, options.seeds.split(",")):
            per_partition = 0.0
            for size in sizes:
                seconds, figures = run(scenario, size, seed, options.repetitions)
                per_partition = per_partition or seconds / size
                rows.append(row(f"{scenario}, {size:,}, seed {seed}", seconds, figures, seconds / size / per_partition))
    print(table(HEAD, rows))


def run(scenario: str, size: int, seed: int, repetitions: int) -> tuple[float, dict[str, Any]]:
    """The best time, and the figures of the plan."""
    cluster = generate(Parameters(scenario=scenario, partitions=size, brokers=max(30, size // 1000), seed=seed))
    model = ClusterModel.of(cluster.snapshot())
    request = Request(MODES[scenario], brokers=tuple(cluster.remove or cluster.add))
    best = float("inf")
    for _ in range(repetitions):
        scope = Scope.of(model, request)
        start = time.perf_counter()
        found = candidate(model, scope, request, FULL)
        best = min(best, time.perf_counter() - start)
    return best, score(cluster, found.plan)


def row(name: str, seconds: float, figures: dict[str, Any], growth: float) -> tuple[str, ...]:
    moved = 1 / figures["move_efficiency"]
    leaders = figures["leaders_over_least"]
    best = (figures[f"{what}_over_best"] for what in ("bytes", "replicas", "leaders"))
    return (
        name,
        f"{seconds:.3f}",
        f"{moved:.4f}",
        f"{leaders:.3f}" if leaders else "-",
        *(f"{over:.4f}" for over in best),
        f"{growth:.2f}",
    )


if __name__ == "__main__":
    main()
