"""What is under way against the caps and the disk reserve: counted from the truth, in the moment a request is applied.

The rules are those of `rebalance_lib.plan.waves` and `rebalance_lib.execution.disk_space`, stated a second time on
purpose: an invariant that used the executor's own code would share its faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lib.topology import TopicPartition
from simulator.ledger import LAG_SECONDS, TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection

    from simulator.world import World

SLOT, SLOT_BYTES = 100, 10_000_000  # a copy of less takes its part of a slot, in hundredths
STALE_SIZE_SECONDS = 90.0  # how old the sizes may be that the executor counts with
CAPS = ("moves_in", "moves_out", "moves_in_cluster", "bytes_in_flight")

Cap = tuple[str, int]  # which, and of which broker; 0 for those of the cluster


def over_caps(world: World, begun: Collection[TopicPartition], grace: float) -> str:
    """Which cap is exceeded after these moves began; empty if none is.

    A move that is larger than a cap alone may run alone. Sizes may be those of the snapshot: what was written to a
    partition since does not count. Only caps that these moves count against are judged: that leaders changed, and all
    copies are now sent by one broker, is nobody's fault; nor is what a leader sends that the executor may not have
    heard of yet.
    """
    pace, now = world.settings.pace, world.scheduler.now
    limits = {name: world.ledger.largest_cap(name, getattr(pace, name), now, grace) for name in CAPS}
    load: dict[Cap, float] = {}
    moves: dict[Cap, int] = {}
    touched: set[Cap] = set()
    for tp, move in world.ledger.own.items():
        if not move.chosen:
            continue
        demands = _demands(world, tp, move.size)
        for cap, amount in demands.items():
            load[cap] = load.get(cap, 0.0) + amount
            moves[cap] = moves.get(cap, 0) + 1
        if tp in begun:
            touched.update(demands)
    for name, broker in sorted(touched):
        amount = load[name, broker]
        limit = limits[name] * (SLOT if name in ("moves_in", "moves_out") else 1)
        if amount > limit and moves[name, broker] > 1 and not world.two_executors:
            where = f" of broker {broker}" if broker else ""
            named = ", ".join(map(str, begun))
            return f"{name}{where}: {amount:.0f} are under way, {limit:.0f} may be, after {named} began"
    return ""


def _demands(world: World, tp: TopicPartition, size: int) -> dict[Cap, float]:
    """What a move counts against each cap."""
    state = world.cluster.partitions[tp].state
    if not state.adding:
        return {}
    size = min(size, world.first_sizes.get(tp, 0))
    part, copies = max(1, min(SLOT, size * SLOT // SLOT_BYTES)), len(state.adding)
    demands: dict[Cap, float] = {("moves_in", broker): part for broker in state.adding}
    if state.leader is not None and world.scheduler.now - world.ledger.leader_changed.get(tp, -1e9) > TIMEOUT_SECONDS:
        demands["moves_out", state.leader] = part * copies
    demands["moves_in_cluster", 0] = copies
    demands["bytes_in_flight", 0] = size * copies
    return demands


def crosses_reserve(world: World, tp: TopicPartition) -> str:
    """Which log dir a move fills beyond the reserve, with all that is under way in full; empty if none.

    The executor reads disks before it sends the request: what was written within the last check is not its fault, nor
    is what another tool began to move there, also where that was replaced a moment later.
    """
    cluster, ledger, now = world.cluster, world.ledger, world.scheduler.now
    reserve = world.settings.disk_reserve
    touched = [other for other, since in ledger.foreign_touched.items() if now - since <= LAG_SECONDS]
    recent = [cluster.partitions[other] for other in touched if other in cluster.partitions]
    for broker in cluster.partitions[tp].state.adding:
        log = cluster.partitions[tp].logs.get(broker)
        if log is None or any(broker in other.state.adding or broker in other.logs for other in recent):
            continue
        one = cluster.brokers[broker]
        needed, growth = one.used_bytes(now)[log.path], 0.0
        for partition in one.partitions.values():
            held = partition.logs[broker]
            if held.path == log.path:
                growth += partition.write_rate
                needed += max(0.0, partition.end_at(now) - partition.size_at(held, now))
        total = one.log_dirs[log.path].total
        if needed - growth * STALE_SIZE_SECONDS > total * (1 - reserve) + 1:
            return (
                f"{tp} fills {log.path} of broker {broker}: {needed:.0f} of {total:.0f} bytes, {reserve:.0%} are to "
                "stay free"
            )
    return ""
