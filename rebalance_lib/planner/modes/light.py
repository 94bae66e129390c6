"""``light``: only brokers above a fill level are relieved, down to that level, and nothing else moves.

What leaves them goes to the emptiest brokers below the level, none of which rises above it; see ``compiled.relieve``.
For a cluster that must not be disturbed more than a full disk would disturb it.

Example: with a level of 80 %, brokers at 90, 70 and 20 % of equal disks: a tenth of a disk goes from the first to the
last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.relieve import relieve
from rebalance_lib.planner.model import NO_LIMIT
from rebalance_lib.planner.modes.mandatory import lead_changed
from rebalance_lib.planner.rebalance import whole
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, sum_by

if TYPE_CHECKING:
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
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    # Who was relieved by more than it had too much can take from another: so until nothing more is found.
    while relieve(*work.arrays, work.order, whole(share)):
        pass
    return Placement.of(work, lead_changed(work))


def _held(model: ClusterModel) -> np.ndarray:
    return sum_by(model.broker, model.bytes, model.brokers)
