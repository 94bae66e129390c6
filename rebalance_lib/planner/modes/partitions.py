"""``partitions``: place new partitions of the chosen topics, and touch no other.

They are as many as the topic lacks, with as many replicas as its first partition. Nothing is known of their size, so
they go where the fewest replicas are, racks alternating, and their leaders where the fewest leaders are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.modes.mandatory import order_changed, settle_all
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Extend the model by the new partitions and place their replicas."""
    wanted = request.partitions or 0
    chosen = np.unique(model.topic[scope.movable])
    counts = np.bincount(model.topic, minlength=len(model.topics))
    if len(over := chosen[counts[chosen] > wanted]):
        raise InvalidInputError(
            f"topic {model.topics[over[0]]} has {counts[over[0]]} partitions already: they cannot become {wanted}, "
            "partitions can only be added"
        )
    _refuse_gaps(model, chosen, counts)
    missing = wanted - counts[chosen]
    first = np.searchsorted(model.topic, chosen) if np.all(np.diff(model.topic) >= 0) else _first(model, chosen)
    factor = np.repeat(model.replication_factor[first], missing)
    added = int(missing.sum())
    offsets = np.r_[model.offsets, model.offsets[-1] + np.cumsum(factor)].astype(np.int64)
    begins = np.repeat(np.cumsum(missing) - missing, missing)
    extended = replace(
        model,
        topic=np.r_[model.topic, np.repeat(chosen, missing)].astype(np.int32),
        partition=np.r_[model.partition, np.repeat(counts[chosen], missing) + np.arange(added) - begins].astype(
            np.int32
        ),
        size=np.r_[model.size, np.zeros(added, np.int64)],
        moving=np.r_[model.moving, np.zeros(added, np.bool_)],
        write_rate=None if model.write_rate is None else np.r_[model.write_rate, np.zeros(added)],
        read_rate=None if model.read_rate is None else np.r_[model.read_rate, np.zeros(added)],
    )
    empty = int(factor.sum())
    layout = Layout(
        offsets,
        np.r_[model.broker, np.full(empty, -1)].astype(np.int32),
        np.r_[model.bytes, np.zeros(empty, np.int64)],
        np.r_[model.log_dir, np.full(empty, -1)].astype(np.int32),
    )
    movable = np.r_[np.zeros(model.partitions, np.bool_), np.ones(added, np.bool_)]
    leader = np.r_[model.leader, np.full(added, -1)].astype(np.int32)
    work = Workspace.of(extended, replace(scope, movable=movable), request, layout, leader)
    settle_all(work, model, "the new partitions cannot be placed")
    return order_changed(work)


def _refuse_gaps(model: ClusterModel, topics: np.ndarray, counts: np.ndarray) -> None:
    """Kafka numbers partitions from 0 on without a gap: a snapshot with one has missed some."""
    last = np.full(len(model.topics), -1)
    np.maximum.at(last, model.topic, model.partition)
    if len(gaps := topics[last[topics] >= counts[topics]]):
        numbers = model.partition[model.topic == gaps[0]]
        lacking = np.setdiff1d(np.arange(last[gaps[0]]), numbers)[0]
        raise InvalidInputError(
            f"topic {model.topics[gaps[0]]} has no partition {lacking} in the snapshot, but has {last[gaps[0]]}: the "
            "snapshot is not whole, and new partitions cannot be numbered; take a new snapshot"
        )


def _first(model: ClusterModel, topics: np.ndarray) -> np.ndarray:
    return np.array([int(np.argmax(model.topic == topic)) for topic in topics], np.int64)
