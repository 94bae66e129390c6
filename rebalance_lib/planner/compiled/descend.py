"""Replicas moved downhill: every move makes the cluster more even in all resources taken together, by enough per byte.

A broker is off its share of resource r by ``x = load / share - 1``, and this counts in tolerances: ``u = x /
tolerance``. How uneven the cluster is altogether is the sum of all ``u * u``. A replica goes from broker s to broker d
if that lowers the sum by more than its bytes cost. What a byte costs comes down from pass to pass: first come the
moves that gain the most by the byte, such as small replicas of busy partitions for traffic, or the smallest ones for
numbers; bytes are moved for their own sake only where a broker is far off, then where it is less so. At the end a
replica moves for its bytes alone only if s and d are further apart than the last price says. So no resource blocks
another one, and next to nothing moves in vain. A replica that has moved already may move on at no cost.

Replicas are walked from the largest to the smallest, and go to the best broker: the small ones at the end level what
the large ones left uneven. Each move lowers the sum, so that there is a last one.

Example: brokers 1 and 2 hold replicas of 4+2+2 and 2 GB; shares are 5 each, the tolerance is 1 %. 1 is 0.6 above, 2 is
0.6 below. Moving the 4 makes them -0.2 and 0.2, moving a 2 makes them 0.2 and -0.2: from 2 * 0.36 to 2 * 0.04 either
way, but at half the bytes. At a price that asks for more than the 4 gains by the byte, one of the 2 goes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined
from rebalance_lib.planner.compiled.moves import (
    NOWHERE,
    SCAN_LIMIT,
    affordable,
    fits,
    in_rack,
    move,
    receivers_by_rack,
)


class Aim(NamedTuple):
    """By resource and broker: between which loads it shall be, and 1 / (share * tolerance)."""

    low: Any
    high: Any
    unit: Any


LEAST_GAIN = 1e-6  # in squared tolerances: less is a rounding error
LEADS = 2.0  # times as dear is a replica that leads, unless its broker leads too many: its leader would have to change


@inlined
def is_below(load, low, b):
    """Whether a broker has too little of any resource."""
    below = False
    for r in range(len(load)):
        below |= load[r, b] < low[r, b]
    return below


@compiled
def descend(state, order, aim, price, most_leaders):
    """Move replicas downhill once; returns how many moved.

    Args: `aim` is where brokers should be, `price` that of a byte, and `most_leaders` how many partitions each broker
    may lead before it is better rid of some.
    """
    partitions, slots, brokers, load, weight = state.partitions, state.slots, state.brokers, state.load, state.weight
    low, high, unit = aim.low, aim.high, aim.unit
    resources, count = load.shape
    receivers = receivers_by_rack(state, brokers["takes"][:-1])
    # By resource and rack: the steepest way down, or one that is somewhat steeper. By resource alone: over all racks.
    steepest = np.zeros((resources, state.racks))
    anywhere = np.zeros(resources)
    lacks = np.zeros(count, np.bool_)  # brokers below an aim: the others gain nothing by what they are given
    for b in range(count):
        lacks[b] = is_below(load, low, b)
        if brokers[b].takes:
            for r in range(resources):
                slope = 2 * max(0.0, low[r, b] - load[r, b]) * unit[r, b] ** 2
                steepest[r, brokers[b].rack] = max(steepest[r, brokers[b].rack], slope)
                anywhere[r] = max(anywhere[r], slope)
    moved = 0
    for p in order:
        if not partitions[p].movable:
            continue
        for slot in range(partitions[p].begin, partitions[p + 1].begin):
            replica = slots[slot]
            s = replica.broker
            if s < 0 or not brokers[s].gives:
                continue
            cost = LEAST_GAIN
            if s == replica.home:
                cost += price * partitions[p].size
                if partitions[p].leader == s and brokers[s].leads <= most_leaders[s]:
                    cost *= LEADS
            given = 0.0
            most = 0.0
            for r in range(resources):
                w = weight[r, p]
                above, below = load[r, s] - high[r, s], low[r, s] - load[r, s]
                if above > -w or below > -w:
                    u = unit[r, s]
                    given += (max(0.0, above, below) * u) ** 2 - (max(0.0, above - w, below + w) * u) ** 2
                most += w * anywhere[r]
            if given + most <= cost:
                continue
            own_rack = brokers[s].rack
            own = in_rack(state, p, slot, own_rack) + 1
            best, target = cost, NOWHERE
            for rack in range(state.racks):
                begin, end = receivers.begins[rack], receivers.begins[rack + 1]
                most = given
                for r in range(resources):
                    most += weight[r, p] * steepest[r, rack]
                if begin == end or most <= best or (rack != own_rack and in_rack(state, p, slot, rack) + 1 > own):
                    continue
                looked = min(end - begin, SCAN_LIMIT)
                first = begin if looked == end - begin else begin + p % (end - begin)
                for step in range(looked):
                    at = first + step
                    if at >= end:
                        at -= end - begin
                    d = receivers.brokers[at]
                    if given <= best and not lacks[d]:
                        continue
                    gain = given
                    for r in range(resources):
                        w, u = weight[r, p], unit[r, d]
                        above, below = load[r, d] - high[r, d], low[r, d] - load[r, d]
                        gain += (max(0.0, above, below) * u) ** 2 - (max(0.0, above + w, below - w) * u) ** 2
                    if gain > best and d != s and fits(state, p, d, True):
                        best, target = gain, d
            if target == NOWHERE or not affordable(state, p, slot):
                continue
            move(state, p, slot, target)
            moved += 1
            lacks[s], lacks[target] = is_below(load, low, s), is_below(load, low, target)
            if brokers[s].takes:
                for r in range(resources):
                    slope = 2 * max(0.0, low[r, s] - load[r, s]) * unit[r, s] ** 2
                    steepest[r, own_rack] = max(steepest[r, own_rack], slope)
                    anywhere[r] = max(anywhere[r], slope)
    return moved
