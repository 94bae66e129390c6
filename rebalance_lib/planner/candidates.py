"""A choice of plans: from leaders alone to full balance, none worse than another in every respect.

A plan that balances comes with up to three others that move less: half and a quarter of the bytes that even loads ask
for, spent where they help most, and leaders only. Each can be worked out on its own. A candidate that moves at least as
much as another, without being more even or better spread over racks, is left out. Modes whose moves cannot be cut, such
as drain, or do not aim at even loads, such as light, have one candidate.

The full plan is always there: it is the one after which there is nothing left to plan. A part of it that happens to be
no less even is no trade-off: brought to its end, so that nothing is left to plan after it either, it is the full plan.

With a budget, what would be planned without one is worked out too, and is the full plan if the budget allows it: a
budget that does not bind changes nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_lib.planner.by_set import place_by_set
from rebalance_lib.planner.modes import PLACERS
from rebalance_lib.planner.modes import leaders as leaders_only
from rebalance_lib.planner.names import FULL, HALF, LEADERS, PARTS, QUARTER, UNLIMITED, names, request_for
from rebalance_lib.planner.outcome import Figures, Outcome
from rebalance_lib.planner.request import Request
from rebalance_lib.planner.scope import Scope
from rebalance_lib.planner.shard_join import place_in_shards
from rebalance_lib.planner.shards import shard_count
from rebalance_lib.planner.workspace import at_present, carried_out
from rebalance_lib.threads import side_by_side

if TYPE_CHECKING:
    from rebalance_lib.plan import Plan
    from rebalance_lib.planner.model import ClusterModel

__all__ = ["FULL", "HALF", "LEADERS", "PARTS", "QUARTER", "UNLIMITED", "names", "request_for"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One plan of a choice."""

    name: str
    outcome: Outcome
    seconds: float = 0.0  # of a processor that it took

    @property
    def plan(self) -> Plan:
        """What there is to execute."""
        return self.outcome.plan

    @property
    def figures(self) -> Figures:
        """The plan in numbers."""
        return self.outcome.figures

    @property
    def cost(self) -> tuple[float, ...]:
        """What there should be little of.

        Bytes copied, replicas outside of their sets, brokers that lack leaders of chosen topics, crowded racks, uneven
        bytes, replicas, leaders and rates.
        """
        outcome = self.outcome
        hard = outcome.misplaced, outcome.leaders_lacking, outcome.crowded
        return self.figures.bytes_moved, *hard, *outcome.unevenness


def candidates(model: ClusterModel, request: Request) -> list[Candidate]:
    """The full plan first, then those that move less."""
    return undominated(all_candidates(model, Scope.of(model, request), request), request)


def all_candidates(model: ClusterModel, scope: Scope, request: Request) -> list[Candidate]:
    """What is worked out to choose from, side by side where that pays; or in shards, each with all of them."""
    if (count := _shards(model, request)) > 1:
        placements = place_in_shards(model, scope, request, count)
        return [Candidate(name, Outcome(model, scope, placement)) for name, placement in placements.items()]
    return side_by_side(lambda name: candidate(model, scope, request, name), names(request), model.partitions)


def candidate(model: ClusterModel, scope: Scope, request: Request, name: str) -> Candidate:
    """The candidate of this name."""
    if _shards(model, request) > 1:
        return next(one for one in all_candidates(model, scope, request) if one.name == name)
    begun = time.thread_time()
    placer = leaders_only.place if name == LEADERS else PLACERS[request.mode]
    expected = model.at_horizon()
    placement = place_by_set(placer, expected, scope, request_for(expected, scope, request, name))
    return Candidate(name, Outcome(model, scope, at_present(model, placement)), time.thread_time() - begun)


def undominated(listed: list[Candidate], request: Request) -> list[Candidate]:
    """The full plan and those others that are a choice beside it, in the order of the names they are listed by."""
    by_name = {one.name: one for one in listed}
    unlimited, full = by_name.pop(UNLIMITED, None), by_name.pop(FULL)
    if unlimited is not None and _within_budgets(unlimited, request):
        full = replace(unlimited, name=FULL)
    others = list(by_name.values())
    if not full.figures.replicas_moved:
        others = [one for one in others if one.name not in PARTS]  # a half of nothing
    for one in others:
        if one.name in PARTS and _as_good(one, full) and one.cost != full.cost and not _is_cut(one, request):
            finished = _finished(one, request)
            full = finished if _as_good(finished, full) and _within_budgets(finished, request) else full
    traded = [one for one in others if not _as_good(one, full)]
    rivals = [full, *traded]
    kept = [
        one
        for number, one in enumerate(traded, start=1)
        if not any(
            _as_good(other, one) and (other.cost != one.cost or place < number)
            for place, other in enumerate(rivals)
            if place != number
        )
    ]
    return [full, *kept]


def _shards(model: ClusterModel, request: Request) -> int:
    """In how many shards a cluster is planned that fits this process: in one, unless the request asks for more."""
    return shard_count(request, model.partitions, sets=model.sets is not None) if request.shards else 1


def _is_cut(one: Candidate, request: Request) -> bool:
    """Whether it was planned in shards: then no part of it is planned further as a whole."""
    return one.outcome.model.rest is not None or _shards(one.outcome.model, request) > 1


def _finished(part: Candidate, request: Request) -> Candidate:
    """A part as a full plan: what would be planned after it, if anything, is done at once."""
    outcome = part.outcome
    after = carried_out(outcome.model, outcome.placement.layout)
    rest = place_by_set(PLACERS[request.mode], after, outcome.scope, replace(request.without_budgets(), polish=0.0))
    placement = replace(outcome.placement, layout=rest.layout, leader=rest.leader)
    return Candidate(FULL, Outcome(outcome.model, outcome.scope, placement))


def _within_budgets(one: Candidate, request: Request) -> bool:
    figures = one.figures
    spent = (figures.bytes_moved + figures.log_dir_bytes, figures.replicas_moved + figures.log_dir_moves)
    budgets = (request.byte_budget, request.move_budget)
    return all(budget is None or used <= budget for used, budget in zip(spent, budgets, strict=True))


def _as_good(one: Candidate, other: Candidate) -> bool:
    """Whether one is no worse than another in any respect."""
    return all(ours <= theirs for ours, theirs in zip(one.cost, other.cost, strict=True))
