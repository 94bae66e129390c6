"""The fewest bytes that any plan could move, by an integer program.

Constraints: each partition keeps its number of replicas on distinct brokers that stay; it is in no fewer racks than
before, and no rack has more of its replicas than the fullest had; every broker ends between two loads. Minimised is the
size of what arrives on brokers that did not hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import highspy

from tests.planner.rules import racks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.planner.clusters import Cluster


def least_bytes(
    before: Cluster, low: Mapping[int, int], high: Mapping[int, int], *, staying: tuple[int, ...] | None = None
) -> int:
    """The optimum; every partition's replicas are of one size."""
    brokers = list(before.hosts) if staying is None else list(staying)
    program = highspy.Highs()
    program.silent()
    program.setOptionValue("mip_rel_gap", 0.0)
    holds = {(name, broker): program.addBinary() for name in before.partitions for broker in brokers}
    for name, held in before.partitions.items():
        program.addConstr(program.qsum(holds[name, broker] for broker in brokers) == len(held.replicas))
        if before.racks_count:
            limit_racks(program, before, held.replicas, {broker: holds[name, broker] for broker in brokers})
    for broker in brokers:
        load = program.qsum(held.size * holds[name, broker] for name, held in before.partitions.items())
        program.addConstr(load <= high[broker])
        program.addConstr(load >= low[broker])
    arriving = [
        held.size * holds[name, broker]
        for name, held in before.partitions.items()
        for broker in brokers
        if broker not in held.replicas
    ]
    program.minimize(program.qsum(arriving))
    assert program.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return round(program.getObjectiveValue())


def limit_racks(
    program: highspy.Highs, before: Cluster, replicas: tuple[int, ...], holds: Mapping[int, object]
) -> None:
    had = racks_of(before, replicas)
    racks = {before.rack(broker) for broker in holds}
    used = {rack: program.addBinary() for rack in racks}
    for rack in racks:
        inside = program.qsum(holds[broker] for broker in holds if before.rack(broker) == rack)
        program.addConstr(inside <= max(had.values()))
        program.addConstr(inside >= used[rack])
    program.addConstr(program.qsum(used.values()) >= len(had))
