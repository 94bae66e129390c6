"""Moves that a mode cannot do without: all of them find a place within the budgets, or there is no plan.

An ask that cannot be met is answered with the first replica that found no place, and what was in its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.settle import settle
from rebalance_lib.planner.modes.topic_leaders import spread_topic_leaders
from rebalance_lib.planner.order import order_lists
from rebalance_lib.planner.racks import refuse_worse
from rebalance_lib.planner.rebalance import shares_of, to_int
from rebalance_lib.planner.resources import Resource

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
        raise InvalidInputError(f"{why}: {_obstacle(work, int(stuck[0]))}")
    used = allowed - work.state.budget
    for number, (name, unit) in enumerate((("byte", "bytes"), ("move", "replicas"))):
        if work.state.budget[number] < 0:
            raise InvalidInputError(
                f"{why}: {used[number]} {unit} must move, but the {name} budget is {allowed[number]}; raise it"
            )
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


def _obstacle(work: Workspace, slot: int) -> str:
    model = work.model
    p = int(np.searchsorted(work.state.partitions["begin"], slot, side="right") - 1)
    size = int(model.size[p])
    holds = set(
        work.state.slots["broker"][work.state.partitions["begin"][p] : work.state.partitions["begin"][p + 1]].tolist()
    )
    others = [b for b in np.flatnonzero(work.scope.takes).tolist() if b not in holds]
    if not others:
        return (
            f"{model.name(p)} finds no broker: each of those allowed holds a replica of it already; allow more brokers"
        )
    dirs = model.log_dirs.offsets
    best = max(int(work.state.free[dirs[b] : dirs[b + 1]].max()) if dirs[b] < dirs[b + 1] else size for b in others)
    if best >= size and Resource.NETWORK_IN in work.resources:
        rate = work.state.weight[work.resources.index(Resource.NETWORK_IN), p]
        return (
            f"no broker with disk space for {model.name(p)} can take the {rate:g} bytes per second that are written to "
            "it without being above its network_in capacity; add brokers, or correct the capacities"
        )
    return (
        f"no broker has disk space for {model.name(p)} with its {size} bytes: the emptiest log dir among {len(others)} "
        f"brokers may take {max(0, best)} more (max fill {work.request.max_fill:g}); add capacity or raise max fill"
    )
