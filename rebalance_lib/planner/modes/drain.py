"""``drain``: empty the given brokers, and move nothing else.

Exactly the bytes of the drained brokers are copied. They go where the least is, so the balance is the best that these
bytes can give. Leaders are evened out over all, since that copies nothing. With ``balance`` the rest is evened out too.

Example: broker 3 holds replicas of 5 and 1 GB; brokers 1 and 2 hold 4 and 6. The 5 go to broker 1, the 1 to broker 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.modes.mandatory import settle_all
from rebalance_lib.planner.order import order_lists
from rebalance_lib.planner.rebalance import rebalance
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Empty the brokers that leave."""
    named = ", ".join(map(str, request.brokers))
    why = f"brokers {named} cannot be drained"
    if not np.any(scope.takes):
        raise InvalidInputError(f"{why}: no broker is left that may take their replicas")
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    settle_all(work, model, why)
    if request.balance:
        return rebalance(work)
    return order_lists(work)
