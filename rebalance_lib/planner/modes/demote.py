"""``demote``: the given brokers lead nothing and stand at the end of each list, before maintenance; no data moves.

1. Each partition that a demoted broker is the preferred leader of gets another one: a replica in sync, on a broker that
   leads less than the others, see ``order``. Where there is none, the list stays as it is: the report names it.
2. In every other list, and in these, demoted brokers go to the end, and all others keep their order: if the new leader
   fails meanwhile, leadership does not come back to a broker that is about to stop.

Mode ``leaders`` gives leadership back afterwards.

Example: broker 1 is demoted. [1, 2, 3] and [1, 3, 2] become [2, 3, 1] and [3, 2, 1], [2, 1, 3] becomes [2, 3, 1], and
[3, 2, 1] stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.order import electable, order_lists
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Take leadership from the given brokers."""
    demoted = np.isin(model.broker_ids, request.brokers)
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    others = electable(work, work.layout) > 0
    others &= ~demoted[model.broker]
    replaceable = np.bincount(model.slot_partition[others], minlength=model.partitions) > 0
    led = demoted[model.leader] & scope.movable
    ordered = order_lists(work, led & replaceable)
    layout = _last(model, ordered.layout, demoted, scope.movable & (replaceable | ~led))
    return Placement(model, layout, layout.broker[layout.offsets[:-1]])


def _last(model: ClusterModel, layout: Layout, demoted: NDArray[np.bool_], movable: NDArray[np.bool_]) -> Layout:
    """The layout with demoted brokers at the end of each movable list; all others keep their order."""
    last = demoted[layout.broker] & movable[model.slot_partition]
    order = np.lexsort((np.arange(len(last)), last, model.slot_partition))
    return Layout(layout.offsets, layout.broker[order], layout.bytes[order], layout.log_dir[order])
