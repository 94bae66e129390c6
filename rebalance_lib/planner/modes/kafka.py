"""``kafka``: the chosen topics striped over the allowed brokers as Kafka's own tool does it, whatever moves.

Each topic's stripe starts where the seed and the topic's name say, so that the same call gives the same plan.

Kafka's stripe looks at racks only until each holds a replica, so it can crowd the larger one of uneven racks. A
partition that would be in fewer racks than now, or have more replicas in one, is kept where it is, and the others are
striped as if it were too. Where all would have to be kept, striping is refused.

Example: brokers 1 to 5 are in rack a, 6 and 7 in rack b. A stripe goes [4, 6, 2, 7], [5, 7, 3, 4]. If both partitions
have two replicas in each rack now, the second one is kept.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import RackMode, assign_replicas
from rebalance_lib.planner.modes.disk_space import carried_over
from rebalance_lib.planner.racks import refuse_worse, worse_racks
from rebalance_lib.planner.workspace import Layout, Placement
from rebalance_lib.topology import Broker

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

_WHY = "the topics cannot be striped"


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Stripe every chosen topic anew, but for the partitions whose racks that would make worse."""
    _refuse_excluded(model, scope)
    racks = model.rack_names
    brokers = [
        Broker(int(model.broker_ids[b]), racks[model.rack[b]] if racks else None) for b in np.flatnonzero(scope.takes)
    ]
    broker = model.broker.copy()
    for topic in np.unique(model.topic[scope.movable]).tolist():
        rows = np.flatnonzero(model.topic == topic)
        most = int(model.replication_factor[rows].max())
        if most > len(brokers):
            raise InvalidInputError(
                f"{_WHY}: topic {model.topics[topic]} has {most} replicas, but only {len(brokers)} brokers may take "
                "them; allow more brokers, leave the topic out, or lower its replication factor first"
            )
        seed = request.seed ^ zlib.crc32(model.topics[topic].encode())
        placed = assign_replicas(brokers, len(rows), most, rack_mode=RackMode.SAFE, rng=seed)
        for number, p in enumerate(rows.tolist()):
            begin, end = model.offsets[p], model.offsets[p + 1]
            broker[begin:end] = model.indices(placed[number][: end - begin])
    striped = Layout(model.offsets, broker, model.bytes, model.log_dir)
    kept = worse_racks(model, striped, scope.leaves)
    if len(kept) == np.count_nonzero(scope.movable):
        refuse_worse(model, striped, _WHY)
    broker = np.where(np.isin(model.slot_partition, kept), model.broker, broker)
    return Placement(model, carried_over(model, request, broker, _WHY), broker[model.offsets[:-1]], kept=len(kept))


def _refuse_excluded(model: ClusterModel, scope: Scope) -> None:
    kept = np.flatnonzero(scope.movable[model.slot_partition] & ~scope.gives[model.broker])
    if len(kept):
        raise InvalidInputError(
            f"{_WHY}: {model.name(model.slot_partition[kept[0]])} has a replica on excluded broker "
            f"{model.broker_ids[model.broker[kept[0]]]}, as have {len(kept)} in all; leave their topics out"
        )
