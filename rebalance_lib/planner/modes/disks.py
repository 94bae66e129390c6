"""``disks``: even out the log dirs of each broker; no replica leaves its broker.

The same exchange as between brokers, with log dirs in the place of brokers, see ``log_dirs``. What is cordoned is given
nothing.

Example: a broker with replicas of 6, 3 and 1 GB on one of two equal disks: the share is 5 each. 3 and 1 go to the
other, which leaves 6 and 4: a whole 5 cannot be made of these sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.shift import Wanted, shift
from rebalance_lib.planner.modes.log_dirs import Roles, as_brokers, log_dir_shares
from rebalance_lib.planner.rebalance import least_gain
from rebalance_lib.planner.shares import exchange
from rebalance_lib.planner.workspace import Layout, Placement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope
    from rebalance_lib.planner.workspace import Workspace

_ROUNDS = 8
_REPEATS = 30


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Move replicas between the log dirs of their brokers."""
    dirs = model.log_dirs
    several = np.diff(dirs.offsets) > 1
    if not several.any():
        raise InvalidInputError("no broker has more than one log dir: there is nothing to even out")
    about = np.isin(model.broker_ids, request.brokers) if request.brokers else np.ones(model.brokers, np.bool_)
    brokers = several & about & scope.gives
    listed = np.flatnonzero(brokers[model.broker] & (model.log_dir >= 0))
    roles = Roles(takes=~dirs.cordoned, leaves=np.zeros(len(dirs.paths), np.bool_))
    log_dir = model.log_dir
    work = as_brokers(model, scope, request, listed, log_dir=log_dir, roles=roles)
    share = log_dir_shares(model, work)
    for _ in range(_REPEATS):
        off = _unevenness(work, share)
        _even(work, share, np.flatnonzero(brokers).tolist())
        # As between brokers: what gains too little is not begun, so that planning again finds nothing to do.
        if off - _unevenness(work, share) <= off * least_gain(request):
            break
        log_dir = log_dir.copy()
        log_dir[listed] = work.state.slots["broker"]
        if request.limited:
            break
        work = as_brokers(model, scope, request, listed, log_dir=log_dir, roles=roles)
    return Placement(model, Layout(model.offsets, model.broker, model.bytes, log_dir), model.leader)


def _even(work: Workspace, share: NDArray[np.float64], brokers: list[int]) -> None:
    """Shift replicas between the log dirs of each broker, in rounds."""
    none = np.zeros(len(share), np.int64)
    request = work.request
    for number in range(_ROUNDS):
        load = work.brokers["bytes"].astype(np.float64)
        give, take = none.copy(), none.copy()
        for b in brokers:
            here = work.model.rack == b
            takers = here & work.scope.takes
            part = exchange(load, share, _tolerance(request) * (1 if number == 0 else 0.3), givers=here, takers=takers)
            give += part.give
            take += part.take
        if not give.any():
            break
        if not shift(work.state, work.order, Wanted(give, take, none, none, none), True, request.seed):
            break


def _unevenness(work: Workspace, share: NDArray[np.float64]) -> float:
    """How far loads are out of their bands, altogether."""
    return float(np.maximum(0, np.abs(work.brokers["bytes"] - share) - _tolerance(work.request) * share).sum())


def _tolerance(request: Request) -> float:
    """How far from its share a log dir may be."""
    return request.goal_tolerances.get("log_dirs", request.tolerance)
