"""Log dirs in the place of brokers, so that what moves replicas between brokers moves them within one, too.

Every replica is a partition of its own there, every log dir a broker, and every broker a rack, which no replica leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.model import NO_LIMIT, LogDirs
from rebalance_lib.planner.scope import Scope
from rebalance_lib.planner.shares import even_shares
from rebalance_lib.planner.workspace import Layout, Workspace, free_bytes, sum_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request


@dataclass(frozen=True, eq=False)
class Roles:
    """By log dir: whether it may be given replicas, and whether it must be emptied."""

    takes: NDArray[np.bool_]
    leaves: NDArray[np.bool_]


def owners(model: ClusterModel) -> NDArray[np.int32]:
    """By log dir: its broker."""
    return np.repeat(np.arange(model.brokers), np.diff(model.log_dirs.offsets)).astype(np.int32)


def as_brokers(
    model: ClusterModel,
    scope: Scope,
    request: Request,
    listed: NDArray[np.int64],
    *,
    log_dir: NDArray[np.int32],
    roles: Roles,
) -> Workspace:
    """A workspace of these slots, which are in these log dirs."""
    dirs = model.log_dirs
    count = len(dirs.paths)
    free = free_bytes(model, request.max_fill) + sum_by(model.log_dir[listed], model.bytes[listed], count)
    free -= sum_by(log_dir[listed], model.bytes[listed], count)
    stand_in = replace(
        model,
        broker_ids=np.arange(count, dtype=np.int32),
        alive=np.ones(count, np.bool_),
        rack=owners(model),
        rack_names=[str(id_) for id_ in model.broker_ids],
        capacity={},
        log_dirs=LogDirs(np.arange(count + 1), dirs.paths, dirs.total, dirs.usable, dirs.cordoned),
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
        sets=None,
    )
    movable = scope.movable[model.slot_partition[listed]]
    everyone, nobody = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    within = Scope(movable, roles.takes, everyone, roles.leaves, everyone, nobody, 0)
    work = Workspace.of(stand_in, within, request, Layout.of(stand_in), np.full(len(listed), -1, np.int32))
    work.state.free[:] = free
    work.state.partitions["row"] = -1
    return work


def log_dir_shares(model: ClusterModel, work: Workspace) -> NDArray[np.float64]:
    """By log dir: its part of what its broker holds, by capacity where that is known of all of the broker's.

    One that must be emptied has no share, one that takes nothing has what it holds at most.
    """
    dirs, owner = model.log_dirs, work.model.rack
    known = np.bincount(owner, dirs.total >= NO_LIMIT, minlength=model.brokers) == 0
    weight = np.where(known[owner], dirs.total, 1).astype(np.float64)
    fixed = work.immovable(0)
    load = work.brokers["bytes"].astype(np.float64)
    at_most = np.where(work.scope.leaves, fixed, np.where(work.scope.takes, np.inf, load))
    share: NDArray[np.float64] = np.zeros(len(owner))
    for b in np.unique(owner[load > 0]).tolist():
        here = owner == b
        alone, limit = np.zeros(int(here.sum()), np.int32), np.array([np.inf])
        limits = {"at_least": fixed[here], "at_most": at_most[here]}
        share[here] = even_shares(load[here].sum(), weight[here], alone, limit, **limits)
    return share
