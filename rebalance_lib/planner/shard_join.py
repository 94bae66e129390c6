"""The last pass over a cluster planned in shards: what they left uneven is evened out with a sample of its partitions.

Goal:
    The plans of all shards together are as even as one plan of the whole cluster, by looking at few of its partitions.

Algorithm:
    The samples of all shards are a small cluster. Of all other partitions only sums are known, see ``rest``: as they
    are, from which shares follow, and for each candidate as its shards have placed them. They stay there. The sample,
    where the shards put it, is levelled and put in order once more, with what is left of the budgets; a replica that
    has moved already is moved on for nothing.

Example:
    Two brokers shall have 20 each, and two shards leave 21 and 19, of which the sample has 3 and 1, the others 18 and
    18. One of the sample is moved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.broker_sums import BrokerSums
from rebalance_lib.planner.compiled.compare import compare
from rebalance_lib.planner.model import NO_LIMIT
from rebalance_lib.planner.names import LEADERS, names, request_for
from rebalance_lib.planner.order import order_lists
from rebalance_lib.planner.rebalance import SPENT, level, polish_few, rebalance, shares_of, unevenness
from rebalance_lib.planner.rest import Rest
from rebalance_lib.planner.shards import (
    hashes_of_topics,
    parts_of,
    plan_shard,
    rest_of,
    shards_of_topics,
    with_slots,
)
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

Placed = tuple[Layout, Rest]
"""Where the shards put the sample, and what all other partitions add up to then."""


def join_shards(
    model: ClusterModel, scope: Scope, request: Request, placed: Mapping[str, Placed]
) -> dict[str, Placement]:
    """By candidate: what shards left uneven evened out by the sample, within the budgets.

    Args:
        model: The sample; its ``rest`` is all other partitions as they are.
        scope: Of this model.
        request: As for the whole cluster.
        placed: By candidate.
    """
    if not any(_changes(model, *one) for one in placed.values()):  # no shard found anything to do
        return {name: Placement(replace(model, rest=rest), one, model.leader) for name, (one, rest) in placed.items()}
    return {name: _joined(model, scope, request, name, one) for name, one in placed.items()}


def _changes(model: ClusterModel, layout: Layout, rest: Rest) -> bool:
    """Whether shards that place the sample so have changed anything, in it or in the rest."""
    return not layout.is_like(Layout.of(model)) or bool(rest.changes.count("partitions_changed"))


def _joined(model: ClusterModel, scope: Scope, request: Request, name: str, placed: Placed) -> Placement:
    layout, rest = placed
    after = replace(model, rest=rest)
    start = model.at_horizon()
    expected = replace(_with_moved(model, rest), rest=rest).at_horizon()
    if start is not model:
        layout = replace(layout, bytes=expected.size[expected.slot_partition])
    asked = replace(request_for(start, scope, request, name), polish=0.0)
    # As the shards had them: a broker that takes nothing would now share what it has left.
    shares = shares_of(Workspace.of(start, scope, asked, Layout.of(start), start.leader))
    work = _resumed(expected, scope, asked, layout)
    if name != LEADERS and not _is_spent(work) and unevenness(work, shares) > 0:
        level(work, shares)
        polish_few(work, shares)
        layout = work.settled_layout() or layout
        work = _resumed(expected, scope, asked, layout)
    placement = order_lists(work, once=True) if name == LEADERS or asked.limited else rebalance(work)
    found = placement.layout
    if start is not model:
        found = replace(found, bytes=model.size[model.slot_partition])
    return Placement(after, found, placement.leader)


def _with_moved(model: ClusterModel, rest: Rest) -> ClusterModel:
    """The model with the disk space that is left once the rest of the cluster has moved."""
    dirs = model.log_dirs
    before, after = (one.sums.by_log_dir("bytes", len(dirs.paths)) for one in (model.rest, rest) if one is not None)
    usable = np.where(dirs.usable < NO_LIMIT, dirs.usable + (before - after).astype(np.int64), NO_LIMIT)
    return replace(model, log_dirs=replace(dirs, usable=usable))


def _is_spent(work: Workspace) -> bool:
    """Whether too little of a budget is left for another round."""
    budgets = (work.request.byte_budget, work.request.move_budget)
    left = work.state.budget.tolist()
    return any(budget is not None and left[number] < SPENT * budget for number, budget in enumerate(budgets))


def _resumed(model: ClusterModel, scope: Scope, request: Request, layout: Layout) -> Workspace:
    """A workspace in which replicas have moved already: their homes and the budgets left are known."""
    work = Workspace.of(model, scope, request, layout, layout.broker[layout.offsets[:-1]])
    arrives = compare(model.offsets, model.broker, model.log_dir, layout.offsets, layout.broker, layout.log_dir)[
        0
    ].astype(np.bool_)
    work.state.slots["home"] = np.where(arrives, -1, layout.broker)
    moved = np.flatnonzero(arrives)
    spent = np.array([model.size[model.slot_partition[moved]].sum(), len(moved)], np.int64)
    if model.rest is not None:
        spent += [model.rest.changes.count(name) for name in ("bytes_moved", "replicas_moved")]
    work.state.budget[:] -= spent
    return work


def place_in_shards(model: ClusterModel, scope: Scope, request: Request, count: int) -> dict[str, Placement]:
    """By candidate: where so many shards place a cluster that fits this process, one after the other."""
    shard = shards_of_topics(hashes_of_topics(model.topics)[model.topic], model.partition, count)
    totals = BrokerSums.of(model, scope.movable)
    layouts = dict.fromkeys(names(request), Layout.of(model))
    sampled, before = [], []
    after: dict[str, list[Rest]] = {name: [] for name in layouts}
    for number in range(count):
        rows = np.flatnonzero(shard == number)
        part, slots = model.select(rows)
        of_part = replace(scope, movable=scope.movable[rows])
        plan = plan_shard(part, of_part, request, totals, count)
        sampled.append(rows[plan.sample])
        for name, others in parts_of(part, of_part, plan, plan.others).items():
            after[name].append(rest_of(part, request, others, after=True))
            layouts[name] = with_slots(layouts[name], slots, plan.placements[name].layout)
        before.append(rest_of(part, request, others))
    rows = np.sort(np.concatenate(sampled))
    part, slots = model.select(rows)
    sample = replace(part, rest=Rest.sum(before))
    placed = {
        name: (Layout(part.offsets, one.broker[slots], one.bytes[slots], one.log_dir[slots]), Rest.sum(after[name]))
        for name, one in layouts.items()
    }
    joined = join_shards(sample, replace(scope, movable=scope.movable[rows]), request, placed)
    found = {name: with_slots(one, slots, joined[name].layout) for name, one in layouts.items()}
    return {name: Placement(model, one, one.broker[one.offsets[:-1]]) for name, one in found.items()}
