"""``replace``: each of some brokers by another, one to one, in the same place of every replica list.

The new broker must not hold a replica of the same partition already, must have the disk space, and must not make racks
worse: best is one in the same rack.

Example: broker 2 by broker 9: the lists [1, 2] and [2, 3] become [1, 9] and [9, 3].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.modes.disk_space import carried_over
from rebalance_lib.planner.racks import refuse_worse
from rebalance_lib.planner.workspace import Layout, Placement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Put each replacement in its broker's place."""
    mapping = _mapping(model, scope, request)
    movable = np.repeat(scope.movable, model.replication_factor)
    changed = movable & (mapping[model.broker] != model.broker)
    broker = np.where(changed, mapping[model.broker], model.broker).astype(np.int32)
    _refuse_twice(model, broker)
    same = Layout(model.offsets, broker, model.bytes, model.log_dir)
    refuse_worse(model, same, f"brokers {list(request.replacements)} cannot replace others")
    layout = carried_over(model, request, broker, f"brokers {list(request.replacements)} cannot replace others")
    return Placement(model, layout, broker[model.offsets[:-1]])


def _mapping(model: ClusterModel, scope: Scope, request: Request) -> NDArray[np.int64]:
    for name, listed in (("brokers", request.brokers), ("replacements", request.replacements)):
        if len(set(listed)) < len(listed):
            raise InvalidInputError(f"{name} {list(listed)} name one twice; one replaces one")
    if barred := [b for b in request.replacements if not scope.takes[model.indices([b])[0]]]:
        raise InvalidInputError(
            f"brokers {barred} cannot replace others: they are cordoned, excluded, or not among those allowed"
        )
    mapping = np.arange(model.brokers)
    mapping[model.indices(list(request.brokers))] = model.indices(list(request.replacements))
    return mapping


def _refuse_twice(model: ClusterModel, broker: NDArray[np.int32]) -> None:
    keys = np.sort(model.slot_partition * model.brokers + broker)
    twice = keys[1:][keys[1:] == keys[:-1]]
    if len(twice):
        p, b = divmod(int(twice[0]), model.brokers)
        raise InvalidInputError(
            f"broker {model.broker_ids[b]} cannot replace another: it holds a replica of {model.name(p)} already "
            f"({len(twice)} such partitions in all); take an empty broker, or drain instead"
        )
