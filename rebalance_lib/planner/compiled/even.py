"""Numbers of replicas evened out with the smallest ones, while bytes stay within their band.

Example: brokers 1 and 2 hold replicas of 8+1+1 and 10 GB; two each is even. One of the 1 goes to broker 2: 9 and 11 GB.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inner
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

LEAST_LACK = 0.5  # replicas: one more would be one too many


class Lacking(NamedTuple):
    """Receivers that lack replicas, rack by rack: those of rack r are begins[r] up to ends[r]."""

    brokers: Any
    begins: Any
    ends: Any
    lack: Any  # by broker


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
        lacking = Lacking(receivers.brokers, receivers.begins, receivers.begins[1:].copy(), lack)
        listed, begins = slots_by_broker(state, givers, order)
        for s in range(count):
            largest = most_bytes(state, lacking, high_bytes) if begins[s] < begins[s + 1] else np.int64(0)
            for at in range(begins[s], begins[s + 1]):
                slot, p = listed[at].slot, listed[at].partition
                if brokers[s].replicas <= floor[s] or partitions[p].size > largest:
                    break
                if brokers[s].bytes - listed[at].bytes < low_bytes[s] or not affordable(state, p, slot):
                    continue
                if partitions[p].leader == s and brokers[s].leads <= most_leaders[s]:
                    continue
                target = most_lacking(state, lacking, p, slot, high_bytes)
                if target != NOWHERE:
                    move(state, p, slot, target)
                    take_one(lacking, target, brokers[target].rack)
                    moved += 1
    return moved


@inner
def most_lacking(state, lacking, p, slot, high_bytes):
    """The receiver that lacks the most replicas, and stays within its band of bytes."""
    own_rack = state.brokers[state.slots[slot].broker].rack
    own = in_rack(state, p, slot, own_rack) + 1
    size = state.partitions[p].size
    target, least = NOWHERE, LEAST_LACK
    for rack in range(state.racks):
        begin, end = lacking.begins[rack], lacking.ends[rack]
        if begin == end or (rack != own_rack and in_rack(state, p, slot, rack) + 1 > own):
            continue
        for at in range(begin, end):
            d = lacking.brokers[at]
            if lacking.lack[d] > least and state.brokers[d].bytes + size <= high_bytes[d] and fits(state, p, d, True):
                target, least = d, lacking.lack[d]
    return target


@inner
def most_bytes(state, lacking, high_bytes):
    """The largest replica that any of those that lack some may be given."""
    most = 0.0
    for rack in range(state.racks):
        for at in range(lacking.begins[rack], lacking.ends[rack]):
            most = max(most, high_bytes[lacking.brokers[at]] - state.brokers[lacking.brokers[at]].bytes)
    return np.int64(min(most, 2.0**62))


@inner
def take_one(lacking, d, rack):
    """Count a replica more on a receiver, and strike it off the list once it lacks none."""
    lacking.lack[d] -= 1
    if lacking.lack[d] <= LEAST_LACK:
        at = lacking.begins[rack]
        while lacking.brokers[at] != d:
            at += 1
        lacking.ends[rack] -= 1
        lacking.brokers[at : lacking.ends[rack]] = lacking.brokers[at + 1 : lacking.ends[rack] + 1].copy()
