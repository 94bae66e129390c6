"""How far the plans of small clusters are from the optimum of each goal, on any number of random clusters.

    python -m bench.goal_optimum                              25 clusters for each goal
    python -m bench.goal_optimum --clusters 1000 disk cpu     as many as the long test has, for two goals
    python -m bench.goal_optimum --clusters 200 --list        all default goals at once: only how long plans take

Optima are those of ``tests/planner/goal_optimum.py``, which uses nothing of the planner. A line for each goal:

    ``clusters``   that the goal says something of
    ``0.1 %``      of these, plans within 0.1 % of the best that HiGHS has found
    ``1 %``        likewise
    ``worst``      the largest distance, and the seed of its cluster
    ``unproven``   clusters where HiGHS stopped before it had proven its optimum
    ``median``     CPU seconds of a plan, of the planner alone; likewise ``mean`` and ``most``

``--each`` prints every cluster that is farther than 0.1 %.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, candidate
from rebalance_lib.topology import parse_cluster
from tests.planner.goal_optimum import GOALS, HARD, Small, best, random_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rebalance_lib.planner import Candidate

NEAR, FAR = 0.001, 0.01
ROUNDING = 1e-6


@dataclass(frozen=True)
class Planned:
    """A cluster's JSON with its full plan."""

    model: ClusterModel
    request: Request
    candidate: Candidate
    small: Small
    seconds: float  # of CPU


@dataclass(frozen=True)
class Gap:
    """How far a plan is from the optimum of a goal, as a part of it."""

    seed: int
    gap: float
    proven: bool
    seconds: float


def planned(drawn: dict[str, Any], goals: tuple[str, ...] = (), mode: Mode = Mode.BALANCE) -> Planned:
    """Plan for a cluster's JSON."""
    read = parse_cluster(json.dumps(drawn).encode())
    model = ClusterModel.of(read.snapshot, read.loads)
    request = Request(mode, goals=goals)
    begin = time.process_time()
    one = candidate(model, Scope.of(model, request), request, FULL)
    seconds = time.process_time() - begin
    layout = one.outcome.placement.layout
    lists = {
        (model.topics[model.topic[p]], int(model.partition[p])): tuple(
            model.broker_ids[layout.broker[layout.offsets[p] : layout.offsets[p + 1]]].tolist()
        )
        for p in range(model.partitions)
    }
    after = [lists[row["topic"], row["partition"]] for row in drawn["partitions"]]
    return Planned(model, request, one, Small(drawn, after), seconds)


def gap(goal: str, seed: int) -> Gap | None:
    """That of one random cluster; None where the goal says nothing of it."""
    # Hard goals are kept by every plan, whatever it aims at.
    plan = planned(random_cluster(Random(seed)), ("disk",) if goal in HARD else (goal,))
    verdict = {found.goal: found for found in plan.candidate.outcome.verdicts(plan.request)}.get(goal)
    if verdict is None:
        return None
    reached = max(verdict.after, verdict.limit)
    if reached <= verdict.limit + 1e-9:
        return Gap(seed, 0.0, True, plan.seconds)
    optimum = best(plan.small, goal, verdict.limit, reached)
    if reached < optimum.bound * (1 - ROUNDING):
        raise AssertionError(f"{goal}, seed {seed}: {reached} is below the optimum, which is at least {optimum.bound}")
    found = min(reached, optimum.found)  # HiGHS may have stopped before it found anything
    return Gap(seed, reached / found - 1, optimum.bound >= found * (1 - NEAR), plan.seconds)


def gaps(goal: str, seeds: Iterable[int]) -> list[Gap]:
    """Those of the clusters that the goal says something of."""
    return [found for seed in seeds if (found := gap(goal, seed)) is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description="Hold the plans of small clusters against the optimum of each goal.")
    parser.add_argument("goals", nargs="*", help=f"some of {', '.join(GOALS)}; all if left out")
    parser.add_argument("--clusters", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster; the others follow")
    parser.add_argument("--list", action="store_true", help="plan with the default list of goals, and time it")
    parser.add_argument("--each", action="store_true", help="print each cluster that is farther than 0.1 %%")
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.clusters)
    planned(random_cluster(Random(0)))  # compiles what is not compiled yet
    if chosen.list:
        print(f"list: {_times([planned(random_cluster(Random(seed))).seconds for seed in seeds])}")
        return
    print(f"{'goal':14} clusters   0.1 %     1 %  worst         unproven  CPU seconds a plan")
    for goal in chosen.goals or GOALS:
        found = gaps(goal, seeds)
        for one in found:
            if chosen.each and one.gap > NEAR:
                print(f"  seed {one.seed}: {one.gap:.3%}{'' if one.proven else ' of what may not be the optimum'}")
        near, far = (sum(one.gap <= limit for one in found) for limit in (NEAR, FAR))
        worst = max(found, key=lambda one: one.gap, default=Gap(0, 0.0, True, 0.0))
        unproven = sum(not one.proven for one in found)
        figures = f"{goal:14} {len(found):8} {near:7} {far:7}  {worst.gap:6.2%} ({worst.seed:4}) {unproven:9}"
        print(f"{figures}  {_times([one.seconds for one in found])}", flush=True)


def _times(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    return f"median {np.median(seconds):.2f}, mean {np.mean(seconds):.2f}, most {max(seconds):.2f}"


if __name__ == "__main__":
    main()
