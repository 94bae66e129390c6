"""``leaders``: even out who leads by the order of replica lists alone; no data moves, see ``planner.leaders``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rebalance_lib.planner.exact import place_exactly
from rebalance_lib.planner.order import order_lists
from rebalance_lib.planner.request import BALANCING
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Reorder replica lists."""
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    return place_exactly(work, partial(order_lists, once=request.mode in BALANCING), moves=False)
