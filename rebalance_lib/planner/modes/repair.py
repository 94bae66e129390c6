"""``repair``: what is broken is mended, and nothing else moves.

Replicas on dead brokers are placed elsewhere, partitions with fewer replicas than asked for get more, and partitions
that share racks worse than they could are spread. Leaders change only in partitions that change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.settle import repair_racks
from rebalance_lib.planner.modes.factor import with_factor
from rebalance_lib.planner.modes.mandatory import order_changed, settle_all
from rebalance_lib.planner.rebalance import shares_of
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.workspace import Placement, Workspace, to_int

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Mend replicas, replication factors and racks."""
    factor = model.replication_factor
    if request.replication_factor is not None:
        factor = np.where(scope.movable, np.maximum(factor, request.replication_factor), factor)
    work = Workspace.of(model, scope, request, with_factor(model, scope, factor), model.leader)
    settle_all(work, model, "the cluster cannot be repaired")
    _, refused = repair_racks(work.state, work.order, to_int(shares_of(work)[Resource.DISK]))
    if refused:
        raise InvalidInputError(
            f"the cluster cannot be repaired: {refused} partitions need a replica in another rack, beyond the budget"
        )
    return order_changed(work)
