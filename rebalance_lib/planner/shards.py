"""A cluster balanced in parts: shards that know nothing of one another, and a last pass over what they leave.

Goal:
    A cluster too large for one task is planned by several, and is as even afterwards as if one had planned it.

Algorithm:
    Shard i of k has the partitions i, i + k, i + 2k ... and all brokers. Of what each broker has too much in the whole
    cluster, nine tenths are given away by the shards, in proportion to what each holds of it; of what it lacks, nine
    tenths are taken, by all shards evenly:

        share in a shard = load in the shard - 0.9 * (surplus * load in the shard / load - deficit / k)

    for bytes, replicas, leaders and write rates alike. Each shard spends a kth of the budgets, of the free space of
    each log dir and of what networks can take; one that is too full already is so for every shard.

    The rest, and what shards could not do because replicas have sizes, is left to the first shard, once more: it gives
    and takes for all. A tenth is enough for it to choose from, and too little to matter for its time. Its tolerance is
    k times as wide, since a part of the whole cluster's share is k times that part of a shard's. Leaders come last and
    over all partitions, since they are free. Should a band still be missed, the whole is levelled once more.

Example:
    Two brokers hold 30 and 10, in two shards 18 + 12 and 4 + 6. The share is 20 each. The first broker gives 5.4 of its
    18 and 3.6 of its 12, the second takes 4.5 in either shard, which leaves 21 and 19. The first shard then moves 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.compiled.settle import repair_racks
from rebalance_lib.planner.order import order_lists
from rebalance_lib.planner.rebalance import (
    Shares,
    least_gain,
    level,
    out_of_balance,
    polish_few,
    rebalance,
    shares_of,
    to_int,
    unevenness,
)
from rebalance_lib.planner.request import Mode
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

    Floats = NDArray[np.float64]

SHARDED = frozenset({Mode.BALANCE, Mode.EXPAND, Mode.TOPICS})
PART = 0.9  # of surplus and deficit is shared out: less would leave too much to the last pass, more too little
PARTITIONS_OF_A_SHARD = 5_000_000
_WIDEST = 0.9  # a tolerance is a part of a share


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of a cluster's partitions, as a cluster of their own, and where their slots are in the whole."""

    model: ClusterModel
    scope: Scope
    slots: NDArray[np.int64]

    @classmethod
    def of(cls, model: ClusterModel, scope: Scope, number: int, count: int) -> Shard:
        """Every ``count``-th partition, from this one on."""
        rows = np.arange(number, model.partitions, count)
        part, slots = model.select(rows)
        return cls(part, replace(scope, movable=scope.movable[rows]), slots)


