"""A choice of plans: from leaders alone to full balance, none worse than another in every respect.

A plan that balances comes with up to three others that move less: half and a quarter of the bytes that even loads ask
for, spent where they help most, and leaders only. Each can be worked out on its own. A candidate that moves at least as
much as another, without being more even or better spread over racks, is left out. Modes whose moves cannot be cut, such
as drain, or do not aim at even loads, such as light, have one candidate.

The full plan is always there: it is the one after which there is nothing left to plan. A part of it that happens to be
no less even is no trade-off, and what it leaves undone would be planned the next time: it is left out too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_lib.planner.modes import PLACERS
from rebalance_lib.planner.modes import leaders as leaders_only
from rebalance_lib.planner.outcome import Figures, Outcome
from rebalance_lib.planner.rebalance import ideal_bytes
from rebalance_lib.planner.request import BALANCING, Request
from rebalance_lib.planner.scope import Scope
from rebalance_lib.planner.workspace import Layout, Workspace

if TYPE_CHECKING:
    from rebalance_lib.plan import Plan
    from rebalance_lib.planner.model import ClusterModel

FULL, HALF, QUARTER, LEADERS = "full", "half", "quarter", "leaders"
PARTS = {HALF: 0.5, QUARTER: 0.25}


@dataclass(frozen=True, eq=False)
class Candidate:
    """One plan of a choice."""

    name: str
    outcome: Outcome

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
        """What there should be little of: bytes copied, crowded racks, and uneven bytes, replicas and leaders."""
        return self.figures.bytes_moved, self.outcome.crowded, *self.outcome.unevenness


def candidates(model: ClusterModel, request: Request) -> list[Candidate]:
    """The full plan first, then those that move less."""
    scope = Scope.of(model, request)
    return undominated([candidate(model, scope, request, name) for name in names(request)])


def names(request: Request) -> tuple[str, ...]:
    """The candidates that a mode has."""
    if request.mode in BALANCING:
        return FULL, HALF, QUARTER, LEADERS
    return (FULL,)


def candidate(model: ClusterModel, scope: Scope, request: Request, name: str) -> Candidate:
    """The candidate of this name."""
    placer = leaders_only.place if name == LEADERS else PLACERS[request.mode]
    return Candidate(name, Outcome(model, scope, placer(model, scope, asked(model, scope, request, name))))


def asked(model: ClusterModel, scope: Scope, request: Request, name: str) -> Request:
    """What a candidate asks for: those that move a part of the bytes have a budget."""
    if name not in PARTS:
        return request
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    budget = int(PARTS[name] * ideal_bytes(work))
    allowed = budget if request.byte_budget is None else min(budget, request.byte_budget)
    return replace(request, byte_budget=allowed)


def undominated(listed: list[Candidate]) -> list[Candidate]:
    """The full plan, which is listed first, and those others that are a choice beside it; in their order."""
    full, *others = listed
    if not full.figures.replicas_moved:
        others = [one for one in others if one.name not in PARTS]  # a half of nothing
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


def _as_good(one: Candidate, other: Candidate) -> bool:
    """Whether one is no worse than another in any respect."""
    return all(ours <= theirs for ours, theirs in zip(one.cost, other.cost, strict=True))
