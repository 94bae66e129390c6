"""Which replicas to drop when a replication factor goes down, see ``modes.factor``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled


class Replicas(NamedTuple):
    """By slot, but for the first one, which has where the slots of each partition begin."""

    offsets: Any
    broker: Any
    bytes: Any
    in_sync: Any


class Brokers(NamedTuple):
    """By broker; `load` is changed in place."""

    rack: Any
    alive: Any
    gives: Any
    load: Any


@compiled
def drop_surplus(replicas, brokers, factor):
    """By slot, whether it stays; loads are kept up to date from partition to partition. What may not go, stays."""
    offsets, broker, in_sync = replicas.offsets, replicas.broker, replicas.in_sync
    rack, alive, gives, load = brokers.rack, brokers.alive, brokers.gives, brokers.load
    keep = np.ones(len(broker), np.bool_)
    for p in range(len(factor)):
        begin, end = offsets[p], offsets[p + 1]
        surplus = end - begin - factor[p]
        while surplus > 0:
            worst, worst_dead, worst_rack = -1, False, 0
            with_all_data = np.count_nonzero(keep[begin:end] & in_sync[begin:end])
            for slot in range(begin, end):
                b = broker[slot]
                if not keep[slot] or not gives[b] or (slot == begin and alive[b]):
                    continue
                if in_sync[slot] and with_all_data == 1:
                    continue
                dead = not alive[b]
                crowd = 0
                for other in range(begin, end):
                    if keep[other] and rack[broker[other]] == rack[b]:
                        crowd += 1
                better = worst < 0 or (dead and not worst_dead)
                if worst >= 0 and dead == worst_dead:
                    better = crowd > worst_rack or (crowd == worst_rack and load[b] > load[broker[worst]])
                if better:
                    worst, worst_dead, worst_rack = slot, dead, crowd
            if worst < 0:
                break
            keep[worst] = False
            load[broker[worst]] -= replicas.bytes[worst]
            surplus -= 1
    return keep
