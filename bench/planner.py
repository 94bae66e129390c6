"""This planner beside its peers: the same clusters, the same evaluator, one run.

    python -m bench.planner --sizes 10000,100000 --scenarios expand,skew,decommission,steady --seed 1
    python -m bench.planner --sizes 10000 --rates --capacities
    python -m bench.planner --sizes 10000 --scenarios expand,skew --planners "this project,Rebalancer" --limit 300
    python -m bench.planner --render

Every cluster is generated, handed to every planner in turn as a process of its own, and every plan is scored by
``bench.score``. The tables go into ``docs/benchmarks.md`` and the charts beside it; ``--render`` writes both again from
the last runs' figures. There is a part for clusters that know sizes alone, one for clusters with ``--rates`` or
``--capacities``, and one for runs of ``--planners``: each keeps the last run of its kind.

A planner that cannot be installed, fails, or is stopped at the time limit keeps its row with the reason; one that was
stopped is not tried at larger sizes of the same scenario. Rebalancer's search ends shortly before the limit by itself,
with the best that it found.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.cluster_json import read_cluster
from bench.clusters import SCENARIOS, Parameters, generate
from bench.measure import measure
from bench.peers import PLANNERS, PeerUnavailableError, Task, timings
from bench.planner_report import GOALS_PART, PARTS, PLANNERS_PART, SIZES_PART, render
from bench.score import score
from rebalance_lib.errors import RebalanceError
from rebalance_lib.plan import Plan, parse_plan
from tests.java.reference import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.cluster_json import Cluster
    from bench.peers import Planner

RESULTS = ROOT / ".local" / "bench"
FEWEST_BROKERS, PARTITIONS_A_BROKER = 30, 1000


@dataclass(frozen=True)
class Result:
    """What one planner did with one cluster; ``reason`` says why there is no plan."""

    planner: str
    scenario: str
    partitions: int
    brokers: int
    seconds: float | None = None
    cpu_seconds: float | None = None
    whole_seconds: float | None = None
    whole_cpu_seconds: float | None = None
    peak_bytes: int | None = None
    figures: dict[str, Any] | None = None
    reason: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare this planner with its peers.")
    parser.add_argument("--sizes", default="10000,100000", help="partitions, separated by commas")
    parser.add_argument("--scenarios", default="expand,skew,decommission,steady")
    parser.add_argument("--planners", default="", help="only those whose name has one of these words")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that a planner may take")
    parser.add_argument("--rates", action="store_true", help="clusters with write and read rates")
    parser.add_argument("--capacities", action="store_true", help="clusters with capacities of brokers")
    parser.add_argument("--render", action="store_true", help="write tables and charts from the last runs' figures")
    options = parser.parse_args()
    if options.render:
        for part in PARTS:
            if results_of(part).is_file():
                render(json.loads(results_of(part).read_text()), ROOT / "docs", part)
        return
    part = PLANNERS_PART if options.planners else GOALS_PART if options.rates or options.capacities else SIZES_PART
    run = {
        "command": command_of(options),
        "limit": options.limit,
        "results": [asdict(result) for result in compare(options)],
    }
    results_of(part).parent.mkdir(parents=True, exist_ok=True)
    results_of(part).write_text(json.dumps(run, indent=1))
    render(run, ROOT / "docs", part)


def results_of(part: str) -> Path:
    return RESULTS / f"{part}.json"


def command_of(options: argparse.Namespace) -> str:
    """What was typed to get these figures."""
    said = f"--sizes {options.sizes} --scenarios {options.scenarios} --seed {options.seed} --limit {options.limit:.0f}"
    flags = [f"--{name}" for name in ("rates", "capacities") if getattr(options, name)]
    chosen = [f'--planners "{options.planners}"'] if options.planners else []
    return " ".join([said, *flags, *chosen])


def compare(options: argparse.Namespace) -> Iterator[Result]:
    """Run every planner on every cluster, small ones first."""
    scenarios = options.scenarios.split(",")
    if unknown := set(scenarios) - set(SCENARIOS):
        raise SystemExit(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    words = options.planners.split(",")
    planners = [planner for planner in PLANNERS if any(word in planner.name for word in words)]
    missing = {planner.name: why_not(planner) for planner in planners}
    stopped: set[tuple[str, str]] = set()
    for size in sorted(map(int, options.sizes.split(","))):
        for scenario in scenarios:
            with tempfile.TemporaryDirectory() as directory:
                brokers = max(FEWEST_BROKERS, size // PARTITIONS_A_BROKER)
                file = Path(directory) / "cluster.json"
                known = {"rates": options.rates, "capacities": options.capacities}
                drawn = Parameters(scenario=scenario, partitions=size, brokers=brokers, seed=options.seed, **known)
                generate(drawn).write(file)
                cluster = read_cluster(file)
                at = {"scenario": scenario, "partitions": size, "brokers": brokers}
                yield Result(planner="before", **at, figures=score(cluster, Plan.from_assignment({})))
                for planner in planners:
                    reason = missing[planner.name]
                    if (planner.name, scenario) in stopped:
                        reason = "not run: stopped at a smaller size"
                    outcome = {"reason": reason} if reason else plan_with(planner, cluster, file, options.limit)
                    if outcome.pop("over_limit", False):
                        stopped.add((planner.name, scenario))
                    result = Result(planner=planner.name, **at, **outcome)
                    print(told(result), flush=True)
                    yield result


def why_not(planner: Planner) -> str:
    """Install the planner; empty if that went well."""
    try:
        planner.install()
    except PeerUnavailableError as error:
        return f"not installed: {error}"
    return ""


def plan_with(planner: Planner, cluster: Cluster, file: Path, limit: float) -> dict[str, Any]:
    """Run the planner and score its plan."""
    out = file.parent / planner.name.replace(" ", "-")
    out.mkdir()
    measured = measure(planner.command(Task(file, cluster.scenario, out, limit)), limit=limit)
    outcome: dict[str, Any] = {
        "whole_seconds": measured.seconds,
        "whole_cpu_seconds": measured.cpu_seconds,
        "peak_bytes": measured.peak_bytes,
    }
    if measured.error:
        return {**outcome, "reason": measured.error, "over_limit": measured.over_limit}
    try:
        figures = score(cluster, parse_plan((out / "plan.json").read_bytes()))
    except (OSError, RebalanceError) as error:
        return {**outcome, "reason": f"no plan that Kafka would take: {error}"}
    told = timings(out)
    return {**outcome, "seconds": told.get("plan"), "cpu_seconds": told.get("plan_cpu"), "figures": figures}


def told(result: Result) -> str:
    """One line while the run goes on."""
    where = f"{result.partitions:>9,} {result.scenario:13}{result.planner:28}"
    if result.figures is None:
        return where + result.reason
    took, moved = result.whole_seconds or 0.0, result.figures["bytes_moved_share"]
    return f"{where}{took:8.2f} s  {moved:6.1%} moved  disk {result.figures['bytes_over_best']:.3f}"


if __name__ == "__main__":
    main()
