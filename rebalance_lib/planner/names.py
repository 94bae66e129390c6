"""The plans that are worked out for a request, to choose from, and what each of them may copy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rebalance_lib.planner.by_set import bytes_needed
from rebalance_lib.planner.request import BALANCING, Mode

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

UNLIMITED, FULL, HALF, QUARTER, LEADERS = "unlimited", "full", "half", "quarter", "leaders"
PARTS = {HALF: 0.5, QUARTER: 0.25}


def names(request: Request) -> tuple[str, ...]:
    """What is worked out for a mode, to choose from."""
    evens_out = request.mode in BALANCING or request.mode is Mode.DISKS or request.balance
    unlimited = (UNLIMITED,) if request.limited and evens_out else ()
    if request.mode in BALANCING:
        return (*unlimited, FULL, HALF, QUARTER, LEADERS)
    return (*unlimited, FULL)


def request_for(model: ClusterModel, scope: Scope, request: Request, name: str) -> Request:
    """The request that a candidate is planned for: those that move a part of the bytes have a budget."""
    if name == UNLIMITED:
        return request.without_budgets()
    if name not in PARTS:
        return request
    home, ideal = bytes_needed(model, scope, request)
    budget = home + int(PARTS[name] * ideal)
    allowed = budget if request.byte_budget is None else min(budget, request.byte_budget)
    return replace(request, byte_budget=allowed)
