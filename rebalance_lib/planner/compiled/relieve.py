"""Brokers above a level relieved, with few bytes, onto brokers that stay below theirs.

A broker gives its largest replicas that are no more than what it has too much, then the smallest one that is enough.
Each goes to the broker that lacks the most of those it fits on without lifting them above their level.

Example: a broker holds replicas of 6, 4 and 3 GB, and its level is 8 GB. 5 are too much: the 4 leave, and for the last
1 the 3. It holds 6, and 7 GB moved.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled
from rebalance_lib.planner.compiled.moves import (
    NOWHERE,
    affordable,
    best_of,
    in_rack,
    move,
    receivers_by_rack,
    slots_by_broker,
)


@compiled
def relieve(state, order, level):
    """Move replicas from brokers above their level to brokers below theirs; returns how many moved."""
    slots, partitions, brokers = state.slots, state.partitions, state.brokers
    lack = level - brokers["bytes"][:-1]
    givers = ((lack < 0) & (brokers["gives"][:-1] > 0)).astype(np.uint8)
    takers = ((lack > 0) & (brokers["takes"][:-1] > 0)).astype(np.uint8)
    receivers = receivers_by_rack(state, takers)
    listed, list_begins = slots_by_broker(state, givers, order)
    counts = np.zeros(state.racks, np.int64)
    moved = 0
    for s in range(len(level)):
        for turn in range(2):
            for step in range(list_begins[s + 1] - list_begins[s]):
                if lack[s] >= 0:
                    break
                at = list_begins[s] + step if turn == 0 else list_begins[s + 1] - 1 - step
                slot, p = listed[at].slot, listed[at].partition
                held_here = slots[slot].bytes
                if slots[slot].broker != s or held_here == 0 or (turn == 0 and held_here > -lack[s]):
                    continue
                if not affordable(state, p, slot):
                    continue
                size = partitions[p].size
                for rack in range(state.racks):
                    counts[rack] = in_rack(state, p, slot, rack)
                own = counts[brokers[s].rack] + 1
                target = best_of(state, receivers, counts, 0, own - 1, lack, p, size - 1, moved)
                if target == NOWHERE:
                    continue
                move(state, p, slot, target)
                lack[s] += held_here
                lack[target] -= size
                moved += 1
    return moved
