"""Numbers of replicas evened out with the smallest ones, while bytes stay within their band.

Example: brokers 1 and 2 hold replicas of 8+1+1 and 10 GB; two each is even. One of the 1 goes to broker 2: 9 and 11 GB.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled
from rebalance_lib.planner.compiled.moves import (
    NOWHERE,
    affordable,
    fits,
    in_rack,
    move,
    receivers_by_rack,
    slots_by_broker,
    with_disk_space,
)


@compiled
def even_out(state, order, low, high, low_bytes, high_bytes, most_leaders):
    """Bring numbers of replicas within their band by moves that leave bytes within theirs; returns how many moved.

    `order` has the smallest partitions first. Brokers above their band give to whom lacks the most, then brokers below
    theirs take from whom can spare one. A broker that leads no more than `most_leaders` keeps what it leads.
    """
    partitions, brokers = state.partitions, state.brokers
    count = len(low)
    moved = 0
    floor, lack, takes = np.empty(count), np.empty(count), with_disk_space(state)
    for turn in range(2):
        givers, takers = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        for b in range(count):
            middle = (low[b] + high[b]) / 2
            floor[b] = high[b] if turn == 0 else middle
            lack[b] = (middle if turn == 0 else low[b]) - brokers[b].replicas
            givers[b] = brokers[b].replicas > floor[b] and brokers[b].gives > 0
            takers[b] = lack[b] > 0 and takes[b]
        if givers.sum() == 0 or takers.sum() == 0:
            continue
        receivers = receivers_by_rack(state, takers)
        listed, begins = slots_by_broker(state, givers, order)
        for s in range(count):
            for at in range(begins[s], begins[s + 1]):
                if brokers[s].replicas <= floor[s]:
                    break
                slot, p = listed[at].slot, listed[at].partition
                if brokers[s].bytes - listed[at].bytes < low_bytes[s] or not affordable(state, p, slot):
                    continue
                if partitions[p].leader == s and brokers[s].leads <= most_leaders[s]:
                    continue
                target = neediest(state, receivers, lack, p, slot, high_bytes)
                if target != NOWHERE:
                    move(state, p, slot, target)
                    lack[target] -= 1
                    moved += 1
    return moved


@compiled
def neediest(state, receivers, lack, p, slot, high_bytes):
    """The receiver that lacks the most replicas, and stays within its band of bytes."""
    own_rack = state.brokers[state.slots[slot].broker].rack
    own = in_rack(state, p, slot, own_rack) + 1
    size = state.partitions[p].size
    target, least = NOWHERE, 0.5
    for rack in range(state.racks):
        begin, end = receivers.begins[rack], receivers.begins[rack + 1]
        if begin == end or (rack != own_rack and in_rack(state, p, slot, rack) + 1 > own):
            continue
        for i in range(begin, end):
            d = receivers.brokers[i]
            if lack[d] > least and state.brokers[d].bytes + size <= high_bytes[d] and fits(state, p, d, True):
                target, least = d, lack[d]
    return target
