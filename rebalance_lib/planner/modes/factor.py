"""Replica lists made longer or shorter: empty slots at the end of a list, or replicas dropped.

To go down, the replica to drop is one on a dead broker; else one in the rack that holds the most replicas of the
partition; among those the one whose broker holds the most bytes. A preferred leader that lives stays, and so does what
is on excluded brokers, and the last replica in sync: nobody else has all of the data.

Example: [1, 2, 3] with 1 and 2 in rack a and 3 in rack b goes down to two as [1, 3].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.factor import Brokers, Replicas, drop_surplus
from rebalance_lib.planner.workspace import Layout, sum_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.scope import Scope


def with_factor(model: ClusterModel, scope: Scope, factor: NDArray[np.int64]) -> Layout:
    """The model's replicas with as many slots as each partition shall have; new ones are empty."""
    load = sum_by(model.broker, model.bytes, model.brokers)
    keep = drop_surplus(
        Replicas(model.offsets, model.broker, model.bytes, model.in_sync),
        Brokers(model.rack, model.alive, scope.gives, load),
        factor,
    )
    kept = np.bincount(model.slot_partition[keep], minlength=model.partitions)
    if len(stuck := np.flatnonzero(kept > factor)):
        raise InvalidInputError(
            f"{model.name(stuck[0])} cannot go down to {factor[stuck[0]]} replicas: all but its preferred leader are "
            "on excluded brokers, or one of them is the last in sync; exclude fewer, or wait until others are in sync"
        )
    offsets = np.r_[0, np.cumsum(factor)].astype(np.int64)
    place = np.repeat(offsets[:-1], kept) + _ranks(kept)
    broker = np.full(offsets[-1], -1, np.int32)
    held = np.zeros(offsets[-1], np.int64)
    log_dir = np.full(offsets[-1], -1, np.int32)
    broker[place], held[place], log_dir[place] = model.broker[keep], model.bytes[keep], model.log_dir[keep]
    return Layout(offsets, broker, held, log_dir)


def _ranks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2 ... within each of the groups of these sizes."""
    begins = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(begins, counts)
