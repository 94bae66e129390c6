"""The planner's kernel alone: arrays in, arrays out, at several sizes in one run.

    python -m bench.kernel
    python -m bench.kernel --sizes 100000,1000000 --scenarios expand,skew --seeds 1,2
    python -m bench.kernel --rates --capacities --scenarios skew,expand --mode balance

Per scenario and size: the best of several runs of the full plan, from a cluster already in memory to the placement, and
how good it is, scored by ``bench.score`` from the plan alone. Seconds are on a processor, of all threads together, so
that they say the same whatever else the machine does. The last column divides the time per partition by that of the
smallest size: 1 is linear growth, and what is above the bar is marked.

With ``--rates`` or ``--capacities``, how near to each goal comes in place of how even disks and counts are.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bench.clusters import SCENARIOS, Parameters, generate
from bench.document import table
from bench.goal_score import NAMES
from bench.score import score
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, candidate

MODES = {"steady": Mode.BALANCE, "skew": Mode.BALANCE, "expand": Mode.EXPAND, "decommission": Mode.DRAIN}
EVEN = ("leaders moved", "disk", "replicas", "leaders")
MOST_GROWTH = 1.5
"""How much more a partition may cost at the largest size than at the smallest."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the planner's kernel.")
    parser.add_argument("--sizes", default="100000,1000000", help="partitions, with commas")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rates", action="store_true", help="clusters with write and read rates")
    parser.add_argument("--capacities", action="store_true", help="clusters with capacities of brokers")
    parser.add_argument("--mode", choices=("balance",), help="in every scenario, in place of the mode that suits it")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    known = {"rates": options.rates, "capacities": options.capacities}
    rows = []
    for scenario in options.scenarios.split(","):
        for seed in map(int, options.seeds.split(",")):
            per_partition = 0.0
            for size in sizes:
                drawn = Parameters(
                    scenario=scenario, partitions=size, brokers=max(30, size // 1000), seed=seed, **known
                )
                seconds, figures = run(drawn, Mode(options.mode or MODES[scenario]), options.repetitions)
                per_partition = per_partition or seconds / size
                name, growth = f"{scenario}, {size:,}, seed {seed}", seconds / size / per_partition
                quality = by_goal(figures) if any(known.values()) else evenness(figures)
                rows.append((name, f"{seconds:.3f}", *quality, grown(growth)))
    columns = NAMES if any(known.values()) else EVEN
    print(table(("cluster", "seconds", "bytes over least", *columns, "per partition"), rows))


def run(drawn: Parameters, mode: Mode, repetitions: int) -> tuple[float, dict[str, Any]]:
    """The best time, and the figures of the plan."""
    cluster = generate(drawn)
    model = ClusterModel.of(cluster.snapshot(), cluster.loads())
    request = Request(mode, brokers=() if mode is Mode.BALANCE else tuple(cluster.remove or cluster.add))
    best = float("inf")
    for _ in range(repetitions):
        scope = Scope.of(model, request)
        start = time.process_time()
        found = candidate(model, scope, request, FULL)
        best = min(best, time.process_time() - start)
    return best, score(cluster, found.plan)


def evenness(figures: dict[str, Any]) -> tuple[str, ...]:
    """Bytes and leaders moved over the least, and how even the rest is over the best that can be."""
    leaders = figures["leaders_over_least"]
    best = (figures[f"{what}_over_best"] for what in ("bytes", "replicas", "leaders"))
    return in_vain(figures), f"{leaders:.3f}" if leaders else "-", *(f"{over:.4f}" for over in best)


def by_goal(figures: dict[str, Any]) -> tuple[str, ...]:
    """Bytes moved over the least for the balance reached, and what each goal says."""
    goals = figures["goals"]
    return in_vain(figures), *("-" if goals[name] is None else f"{goals[name]:.3f}" for name in NAMES)


def in_vain(figures: dict[str, Any]) -> str:
    return f"{1 / figures['move_efficiency']:.4f}"


def grown(growth: float) -> str:
    return f"**{growth:.2f}**" if growth > MOST_GROWTH else f"{growth:.2f}"


if __name__ == "__main__":
    main()
