"""Moves that a mode cannot do without: all of them find a place within the budgets, or there is no plan.

An ask that cannot be met is answered with the first replica that found no place, and what was in its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.moves import fits
from rebalance_lib.planner.compiled.settle import settle
from rebalance_lib.planner.modes.topic_leaders import spread_topic_leaders
from rebalance_lib.planner.order import order_lists
from rebalance_lib.planner.racks import refuse_worse, worse_racks
from rebalance_lib.planner.rebalance import shares_of
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.workspace import to_int

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.workspace import Placement, Workspace


DISK, REPLICAS, LEADERS = Resource.DISK, Resource.REPLICAS, Resource.LEADERS


def settle_all(work: Workspace, before: ClusterModel, why: str) -> None:
    """Place every slot that needs a broker.

    Raises, saying which and why, if one finds none, a budget is too small, or racks would be shared worse than before.
    """
    allowed = work.state.budget.copy()
    _enough_brokers(work, why)
    shares = shares_of(work)
    stuck = settle(work.state, work.order, *(to_int(shares[one]) for one in (DISK, REPLICAS, LEADERS)))
    if len(stuck):
        p = int(np.searchsorted(work.state.partitions["begin"], stuck[0], side="right") - 1)
        raise InvalidInputError(f"{why}: {_obstacle(work, p)}")
    used = allowed - work.state.budget
    for number, (name, unit) in enumerate((("byte", "bytes"), ("move", "replicas"))):
        if work.state.budget[number] < 0:
            raise InvalidInputError(
                f"{why}: {used[number]} {unit} must move, but the {name} budget is {allowed[number]}; raise it"
            )
    for p in worse_racks(before, work.layout, work.scope.leaves).tolist():
        better = _takers(work, p, in_other_racks=True)
        if better and not any(fits(work.state, p, b, False) for b in better):
            raise InvalidInputError(f"{why}: {_too_full(work, p, better, ' in the racks where it is missing')}")
    refuse_worse(before, work.layout, why, work.scope.leaves)


def order_changed(work: Workspace) -> Placement:
    """Lists in order, changed only in partitions whose replicas changed; no broker leads too much of one topic."""
    changed = np.zeros(work.model.partitions, np.bool_)
    partition = np.repeat(np.arange(work.model.partitions), work.lengths)
    changed[partition[work.state.slots["broker"] != work.state.slots["home"]]] = True
    return spread_topic_leaders(work, order_lists(work, changed), changed)


def _enough_brokers(work: Workspace, why: str) -> None:
    """Refuse if a partition needs more brokers than there are, live and staying."""
    needs = work.unassigned
    if not len(needs):
        return
    staying = int((work.model.alive & ~work.scope.leaves).sum())
    p = needs[np.argmax(work.lengths[needs])]
    if work.lengths[p] > staying:
        raise InvalidInputError(
            f"{why}: {work.model.name(p)} is to have {work.lengths[p]} replicas, but only {staying} brokers would be "
            "left to hold them; add brokers, or lower the replication factor"
        )


def _takers(work: Workspace, p: int, *, in_other_racks: bool = False) -> list[int]:
    """Brokers that may take replicas and hold none of this partition; or only those in racks that lack one."""
    begin, end = work.state.partitions["begin"][p : p + 2]
    holders = work.state.slots["broker"][begin:end]
    others = work.scope.takes & ~np.isin(np.arange(work.model.brokers), holders)
    if in_other_racks:
        rack = work.model.rack
        held = rack[holders[holders >= 0]]
        counts = np.bincount(held[held >= 0], minlength=work.state.racks)  # brokers outside of a set have no rack
        others &= (rack >= 0) & (counts + 1 < counts.max())[rack]
    return np.flatnonzero(others).tolist()


def _obstacle(work: Workspace, p: int) -> str:
    """Why a partition that must have another broker finds none."""
    others = _takers(work, p)
    if not others:
        name = work.model.name(p)
        return f"{name} finds no broker: each of those allowed holds a replica of it already; allow more brokers"
    return _too_full(work, p, others)


def _too_full(work: Workspace, p: int, others: list[int], where: str = "") -> str:
    """Why none of these brokers can take a partition."""
    model, size = work.model, int(work.model.size[p])
    dirs = model.log_dirs.offsets
    best = max(int(work.state.free[dirs[b] : dirs[b + 1]].max()) if dirs[b] < dirs[b + 1] else size for b in others)
    if best >= size and Resource.NETWORK_IN in work.resources:
        rate = work.state.weight[work.resources.index(Resource.NETWORK_IN), p]
        return (
            f"no broker{where} with disk space for {model.name(p)} can take the {rate:g} bytes per second that are "
            "written to it without being above its network_in capacity; add brokers, or correct the capacities"
        )
    return (
        f"no broker{where} has disk space for {model.name(p)} with its {size} bytes: the emptiest log dir among "
        f"{len(others)} brokers may take {max(0, best)} more (max fill {work.request.max_fill:g}); add capacity or "
        "raise max fill"
    )
