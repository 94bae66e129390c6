"""``disks``: even out the log dirs of each broker; no replica leaves its broker.

The same exchange as between brokers, with log dirs in the place of brokers and brokers in the place of racks, which no
replica leaves: every replica is a partition of its own there.

Example: a broker with replicas of 6, 3 and 1 GB on one of two equal disks: the share is 5 each. 3 and 1 go to the
other, which leaves 6 and 4: a whole 5 cannot be made of these sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.shift import Wanted, shift
from rebalance_lib.planner.model import NO_LIMIT, LogDirs
from rebalance_lib.planner.rebalance import least_gain
from rebalance_lib.planner.scope import Scope
from rebalance_lib.planner.shares import even_shares, exchange
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, free_bytes, sum_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request

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
    movable = scope.movable[model.slot_partition[listed]]
    log_dir = model.log_dir
    work = _workspace(model, request, listed, movable, log_dir)
    share = _shares(model, work)
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
        work = _workspace(model, request, listed, movable, log_dir)
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
            part = exchange(load, share, request.tolerance * (1 if number == 0 else 0.3), givers=here, takers=here)
            give += part.give
            take += part.take
        if not give.any():
            break
        if not shift(work.state, work.order, Wanted(give, take, none, none, none), True, request.seed):
            break


def _unevenness(work: Workspace, share: NDArray[np.float64]) -> float:
    """How far loads are out of their bands, altogether."""
    return float(np.maximum(0, np.abs(work.brokers["bytes"] - share) - work.request.tolerance * share).sum())


def _workspace(
    model: ClusterModel,
    request: Request,
    listed: NDArray[np.int64],
    movable: NDArray[np.bool_],
    log_dir: NDArray[np.int32],
) -> Workspace:
    """Each replica as a partition with one slot, each log dir as a broker, each broker as a rack."""
    dirs = model.log_dirs
    count = len(dirs.paths)
    owner = np.repeat(np.arange(model.brokers), np.diff(dirs.offsets)).astype(np.int32)
    free = free_bytes(model, request.max_fill) + sum_by(model.log_dir[listed], model.bytes[listed], count)
    free -= sum_by(log_dir[listed], model.bytes[listed], count)
    as_brokers = replace(
        model,
        broker_ids=np.arange(count, dtype=np.int32),
        alive=np.ones(count, np.bool_),
        rack=owner,
        rack_names=[str(id_) for id_ in model.broker_ids],
        capacity={},
        log_dirs=LogDirs(np.arange(count + 1), dirs.paths, dirs.total, dirs.usable),
        topics=["all"],
        topic=np.zeros(len(listed), np.int32),
        partition=np.arange(len(listed), dtype=np.int32),
        size=model.bytes[listed],
        moving=np.zeros(len(listed), np.bool_),
        offsets=np.arange(len(listed) + 1),
        broker=log_dir[listed],
        bytes=model.bytes[listed],
        log_dir=log_dir[listed],
        in_sync=model.in_sync[listed],
        write_rate=None,
        read_rate=None,
    )
    yes, no = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    scope = Scope(movable, yes, yes, no, yes, no, 0)
    work = Workspace.of(as_brokers, scope, request, Layout.of(as_brokers), np.full(len(listed), -1, np.int32))
    work.state.free[:] = free
    work.state.partitions["row"] = -1
    return work


def _shares(model: ClusterModel, work: Workspace) -> NDArray[np.float64]:
    """By log dir: its part of what its broker holds, by capacity where that is known of all of the broker's."""
    dirs, owner = model.log_dirs, work.model.rack
    known = np.bincount(owner, dirs.total >= NO_LIMIT, minlength=model.brokers) == 0
    weight = np.where(known[owner], dirs.total, 1).astype(np.float64)
    fixed = work.immovable(0)
    load = work.brokers["bytes"].astype(np.float64)
    share: NDArray[np.float64] = np.zeros(len(owner))
    for b in np.unique(owner[load > 0]).tolist():
        here = owner == b
        alone = np.zeros(int(here.sum()), np.int32)
        share[here] = even_shares(load[here].sum(), weight[here], alone, np.array([np.inf]), at_least=fixed[here])
    return share
