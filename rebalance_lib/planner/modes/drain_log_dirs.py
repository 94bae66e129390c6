"""``drain-log-dirs``: empty the given log dirs, such as disks to be removed, onto the others of the same broker.

Nothing else moves, and no replica leaves its broker. Log dirs are treated as brokers, see ``log_dirs``: those to be
emptied have no share, the others share what the broker holds by their capacities. From the largest replica to the
smallest, each goes to the log dir that lacks the most, as in ``drain``. If one finds no disk space, there is no plan.

Example: log dir /a of a broker holds replicas of 4, 4, 2 and 2 GB, /b and /c are empty. Each of the two gets one of 4
and one of 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.settle import settle
from rebalance_lib.planner.modes.log_dirs import Roles, as_brokers, log_dir_shares, owners
from rebalance_lib.planner.scope import drained_log_dirs
from rebalance_lib.planner.workspace import Layout, Placement, to_int

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope
    from rebalance_lib.planner.workspace import Workspace


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Empty the log dirs, broker by broker."""
    why = f"log dirs {', '.join(request.log_dirs)} cannot be drained"
    drained, owner = drained_log_dirs(model, request), owners(model)
    log_dir = model.log_dir.copy()
    for b in np.unique(owner[drained]).tolist():
        takes = (owner == b) & ~drained & ~model.log_dirs.cordoned
        listed = np.flatnonzero((model.broker == b) & (model.log_dir >= 0))
        if not takes.any():
            raise InvalidInputError(
                f"{why}: broker {model.broker_ids[b]} has no other log dir that may take its replicas; leave one that "
                "is neither drained nor cordoned, or drain the broker"
            )
        roles = Roles(takes, drained & (owner == b))
        work = as_brokers(model, scope, request.without_budgets(), listed, log_dir=log_dir, roles=roles)
        share = log_dir_shares(model, work)
        replicas = share / max(share.sum(), 1.0) * len(listed)
        stuck = settle(work.state, work.order, to_int(share), to_int(replicas), np.zeros(len(owner), np.int64))
        if len(stuck):
            raise InvalidInputError(f"{why}: {_obstacle(model, work, b, listed[stuck[0]])}")
        log_dir[listed] = work.state.slots["broker"]
    _within_budgets(request, model.bytes[log_dir != model.log_dir], why)
    return Placement(model, Layout(model.offsets, model.broker, model.bytes, log_dir), model.leader)


def _obstacle(model: ClusterModel, work: Workspace, b: int, slot: int) -> str:
    best = int(work.state.free[work.scope.takes].max())
    return (
        f"no other log dir of broker {model.broker_ids[b]} has disk space for {model.name(model.slot_partition[slot])} "
        f"with its {model.bytes[slot]} bytes: the emptiest may take {max(0, best)} more (max fill "
        f"{work.request.max_fill:g}); raise max fill, or move replicas to other brokers first"
    )


def _within_budgets(request: Request, moved: NDArray[np.int64], why: str) -> None:
    for name, limit, used, unit in (
        ("byte", request.byte_budget, int(moved.sum()), "bytes"),
        ("move", request.move_budget, len(moved), "replicas"),
    ):
        if limit is not None and used > limit:
            raise InvalidInputError(f"{why}: {used} {unit} must move, but the {name} budget is {limit}; raise it")
