"""What brokers have to share: resources, what a replica or a leader takes of each, and who has how much of it.

    disk          bytes of each replica held
    replicas      replicas held
    network_in    what is written to each replica held: by producers to leaders, by leaders to followers
    leaders       partitions led
    network_out   for each partition led: what is written, once to each follower, and what consumers read
    cpu           for each partition led: LEADER_IN of what is written and LEADER_OUT of what is sent; for each
                  replica that follows: FOLLOWER_IN of what is written

The first three follow from where replicas are, the others from the order of replica lists. Traffic counts where rates
are known; CPU where, besides, somebody has said how many cores a broker has.

Each resource has capacities of its own: log dirs for disk, and for all of them what the cluster's file or
``--capacities`` says. Where none is given, all brokers count the same. A broker whose capacity is not known, while it
is of others, is always at its share: nothing moves for its sake, and the others share out what they have themselves. It
is assumed to be as small as the smallest one known if it has nothing yet.

Example: disks of 16, 16, 4 and 4 TB and no other capacities: of 400 GB each broker's share is 160, 160, 40 and 40; of
240 leaders each broker's share is 60.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel

    Floats = NDArray[np.float64]

LEADER_IN, LEADER_OUT, FOLLOWER_IN = 0.7, 0.15, 0.15
"""Parts of a byte's cost on a processor: the weights that Cruise Control estimates with where nothing is measured."""


class Resource(StrEnum):
    """What is shared out among brokers."""

    DISK = "disk"
    REPLICAS = "replicas"
    NETWORK_IN = "network_in"
    LEADERS = "leaders"
    NETWORK_OUT = "network_out"
    CPU = "cpu"

    @property
    def of_replicas(self) -> bool:
        """Whether it follows from where replicas are, whoever leads."""
        return self in HELD


HELD = (Resource.DISK, Resource.REPLICAS, Resource.NETWORK_IN)
LED = (Resource.LEADERS, Resource.NETWORK_OUT, Resource.CPU)
FOLLOWED = (*HELD, Resource.CPU)  # what a replica takes, whoever leads
CAPACITIES = (Resource.DISK, Resource.NETWORK_IN, Resource.NETWORK_OUT, Resource.CPU)


def known_resources(model: ClusterModel) -> tuple[Resource, ...]:
    """The resources whose loads are known."""
    if model.write_rate is None:
        return Resource.DISK, Resource.REPLICAS, Resource.LEADERS
    cpu = np.isfinite(model.capacity[Resource.CPU]).any() if Resource.CPU in model.capacity else False
    return tuple(one for one in Resource if one is not Resource.CPU or cpu)


def per_replica(model: ClusterModel, resource: Resource) -> Floats:
    """By partition: what each of its replicas takes, whoever leads."""
    match resource:
        case Resource.DISK:
            return model.size.astype(np.float64)
        case Resource.REPLICAS:
            return np.ones(model.partitions)
        case Resource.NETWORK_IN:
            return model.written
        case Resource.CPU:
            return FOLLOWER_IN * model.written
        case _:
            return np.zeros(model.partitions)


def per_leader(model: ClusterModel, resource: Resource, copies: NDArray[np.int64]) -> Floats:
    """By partition, with so many copies: what its leader takes beside that."""
    sent = model.written * np.maximum(0, copies - 1) + model.read
    match resource:
        case Resource.LEADERS:
            return np.ones(model.partitions)
        case Resource.NETWORK_OUT:
            return sent
        case Resource.CPU:
            return (LEADER_IN - FOLLOWER_IN) * model.written + LEADER_OUT * sent
        case _:
            return np.zeros(model.partitions)


def weights(model: ClusterModel, resource: Resource) -> Floats:
    """By broker: its part of the resource beside that of others; NaN where that is not known, while it is of others."""
    given = model.capacity.get(resource)
    if given is None or not np.isfinite(given[model.alive]).any():
        return np.ones(model.brokers)
    return np.asarray(given / np.nanmean(given[model.alive]), np.float64)


def with_unknown(part: Floats, load: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The rule for brokers whose part is not known, NaN: all parts, and by broker whether its share is its load.

    It is the load in the layout that is looked at, not that before the plan: shares then follow from the layout alone,
    and planning again sees the same.
    """
    unknown = np.isnan(part)
    known = part[~unknown & (part > 0)]
    return np.where(unknown, known.min() if len(known) else 1.0, part), unknown & (load > 0)


def shared_out(total: float, part: Floats, load: Floats) -> Floats:
    """By broker: its share of a load; those whose part is not known keep theirs, and the others share the rest."""
    part, keeps = with_unknown(part, load)
    part = np.where(keeps, 0.0, part)
    rest = max(0.0, total - float(load[keeps].sum()))
    return np.where(keeps, load, part / max(float(part.sum()), 1e-300) * rest)


def unknown_capacities(model: ClusterModel) -> dict[Resource, list[int]]:
    """By resource: the live brokers whose capacity is not known, while it is of others."""
    found = {one: np.isnan(weights(model, one)) & model.alive for one in known_resources(model)}
    return {one: model.broker_ids[missing].tolist() for one, missing in found.items() if missing.any()}
