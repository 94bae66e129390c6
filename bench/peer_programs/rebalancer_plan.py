"""Plans with Meta's Rebalancer, a solver for any assignment of objects to containers.

    python rebalancer_plan.py fast|greedy cluster.json directory seconds

Runs in a virtual environment of its own that holds PyPI's ``rebalancer``, which needs Python 3.12, and imports nothing
of this project. Rebalancer knows objects, containers, and a library of constraints and goals; Kafka is told in these:

============================  =========================================================================================
object                        a replica; the first of each list is the one that leads, wherever it goes
container                     a broker, with its capacities; racks are a scope over them
constraint                    replicas of a partition on distinct brokers; in a rack no more of them than must be
constraint, decommission      leaving brokers become empty
goal                          balance of disk, replicas and leaders, and of network in and out where rates are known,
                              all of one weight, formula ``SQUARES``, which its documentation recommends
goal, with less weight        bytes that move
============================  =========================================================================================

The search is its local search: ``fast`` ends the exploration of a broker at the first replica whose best move improves
the objective, ``greedy`` at the first move that does. It ends by itself at a local optimum, or at the limit with the
best that it found.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rebalancer import ProblemSolver

LEADERS = {"swapMoveTypeSpec": {"partitionNameToExploreSwapsWithinObjectGroup": "partition"}}
MOVES = {
    "fast": [{"singleFastMoveTypeSpec": {}}, LEADERS],
    "greedy": [{"singleGreedyMoveTypeSpec": {}}, LEADERS],
}
ABSOLUTE, SQUARES = 1, 2
"""Of the enumerations ``LimitType`` and ``BalanceSpecFormula``: the interface takes their numbers, not their names."""

MOVEMENT = 0.01
"""Weight of a move of everything, where that of an uneven resource is 1: a tie-break, so that balance is what it is
measured by, as in the planners beside it."""


def main(search: str, cluster_file: str, directory: str, seconds: str) -> None:
    document = json.loads(Path(cluster_file).read_text())
    begin = time.perf_counter()
    cpu = time.process_time()
    solver, names = problem(document)
    solver.add_solver({"localSearchSolverSpec": {"moveTypeList": MOVES[search], "solveTime": int(float(seconds))}})
    solution = solver.solve()
    assignment = solution["assignment"]
    replicas = [[int(assignment[name]) for name in of_one] for of_one in names]
    took = {"plan": time.perf_counter() - begin, "plan_cpu": time.process_time() - cpu}
    changed = [
        {"topic": entry["topic"], "partition": entry["partition"], "replicas": new}
        for entry, new in zip(document["partitions"], replicas, strict=True)
        if new != entry["replicas"]
    ]
    out = Path(directory)
    (out / "plan.json").write_text(json.dumps({"version": 1, "partitions": changed}))
    reasons = [summary.get("endReason") for summary in solution["solverSummaries"]]
    (out / "summary.json").write_text(json.dumps({"timings": took, "end_reasons": reasons}))


def problem(document: dict[str, Any]) -> tuple[ProblemSolver, list[list[str]]]:
    """The cluster in Rebalancer's terms, and the names of each partition's replicas in the order of its list."""
    brokers, partitions, leaving = document["brokers"], document["partitions"], list(map(str, document["remove"]))
    names = [[f"{row}/{place}" for place in range(len(entry["replicas"]))] for row, entry in enumerate(partitions)]
    held: dict[str, list[str]] = {str(broker["id"]): [] for broker in brokers}
    for of_one, entry in zip(names, partitions, strict=True):
        for name, broker in zip(of_one, entry["replicas"], strict=True):
            held[str(broker)].append(name)
    racks = {str(broker["id"]): broker["rack"] for broker in brokers}
    solver = ProblemSolver(service_name="kafka", service_scope="bench")
    solver.set_log_level("ERR").disable_solution_summary()
    solver.set_object_name("replica").set_container_name("broker").set_assignment(held)
    solver.add_scope("rack", racks)
    solver.add_partition("partition", {str(row): of_one for row, of_one in enumerate(names)})

    rack_sizes = Counter(rack for broker, rack in racks.items() if broker not in leaving)
    copies_a_rack = -(-document["rf"] // len(rack_sizes))
    for scope, most in (("broker", 1), ("rack", copies_a_rack)):
        limit = {"type": ABSOLUTE, "globalLimit": most}
        spec = {"name": scope, "scope": scope, "partitionName": "partition", "limit": limit}
        solver.add_constraint({"groupCountSpec": spec})
    if leaving:
        solver.add_constraint({"toFreeSpec": {"name": "drain", "containers": leaving}})
    add_goals(solver, document, names, leaving)
    return solver, names


def add_goals(solver: ProblemSolver, document: dict[str, Any], names: list[list[str]], leaving: list[str]) -> None:
    """Balance of every resource that the cluster tells of, then few bytes moved."""
    targets = [broker for broker in document["brokers"] if str(broker["id"]) not in leaving]
    loads = resources(document["partitions"], names)
    for name, load in loads.items():
        total = sum(load.values())
        solver.add_object_dimension(name, {key: value / total for key, value in load.items()}, default_value=0.0)
        capacities = [(broker.get("capacity") or {}).get(name) for broker in targets]
        weights = capacities if None not in capacities else [1.0] * len(targets)
        shares = {str(broker["id"]): float(w) / sum(weights) for broker, w in zip(targets, weights, strict=True)}
        solver.add_container_dimension(name, shares, default_value=1.0)
        balance = {"name": name, "scope": "broker", "dimension": name, "formula": SQUARES}
        solver.add_goal({"balanceSpec": {**balance, "filter": {"itemsBlacklist": leaving}}}, weight=1.0)
    movement = {"name": "moved", "scope": "broker", "dimension": "disk", "doNotNormalize": True}
    solver.add_goal({"minimizeMovementSpec": movement}, weight=MOVEMENT)


def resources(partitions: list[dict[str, Any]], names: list[list[str]]) -> dict[str, dict[str, float]]:
    """What each replica takes of each resource; network out is the leader's, to each follower and to consumers."""
    loads: dict[str, dict[str, float]] = {"disk": {}, "replicas": {}, "leaders": {}}
    rates = any("write_rate" in entry for entry in partitions)
    if rates:
        loads |= {"network_in": {}, "network_out": {}}
    for of_one, entry in zip(names, partitions, strict=True):
        loads["leaders"][of_one[0]] = 1.0
        for name in of_one:
            loads["disk"][name] = float(entry["size"])
            loads["replicas"][name] = 1.0
        if rates:
            written, read = entry["write_rate"], entry["read_rate"]
            loads["network_in"] |= dict.fromkeys(of_one, float(written))
            loads["network_out"][of_one[0]] = float(written * (len(of_one) - 1) + read)
    return loads


if __name__ == "__main__":
    main(*sys.argv[1:])
