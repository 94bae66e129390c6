"""Disk space for lists of replicas that were made without looking at disks: sizes, log dirs and budgets.

What stays on its broker stays in its log dir. What arrives goes to the emptiest log dir of its broker, the largest
first; what leaves has freed its disk space by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.workspace import Layout, free_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request


def carried_over(model: ClusterModel, request: Request, broker: NDArray[np.int32], why: str) -> Layout:
    """The layout with these brokers in the model's slots; raises if one has no disk space, or a budget is too small."""
    before = model.slot_partition * model.brokers + model.broker
    after = model.slot_partition * model.brokers + broker
    order = np.argsort(before)
    place = np.minimum(np.searchsorted(before[order], after), max(0, len(before) - 1))
    old = order[place] if len(order) else place
    stays = before[old] == after
    size = np.where(stays, model.bytes[old], model.size[model.slot_partition])
    log_dir = np.where(stays, model.log_dir[old], -1).astype(np.int32)
    leaving = ~np.isin(before, after) & (model.log_dir >= 0)
    free = free_bytes(model, request.max_fill)
    np.add.at(free, model.log_dir[leaving], model.bytes[leaving])
    arriving = np.flatnonzero(~stays)
    _within_budgets(request, arriving, size, why)
    dirs = model.log_dirs.offsets
    for slot in arriving[np.argsort(-size[arriving], kind="stable")].tolist():
        begin, end = dirs[broker[slot]], dirs[broker[slot] + 1]
        if begin == end:
            continue
        best = begin + int(np.argmax(free[begin:end]))
        if free[best] < size[slot]:
            raise InvalidInputError(
                f"{why}: broker {model.broker_ids[broker[slot]]} has no disk space for "
                f"{model.name(model.slot_partition[slot])} with its {size[slot]} bytes (max fill "
                f"{request.max_fill:g}); take one with more capacity"
            )
        free[best] -= size[slot]
        log_dir[slot] = best
    return Layout(model.offsets, broker, size, log_dir)


def _within_budgets(request: Request, arriving: NDArray[np.int64], size: NDArray[np.int64], why: str) -> None:
    for limit, used, unit in (
        (request.byte_budget, int(size[arriving].sum()), "bytes"),
        (request.move_budget, len(arriving), "replicas"),
    ):
        if limit is not None and used > limit:
            raise InvalidInputError(f"{why}: {used} {unit} must move, but the budget is {limit}; raise it")
