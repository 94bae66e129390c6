"""``light``: only brokers above a fill level are relieved, down to that level, and nothing else moves.

What leaves them goes to the emptiest brokers below the level, none of which rises above it; see ``compiled.relieve``.
For a cluster that must not be disturbed more than a full disk would disturb it. A level that cannot be reached is
refused; if only a budget is in the way, what it allows is done.

Example: with a level of 80 %, brokers at 90, 70 and 20 % of equal disks: a tenth of a disk goes from the first to the
last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.relieve import relieve
from rebalance_lib.planner.model import NO_LIMIT
from rebalance_lib.planner.modes.mandatory import order_changed
from rebalance_lib.planner.scope import some
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, sum_by, to_int

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Relieve the brokers above the level."""
    dirs = model.log_dirs
    owner = np.repeat(np.arange(model.brokers, dtype=np.int32), np.diff(dirs.offsets))
    unknown = np.bincount(owner, dirs.total >= NO_LIMIT, minlength=model.brokers)
    known = (np.diff(dirs.offsets) > 0) & (unknown == 0)
    if not np.all(known | ~model.alive):
        nameless = model.broker_ids[~known & model.alive].tolist()
        raise InvalidInputError(f"mode light needs to know how large disks are, and brokers {nameless} did not say")
    level = request.fill_level or 1.0
    total = sum_by(owner, dirs.total, model.brokers).astype(np.float64)
    # Other data on the same disks counts as full: the level leaves the rest of it to replicas.
    foreign = np.maximum(0, sum_by(owner, dirs.total - dirs.usable, model.brokers) - _held(model)).astype(np.float64)
    share = np.maximum(0, level * total - foreign)
    work = _relieved(model, scope, request.without_budgets(), to_int(share))
    _refuse_unreached(work, to_int(share))
    if request.limited:
        work = _relieved(model, scope, request, to_int(share))
    return order_changed(work)


def _relieved(model: ClusterModel, scope: Scope, request: Request, level: NDArray[np.int64]) -> Workspace:
    """The cluster with its brokers as near to their levels as can be, downwards."""
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    # Who was relieved by more than it had too much can take from another: so until nothing more is found.
    while relieve(work.state, work.order, level):
        pass
    return work


def _refuse_unreached(work: Workspace, level: NDArray[np.int64]) -> None:
    """Raise if brokers that give stay above their levels, whatever may be copied."""
    model = work.model
    over = np.where(work.scope.gives & model.alive, work.brokers["bytes"] - level, 0)
    if len(full := np.flatnonzero(over > 0)):
        named = some(f"broker {model.broker_ids[b]} by {over[b]} bytes" for b in full.tolist())
        raise InvalidInputError(
            f"a fill level of {work.request.fill_level:g} cannot be reached: {named} would stay above it, because no "
            "other broker has the disk space, or their replicas may not move; raise the level, add brokers or allow "
            "more"
        )


def _held(model: ClusterModel) -> np.ndarray:
    return sum_by(model.broker, model.bytes, model.brokers)
