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
    affordable,
    fits,
    in_rack,
    move,
    receivers_by_rack,
    with_disk_space,
)


class Aim(NamedTuple):
    """By resource and broker: between which loads it shall be, and 1 / (share * tolerance)."""

    low: Any
    high: Any
    unit: Any


LEAST_GAIN = 1e-6  # in squared tolerances: less is a rounding error
SCAN_LIMIT = 64  # receivers of a rack that are looked at for one replica, beginning at a place that rotates
REFRESH = 256  # moves after which the bounds of what a move can gain are worked out anew; they only grow meanwhile
LEADS = 2.0  # times as dear is a replica that leads, unless its broker leads too many: its leader would have to change


class Downhill(NamedTuple):
    """The brokers that take, in the order of `Receivers`, so that what each would gain is worked out side by side.

    In single precision, so that twice as many are: the best one is worked out once more before anything moves.
    """

    above: Any  # by resource and receiver, as the next two: how far it is above its aim, in tolerances
    below: Any
    unit: Any
    steepest: Any  # by resource and rack, and over all racks in the last column: the steepest slope


@compiled
def descend(state, order, aim, price, most_leaders):
    """Move replicas downhill once; returns how many moved.

    Args: `aim` is where brokers should be, `price` that of a byte, and `most_leaders` how many partitions each broker
    may lead before it is better rid of some.
    """
    partitions, slots, brokers, load, weight = state.partitions, state.slots, state.brokers, state.load, state.weight
    low, high, unit = aim.low, aim.high, aim.unit
    resources, count = load.shape
    # One that lacks much, but has no space, would have every replica looked at in vain.
    receivers = receivers_by_rack(state, with_disk_space(state))
    place = np.full(count, NOWHERE, np.int64)
    place[receivers.brokers] = np.arange(len(receivers.brokers))
    downhill = look_down(state, aim, receivers)
    relief = 2 * np.maximum(0.0, load - high) * unit**2  # what a broker gains at most by a unit less of a load
    gain = np.empty(len(receivers.brokers), np.float32)
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
            most = 0.0
            for r in range(resources):
                most += weight[r, p] * (relief[r, s] + downhill.steepest[r, state.racks])
            if most <= cost:
                continue
            given = 0.0
            most = 0.0
            for r in range(resources):
                w = weight[r, p]
                above, below = load[r, s] - high[r, s], low[r, s] - load[r, s]
                if above > -w or below > -w:
                    given += less_outside(aim, r, s, load[r, s], -w)
                most += w * downhill.steepest[r, state.racks]
            if given + most <= cost:
                continue
            own_rack = brokers[s].rack
            own = in_rack(state, p, slot, own_rack) + 1
            best, target = cost, NOWHERE
            for rack in range(state.racks):
                begin, end = receivers.begins[rack], receivers.begins[rack + 1]
                most = given
                for r in range(resources):
                    most += weight[r, p] * downhill.steepest[r, rack]
                if begin == end or most <= best or (rack != own_rack and in_rack(state, p, slot, rack) + 1 > own):
                    continue
                if end - begin > SCAN_LIMIT:
                    begin += p % (end - begin - SCAN_LIMIT + 1)
                    end = begin + SCAN_LIMIT
                weigh(downhill, weight[:, p], given, gain, begin, end)
                if place[s] >= begin and place[s] < end:
                    gain[place[s]] = 0.0
                while True:
                    at = begin + np.argmax(gain[begin:end])
                    if gain[at] <= best:
                        break
                    d = receivers.brokers[at]
                    if fits(state, p, d, True):
                        exact = given
                        for r in range(resources):
                            exact += less_outside(aim, r, d, load[r, d], weight[r, p])
                        if exact > best:
                            best, target = exact, d
                            break
                    gain[at] = 0.0
            if target == NOWHERE or not affordable(state, p, slot):
                continue
            move(state, p, slot, target)
            moved += 1
            for r in range(resources):
                relief[r, s] = 2 * max(0.0, load[r, s] - high[r, s]) * unit[r, s] ** 2
                relief[r, target] = 2 * max(0.0, load[r, target] - high[r, target]) * unit[r, target] ** 2
            note(downhill, state, aim, target, place[target])
            if place[s] != NOWHERE:
                note(downhill, state, aim, s, place[s])
            if moved % REFRESH == 0:
                downhill = look_down(state, aim, receivers)
    return moved


@compiled
def look_down(state, aim, receivers):
    """How much each receiver would gain."""
    resources, count = len(state.load), len(receivers.brokers)
    shape = (resources, count)
    downhill = Downhill(
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.zeros((resources, state.racks + 1)),
    )
    for at in range(count):
        note(downhill, state, aim, receivers.brokers[at], at)
    return downhill


@compiled
def note(downhill, state, aim, b, at):
    """Write down how far a receiver is off its aim now; the steepest slopes only grow by it."""
    steepest, rack = downhill.steepest, state.brokers[b].rack
    for r in range(len(state.load)):
        load, unit = state.load[r, b], aim.unit[r, b]
        above, below = (load - aim.high[r, b]) * unit, (aim.low[r, b] - load) * unit
        downhill.above[r, at], downhill.below[r, at], downhill.unit[r, at] = above, below, unit
        slope = 2 * max(0.0, below) * unit
        steepest[r, rack] = max(steepest[r, rack], slope)
        steepest[r, -1] = max(steepest[r, -1], slope)


@inlined
def less_outside(aim, r, b, load, more):
    """How much less a broker is outside of its aim, squared and in tolerances, with so much more of a load."""
    above, below = load - aim.high[r, b], aim.low[r, b] - load
    before, after = max(0.0, above, below), max(0.0, above + more, below - more)
    return (before * before - after * after) * aim.unit[r, b] ** 2


@compiled
def weigh(downhill, weight, given, gain, begin, end):
    """What a move gains with each of these receivers; a loop without a branch, so that several are done at once."""
    found = gain[begin:end]
    found[:] = given
    zero = np.float32(0)
    for r in range(len(weight)):
        w = np.float32(weight[r])
        above, below, unit = downhill.above[r, begin:end], downhill.below[r, begin:end], downhill.unit[r, begin:end]
        for at in range(len(found)):
            more = w * unit[at]
            before, after = max(zero, above[at], below[at]), max(zero, above[at] + more, below[at] - more)
            found[at] += before * before - after * after
