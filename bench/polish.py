"""What ``--polish`` brings: how far plans are from the certificate, without it and with it.

    python -m bench.polish
    python -m bench.polish --lists disk,replicas --scenarios skew,expand --seeds 1-20 --polish 10

Per list of goals, over all scenarios and seeds: what each goal of the certificate leaves to the best that any plan
could reach, where all that is within the goal's limit is as good; the bytes copied over the least that any plan copies;
how many seconds a polish ended after its time; and how many clusters are within ``NEAR`` in all of them. Where the
certificate knows no least, because no plan is within all tolerances, bytes are left out.

Seconds are on a processor, those of ``--polish`` too, so that they say the same whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from bench.clusters import Parameters, generate
from bench.document import table
from bench.kernel import MODES
from rebalance_lib.planner import ClusterModel, Request, Scope, polish
from rebalance_lib.planner.candidates import FULL, candidate
from rebalance_lib.planner.certified import Certificate, certificate_of
from rebalance_lib.planner.goals import GOALS, View
from rebalance_lib.planner.modes import balance

NEAR = 0.005
DEFAULT = "default"
LISTS = ("disk", "replicas", "network_in", DEFAULT)


@dataclass(frozen=True)
class Gap:
    """How far one plan is from the certificate."""

    cluster: str
    goals: dict[str, float]  # by goal: over the best, 0 where it is met
    bytes: float | None  # over the least; None where that is not known
    late: float  # seconds

    @property
    def worst(self) -> float:
        return max(*self.goals.values(), self.bytes or 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare plans with the certificate, without --polish and with it.")
    parser.add_argument("--lists", default=",".join(LISTS), help="goals, one list each, several with +")
    parser.add_argument("--scenarios", default="skew,expand,steady")
    parser.add_argument("--seeds", default="1-4", help="from-to")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--polish", type=float, default=10.0, help="seconds")
    parser.add_argument("--json", help="a file that gets a line for each plan")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    drawn = [
        Parameters(
            scenario=scenario,
            partitions=options.partitions,
            brokers=options.brokers,
            seed=seed,
            rates=True,
            capacities=seed % 2 == 0,
        )
        for seed in range(first, last + 1)
        for scenario in options.scenarios.split(",")
    ]
    for module in (polish, balance):
        module.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[attr-defined]
    run(replace(drawn[0], partitions=1000), DEFAULT, (0.0,))  # compiles
    rows = []
    for goals in options.lists.split(","):
        found: dict[float, list[Gap]] = {0.0: [], options.polish: []}
        for one in drawn:
            for seconds, gaps in zip(found, run(one, goals, tuple(found)), strict=True):
                found[seconds].append(gaps)
                if options.json:
                    with Path(options.json).open("a") as file:
                        file.write(json.dumps({"list": goals, "polish": seconds, **asdict(gaps)}) + "\n")
        rows += [row(goals, seconds, gaps) for seconds, gaps in found.items()]
    header = ("goals", "polish", "disk", "network_in", "replicas", "bytes, median", "95 %", "s late", "within 0.5 %")
    print(table(header, rows))


def run(drawn: Parameters, goals: str, times: tuple[float, ...]) -> list[Gap]:
    """The gaps of one cluster's plans, one for each time to polish."""
    cluster = generate(drawn)
    model = ClusterModel.of(cluster.snapshot(), cluster.loads())
    plain = Request(
        MODES[drawn.scenario],
        brokers=tuple(cluster.remove or cluster.add),
        goals=() if goals == DEFAULT else tuple(goals.split("+")),
    )
    scope = Scope.of(model, plain)
    certificate = certificate_of(model, scope, plain)
    name = f"{drawn.scenario} {drawn.seed}"
    found, took = [], 0.0
    for seconds in times:
        begun = time.process_time()
        plan = candidate(model, scope, replace(plain, polish=seconds), FULL)
        late = time.process_time() - begun - (took + seconds if seconds else 0.0)
        took = took or late
        view = View(model, scope, plain, plan.outcome.placement.layout)
        found.append(gap(name, view, certificate, plan.figures.bytes_moved, max(0.0, late) if seconds else 0.0))
    return found


def gap(name: str, view: View, certificate: Certificate, copied: int, late: float) -> Gap:
    """How far a plan is from the certificate."""
    by_goal = {}
    for goal, best in certificate.best.items():
        measure, limit = GOALS[goal].measure(view) or 1.0, GOALS[goal].limit(view)
        by_goal[goal] = max(measure, limit) / max(best, limit) - 1
    least = certificate.least_bytes
    return Gap(name, by_goal, None if least is None else (copied - least) / max(1, least), late)


def row(goals: str, seconds: float, gaps: list[Gap]) -> tuple[str, ...]:
    """Means of goals, the median of bytes, and how many clusters are near."""
    by_goal = [[one.goals[goal] for one in gaps if goal in one.goals] for goal in ("disk", "network_in", "replicas")]
    copied = [one.bytes for one in gaps if one.bytes is not None]
    near = sum(one.worst <= NEAR for one in gaps)
    return (
        goals,
        f"{seconds:g} s",
        *(f"{np.mean(values):.2%}" if values else "-" for values in by_goal),
        f"{np.median(copied):.2%}" if copied else "-",
        f"{np.quantile(copied, 0.95):.2%}" if copied else "-",
        f"{max(one.late for one in gaps):.1f}" if seconds else "-",
        f"{near} of {len(gaps)}",
    )


if __name__ == "__main__":
    main()
