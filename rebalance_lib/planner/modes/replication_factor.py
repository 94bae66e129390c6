"""``replication-factor``: the chosen topics get another number of replicas, and nothing else moves.

New replicas go to the racks with the fewest of their partition, there to the emptiest broker; see ``factor`` for which
ones are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.modes.factor import with_factor
from rebalance_lib.planner.modes.mandatory import order_changed, settle_all
from rebalance_lib.planner.workspace import Placement, Workspace

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Add or drop replicas of the chosen topics."""
    factor = np.where(scope.movable, request.replication_factor or 0, model.replication_factor)
    work = Workspace.of(model, scope, request, with_factor(model, scope, factor), model.leader)
    settle_all(work, model, f"a replication factor of {request.replication_factor} cannot be reached")
    return order_changed(work)