def cut_up(request: Request, partitions: int) -> Request:
    """The request with as many shards as it asks for, or as a cluster of so many partitions needs; none is empty."""
    wanted = request.shards or -(-partitions // PARTITIONS_OF_A_SHARD)
    return replace(request, shards=max(1, min(wanted, partitions)))


def place_in_shards(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Balance each shard in turn, then the rest."""
    return join(model, scope, request, [plan_shard(model, scope, request, n) for n in range(request.shards)])


def plan_shard(model: ClusterModel, scope: Scope, request: Request, number: int) -> Layout:
    """What one shard's part of the work comes to: where the replicas of its partitions shall be, in their order."""
    count = request.shards
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    shares = shares_of(work)
    uneven = unevenness(work, shares) > 0
    loads, free = _loads(work), work.state.free
    below = work.state.ceiling - work.state.load
    del work  # as large as the whole cluster
    shard = Shard.of(model, scope, number, count)
    part = replace(
        request, byte_budget=_part(request.byte_budget, count), move_budget=_part(request.move_budget, count)
    )
    work = Workspace.of(shard.model, shard.scope, part, Layout.of(shard.model), shard.model.leader)
    work.state.free[:] = np.where(free > 0, free // count, free)
    work.state.ceiling[:] = work.state.load + np.where(below > 0, below / count, below)
    own = _shared_out(shares, loads, _loads(work), count)
    repair_racks(work.state, work.order, to_int(own[Resource.DISK]))
    if uneven:
        level(work, own)
    return work.layout


def join(model: ClusterModel, scope: Scope, request: Request, parts: Sequence[Layout]) -> Placement:
    """The shards' answers put together, what they left evened out by the first one, and leaders over all."""
    count = len(parts)
    broker, held, log_dir = model.broker.copy(), model.bytes.copy(), model.log_dir.copy()
    for number, part in enumerate(parts):
        slots = Shard.of(model, scope, number, count).slots
        broker[slots], held[slots], log_dir[slots] = part.broker, part.bytes, part.log_dir
    layout = Layout(model.offsets, broker, held, log_dir)
    # As every shard had them: a broker that takes nothing and has given would now have a share of what it has left.
    start = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    shares = shares_of(start)
    work = _resumed(model, scope, request, layout)
    if unevenness(work, shares) > 0:
        shard = Shard.of(model, scope, 0, count)
        wide = replace(request, tolerance=min(_WIDEST, request.tolerance * count))
        first = Layout(shard.model.offsets, broker[shard.slots], held[shard.slots], log_dir[shard.slots])
        last = _resumed(shard.model, shard.scope, wide, first)
        last.state.free[:], last.state.budget[:] = work.state.free, work.state.budget
        last.state.ceiling[:] = last.state.load + work.state.ceiling - work.state.load
        level(last, _rest(shares, _loads(work), _loads(last)))
        broker[shard.slots], held[shard.slots] = last.state.slots["broker"], last.state.slots["bytes"]
        log_dir[shard.slots] = last.state.slots["log_dir"]
        work = _resumed(model, scope, request, layout)
    if request.limited:
        polish_few(work, shares)
    gained = out_of_balance(start) - out_of_balance(work)
    if gained <= unevenness(start, shares) * least_gain(request):
        return rebalance(start)  # what shards gained too little by is not begun, as without them
    # Mostly all bands are reached by now, and the last pass only sees to the leaders.
    return order_lists(work) if request.limited else rebalance(work)


def _resumed(model: ClusterModel, scope: Scope, request: Request, layout: Layout) -> Workspace:
    """A workspace in which replicas have moved already: their homes and the budgets left are known."""
    work = Workspace.of(model, scope, request, layout, model.leader)
    work.state.slots["home"] = model.broker
    moved = layout.broker != model.broker
    work.state.budget[:] -= np.array([model.size[model.slot_partition[moved]].sum(), moved.sum()], np.int64)
    return work


def _loads(work: Workspace) -> Shares:
    """What each broker holds of all that is shared out."""
    loads = {one: work.load(one).copy() for one in work.resources}
    return loads | {Resource.LEADERS: work.brokers["leads"].astype(np.float64)}


def _shared_out(shares: Shares, loads: Shares, own: Shares, count: int) -> Shares:
    """A shard's part of each broker's share."""

    def part(share: Floats, load: Floats, mine: Floats) -> Floats:
        surplus, deficit = np.maximum(0, load - share), np.maximum(0, share - load)
        holds = np.divide(mine, load, out=np.zeros_like(mine), where=load > 0)
        shared: Floats = mine - PART * (surplus * holds - deficit / count)
        return shared

    return {one: part(shares[one], loads[one], own[one]) for one in shares}


def _rest(shares: Shares, loads: Shares, own: Shares) -> Shares:
    """The shares of a shard that gives and takes for all; it cannot give more than it has."""

    def part(share: Floats, load: Floats, mine: Floats) -> Floats:
        left: Floats = np.where(share > 0, np.maximum(1, mine - (load - share)), 0)
        return left

    return {one: part(shares[one], loads[one], own[one]) for one in shares}


def _part(budget: int | None, count: int) -> int | None:
    return None if budget is None else budget // count
