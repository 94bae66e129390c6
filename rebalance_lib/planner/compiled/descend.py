"""Replicas moved downhill: every move makes the cluster more even in all resources taken together, by enough per byte.

A broker is off its share of resource r by ``x = load / share - 1``, and this counts in tolerances: ``u = x /
tolerance``. How uneven the cluster is altogether is the sum of all ``u * u``. A replica goes from broker s to broker d
if that lowers the sum by more than its bytes cost. What a byte costs comes down from pass to pass: first come the
moves that gain the most by the byte, such as small replicas of busy partitions for traffic, or the smallest ones for
numbers; bytes are moved for their own sake only where a broker is far off, then where it is less so. At the end a
replica moves for its bytes alone only if s and d are further apart than the last price says. So no resource blocks
another one, and next to nothing moves in vain. A replica that has moved already moves on at next to no cost.

Replicas are walked from the largest to the smallest, and go to the best broker: the small ones at the end level what
the large ones left uneven. Each move lowers the sum, so that there is a last one.

Example: brokers 1 and 2 hold replicas of 4+2+2 and 2 GB; shares are 5 each, the tolerance is 1 %. 1 is 0.6 above, 2 is
0.6 below. Moving the 4 makes them -0.2 and 0.2, moving a 2 makes them 0.2 and -0.2: from 2 * 0.36 to 2 * 0.04 either
way, but at half the bytes. At a price that asks for more than the 4 gains by the byte, one of the 2 goes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined, inner
from rebalance_lib.planner.compiled.moves import (
    NETWORK_IN,
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


class Price(NamedTuple):
    """What a move must gain by the byte, in squared tolerances."""

    at_home: float  # of a replica that is where it was at the start
    away: float  # of one that has moved already


LEAST_GAIN = 1e-4
"""In squared tolerances. With 1e-6 a tenth of the time goes into moves that nobody could measure, with 4e-3 brokers are
left outside of their bands (gen.py skew, 100,000 and 1,000,000 partitions, with rates and capacities).
"""

SCAN_LIMIT = 64  # receivers of a rack that are looked at for one replica, beginning at a place that rotates
REFRESH = 256  # moves after which the bounds of what a move can gain are worked out anew; they only grow meanwhile
LEADS = 2.0  # times as dear is a replica that leads, unless its broker leads too many: its leader would have to change
RESOURCES = NETWORK_IN + 1  # as many are weighed at once; one that is not known weighs nothing


class Downhill(NamedTuple):
    """The brokers that take, in the order of `Receivers`, so that what each would gain is worked out side by side.

    In single precision, so that twice as many are: the best one is worked out once more before anything moves.
    """

    above: Any  # by resource and receiver in one row, as the next two: how far it is above its aim, in tolerances
    below: Any
    unit: Any
    steepest: Any  # by resource and rack, and over all racks in the last column: the steepest slope
    gain: Any  # of those weighed last, and a place for what they must exceed
    bits: Any  # the same memory as whole numbers


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
    # By broker and resource: what it gains at most by a unit less of a load.
    relief = np.ascontiguousarray((2 * np.maximum(0.0, load - high) * unit**2).T)
    moved = 0
    for p in order:
        if not partitions[p].movable:
            continue
        size, steepest = partitions[p].size, 0.0
        for r in range(resources):
            steepest += weight[r, p] * downhill.steepest[r, state.racks]
        for slot in range(partitions[p].begin, partitions[p + 1].begin):
            replica = slots[slot]
            s = replica.broker
            if s < 0 or not brokers[s].gives:
                continue
            cost = LEAST_GAIN + (price.at_home if s == replica.home else price.away) * size
            if s == replica.home and partitions[p].leader == s and brokers[s].leads <= most_leaders[s]:
                cost *= LEADS
            most = steepest
            for r in range(resources):
                most += weight[r, p] * relief[s, r]
            if most <= cost:
                continue
            given = 0.0
            for r in range(resources):
                w = weight[r, p]
                above, below = load[r, s] - high[r, s], low[r, s] - load[r, s]
                if above > -w or below > -w:
                    given += less_outside(aim, r, s, load[r, s], -w)
            if given + steepest <= cost:
                continue
            own_rack = brokers[s].rack
            own = in_rack(state, p, slot, own_rack) + 1
            best, target = cost, NOWHERE
            for rack in range(state.racks):
                begin, looked = receivers.begins[rack], receivers.begins[rack + 1] - receivers.begins[rack]
                most = given
                for r in range(resources):
                    most += weight[r, p] * downhill.steepest[r, rack]
                if looked == 0 or most <= best or (rack != own_rack and in_rack(state, p, slot, rack) + 1 > own):
                    continue
                if looked > SCAN_LIMIT:
                    begin += p % (looked - SCAN_LIMIT + 1)
                    looked = SCAN_LIMIT
                network = weight[NETWORK_IN, p] if resources > NETWORK_IN else 0.0
                weigh(downhill, (weight[0, p], weight[1, p], network), given, begin, looked)
                if begin <= place[s] < begin + looked:
                    downhill.gain[place[s] - begin] = 0.0
                while True:
                    at = highest(downhill, looked, best)
                    if at == NOWHERE:
                        break
                    d = receivers.brokers[begin + at]
                    if fits(state, p, d, True):
                        exact = given
                        for r in range(resources):
                            exact += less_outside(aim, r, d, load[r, d], weight[r, p])
                        if exact > best:
                            best, target = exact, d
                            break
                    downhill.gain[at] = 0.0
            if target == NOWHERE or not affordable(state, p, slot):
                continue
            move(state, p, slot, target)
            moved += 1
            for r in range(resources):
                relief[s, r] = 2 * max(0.0, load[r, s] - high[r, s]) * unit[r, s] ** 2
                relief[target, r] = 2 * max(0.0, load[r, target] - high[r, target]) * unit[r, target] ** 2
            note(downhill, state, aim, target, place[target])
            if place[s] != NOWHERE:
                note(downhill, state, aim, s, place[s])
            if moved % REFRESH == 0:
                downhill = look_down(state, aim, receivers)
    return moved


@inner
def look_down(state, aim, receivers):
    """How much each receiver would gain."""
    resources, count = len(state.load), len(receivers.brokers)
    size, gain = RESOURCES * count, np.empty(count + 1, np.float32)
    downhill = Downhill(
        np.zeros(size, np.float32),
        np.zeros(size, np.float32),
        np.zeros(size, np.float32),
        np.zeros((resources, state.racks + 1)),
        gain,
        gain.view(np.int32),
    )
    for at in range(count):
        note(downhill, state, aim, receivers.brokers[at], at)
    return downhill


@inner
def note(downhill, state, aim, b, at):
    """Write down how far a receiver is off its aim now; the steepest slopes only grow by it."""
    steepest, rack, count = downhill.steepest, state.brokers[b].rack, len(downhill.unit) // RESOURCES
    for r in range(len(state.load)):
        load, unit = state.load[r, b], aim.unit[r, b]
        above, below = (load - aim.high[r, b]) * unit, (aim.low[r, b] - load) * unit
        here = r * count + at
        downhill.above[here], downhill.below[here], downhill.unit[here] = above, below, unit
        slope = 2 * max(0.0, below) * unit
        steepest[r, rack] = max(steepest[r, rack], slope)
        steepest[r, -1] = max(steepest[r, -1], slope)


@inlined
def less_outside(aim, r, b, load, more):
    """How much less a broker is outside of its aim, squared and in tolerances, with so much more of a load."""
    above, below = load - aim.high[r, b], aim.low[r, b] - load
    before, after = max(0.0, above, below), max(0.0, above + more, below - more)
    return (before * before - after * after) * aim.unit[r, b] ** 2


@inlined
def weigh(downhill, weight, given, begin, looked):
    """What a move gains with each of these receivers; a loop without a branch, so that several are done at once.

    Unsigned indices: with others, which may count from the end, that is not possible but with slices of the arrays,
    and to make these takes as long as all the rest.
    """
    count = np.uint64(len(downhill.unit) // RESOURCES)
    first = np.uint64(begin)
    second, third = first + count, first + count + count
    for at in range(np.uint64(looked)):
        downhill.gain[at] = (
            np.float32(given)
            + less_with(downhill, np.float32(weight[0]), first + at)
            + less_with(downhill, np.float32(weight[1]), second + at)
            + less_with(downhill, np.float32(weight[2]), third + at)
        )


@inlined
def less_with(downhill, weight, at):
    """How much less a receiver is outside with so much more of a load, in single precision."""
    above, below, more, zero = downhill.above[at], downhill.below[at], weight * downhill.unit[at], np.float32(0)
    before, after = max(zero, above, below), max(zero, above + more, below - more)
    return before * before - after * after


@inlined
def highest(downhill, looked, least):
    """Where the gain is the highest, if it is above `least`, which is positive.

    Positive numbers are in the same order as their bits, and of whole numbers, which are never NaN, several are
    compared at once.
    """
    gain, bits = downhill.gain, downhill.bits
    gain[looked] = least
    most = bits[looked]
    for at in range(np.uint64(looked)):
        most = max(most, bits[at])
    if most == bits[looked]:
        return NOWHERE
    at = 0
    while bits[at] != most:
        at += 1
    return at
