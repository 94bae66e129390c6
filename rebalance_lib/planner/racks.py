"""Racks before and after: a partition is in no fewer of them, and none has more of its replicas than the fullest had.

The rule is `verify_plan`'s: a partition with fewer replicas than it had racks cannot be in as many, dead brokers have
no rack that could count, and the fullest rack is compared only where all replicas had one and there are no more of them
now. A rack whose brokers all leave no longer counts: replicas are then shared as evenly as the racks left allow.

Example: with brokers 1 and 2 in rack a and 3 in rack b, [1, 3] must not become [1, 2].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.compare import rack_spread
from rebalance_lib.planner.scope import some

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.workspace import Layout


def refuse_worse(model: ClusterModel, layout: Layout, why: str, leaves: NDArray[np.bool_] | None = None) -> None:
    """Raise, saying which, if partitions of the model would share racks worse than now; `leaves` marks brokers."""
    worse = worse_racks(model, layout, np.zeros(model.brokers, np.bool_) if leaves is None else leaves)
    if len(worse):
        raise InvalidInputError(
            f"{why}: {some(map(model.name, worse[:5].tolist()), len(worse))} would be in fewer racks than now, or have "
            "more replicas in one; allow more brokers in other racks"
        )


def worse_racks(model: ClusterModel, layout: Layout, leaves: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The partitions of the model that would share racks worse than now."""
    if not model.has_racks:
        return np.empty(0, np.int64)
    rack = np.where(model.alive, model.rack, -1)
    racks, fullest = rack_spread(model.offsets, model.broker, rack)
    racks_after, fullest_after = rack_spread(layout.offsets[: model.partitions + 1], layout.broker, rack)
    length, length_after = model.replication_factor, np.diff(layout.offsets)[: model.partitions]
    racked = np.bincount(model.slot_partition, rack[model.broker] >= 0, minlength=model.partitions) == length
    left = np.bincount(model.rack[model.alive & ~leaves], minlength=len(model.rack_names))
    fewer = racks_after < np.minimum(np.minimum(racks, length_after), np.count_nonzero(left))
    if leaves.any():
        fullest = np.maximum(fullest, _least_fullest(left, int(length_after.max(initial=0)))[length_after])
    return np.flatnonzero(fewer | (racked & (length_after <= length) & (fullest_after > fullest)))


def _least_fullest(brokers_in_rack: NDArray[np.int64], most_replicas: int) -> NDArray[np.int64]:
    """By number of replicas: the fewest that the fullest rack must hold of them."""
    levels = range(most_replicas + 1)
    places = np.array([np.minimum(brokers_in_rack, level).sum() for level in levels])
    return np.array([np.searchsorted(places, number) for number in levels], np.int64)
