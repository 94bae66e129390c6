"""The order of replica lists: who leads, and who takes over when a leader dies, so that nobody is given too much.

Nothing is copied by it. What a broker leads counts as numbers, as bytes sent and as work of its processor; what it
leads of one topic counts too; and for every broker, and every rack, that may die, what each survivor would inherit:
leadership goes to the next replica in the list that is still there. Each of these is a load with a least and a most,
and what is outside of them counts by its square, in tolerances. Two replicas of a list change places if that lowers
the sum and, if asked for, does not make numbers of leaders less even; what is within its limits has no say, so that a
list which harms nobody stays as it is. Each change lowers the sum, so that there is a last one.

Example: partitions on [1, 2, 3], [1, 2, 3] and [2, 3, 1]: if broker 1 dies, 2 leads all three of them. With the second
list as [1, 3, 2], it would lead two, and 3 one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined

LEAST_GAIN = 1e-9  # less is a rounding error
LEAST = 0.01  # of a squared tolerance: what survivors may inherit too much of without a change of followers
PASSED = 8  # partitions that a follower leads are passed by for each that may be swapped
CHANGE = 0.1  # of a squared tolerance: another leader is worth that much, another order of followers anything


class Leading(NamedTuple):
    """What the order of replica lists is judged by."""

    offsets: Any
    broker: Any  # by slot, changed in place, as the next one
    may_lead: Any
    movable: Any  # by partition
    weight: Any  # by load and partition: what its leader takes
    base: Any  # by load and broker, as the next five: what its replicas take, whoever leads
    load: Any
    low: Any
    high: Any
    unit: Any  # 1 / (share * tolerance)
    ceiling: Any  # what no change brings a broker above; what is above already only comes down
    row: Any  # by partition: its topic's in the next two; -1 for none
    topic_leaders: Any  # by row and broker: how many of its partitions the broker leads
    topic_high: Any  # by row
    topic_weight: float  # what a leader too many of a topic counts, beside one tolerance
    fail_weight: Any  # by load that fails over: what a tolerance too much counts
    fail_unit: Any  # by load that fails over and survivor: 1 / (share * tolerance)
    leader: Any  # by partition: who led it at the start
    rack: Any  # by broker
    inherited: Any  # by broker that dies, survivor and load that fails over: what the survivor would inherit
    inherited_by_rack: Any  # by load that fails over, rack that dies and survivor
    growth: Any  # by load that fails over and broker that dies: what all survivors may have then, over their parts
    growth_by_rack: Any
    part: Any  # by load that fails over and survivor: its part of the resource
    least: Any  # by load that fails over and broker that dies: what each survivor may always inherit, an even part
    least_by_rack: Any


@compiled
def count_all(leading):
    """Count every partition that has a replica, and nothing else."""
    leading.load[:] = leading.base
    leading.topic_leaders[:] = 0
    leading.inherited[:] = 0
    leading.inherited_by_rack[:] = 0
    for p in range(len(leading.movable)):
        if leading.offsets[p] < leading.offsets[p + 1] and leading.broker[leading.offsets[p]] >= 0:
            take(leading, p, 1.0)


@compiled
def order_replicas(leading, passes, strict):
    """Change the order of lists until no change helps, or so many passes are over; returns how many changed."""
    changes = 0
    longest = 0
    for p in range(len(leading.movable)):
        longest = max(longest, leading.offsets[p + 1] - leading.offsets[p])
    leaders, rest = np.empty(longest), np.empty(longest)  # by place in the list: what it costs if that one leads
    for _ in range(passes):
        before = changes
        for p in range(len(leading.movable)):
            if not leading.movable[p] or is_calm(leading, p, 0):
                continue
            begin, end = leading.offsets[p], leading.offsets[p + 1]
            take(leading, p, -1.0)
            for slot in range(begin, end):
                leaders[slot - begin], rest[slot - begin] = cost_of_leader(leading, p, leading.broker[slot])
            best, best_first, best_second = leaders[0] + rest[0] + cost_of_failover(leading, p), -1, -1
            margin = LEAST_GAIN * (1 + abs(best))
            for first in range(begin, min(begin + 2, end)):
                for second in range(first + 1, end):
                    leads = second - begin if first == begin else 0
                    if (leads and not leading.may_lead[second]) or (strict and leaders[leads] > leaders[0] + margin):
                        continue
                    if leads and exceeds(leading, p, leading.broker[second]):
                        continue
                    swap(leading, first, second)
                    found = leaders[leads] + rest[leads] + cost_of_failover(leading, p)
                    swap(leading, first, second)
                    if found < best - margin:
                        best, best_first, best_second = found, first, second
            if best_first >= 0:
                swap(leading, best_first, best_second)
                changes += 1
            take(leading, p, 1.0)
        if changes == before:
            break
    return changes


@compiled
def swap_leaders(leading, looked):
    """Let two brokers each hand a partition to the other, where handing over one alone helps nobody.

    For each partition whose leader has too much, at most so many of those that a follower leads are looked at. Returns
    how many pairs changed.
    """
    count = leading.load.shape[1]
    first = np.full(count, -1, np.int64)  # lists of partitions by leader; those that change hands are left in theirs
    after = np.full(len(leading.movable), -1, np.int64)
    for p in range(len(leading.movable) - 1, -1, -1):
        if leading.movable[p]:
            after[p] = first[leading.broker[leading.offsets[p]]]
            first[leading.broker[leading.offsets[p]]] = p
    swaps = 0
    for p in range(len(leading.movable)):
        if not leading.movable[p] or is_calm(leading, p, 1):
            continue
        begin = leading.offsets[p]
        s = leading.broker[begin]
        take(leading, p, -1.0)
        best, best_slot, best_other, best_other_slot = 0.0, -1, -1, -1
        for slot in range(begin + 1, leading.offsets[p + 1]):
            d = leading.broker[slot]
            if not leading.may_lead[slot]:
                continue
            q, tried, passed = first[d], 0, 0
            while q >= 0 and tried < looked and passed < PASSED * looked:
                passed += 1
                at = leading.offsets[q]
                if leading.broker[at] == d and q != p:
                    for other in range(at + 1, leading.offsets[q + 1]):
                        if leading.broker[other] == s and leading.may_lead[other] and helps(leading, p, q, s, d):
                            tried += 1
                            found = gain_of_swap(leading, p, slot, q, other)
                            if found > best + LEAST_GAIN:
                                best, best_slot, best_other, best_other_slot = found, slot, q, other
                q = after[q]
        if best_slot >= 0:
            take(leading, best_other, -1.0)
            swap(leading, begin, best_slot)
            swap(leading, leading.offsets[best_other], best_other_slot)
            take(leading, best_other, 1.0)
            swaps += 1
        take(leading, p, 1.0)
    return swaps


@inlined
def helps(leading, p, q, s, d):
    """Whether no load of two brokers is further outside of its limits, all together, once s leads q, and d leads p.

    Now d leads q, and p is counted nowhere. Who is given more than before stays below its ceiling.
    """
    more = 0.0
    for r in range(len(leading.load)):
        given, taken = leading.weight[r, p], leading.weight[r, q]
        if taken > given and leading.load[r, s] + taken > leading.ceiling[r, s]:
            return False
        if given > taken and leading.load[r, d] + given - taken > leading.ceiling[r, d]:
            return False
        more += more_outside(leading, r, s, given, taken)
        more += more_outside(leading, r, d, 0.0, given - taken)
    return more <= 0.0


@inlined
def exceeds(leading, p, b):
    """Whether a broker would be above a ceiling if it led a partition that is counted nowhere now."""
    above = False
    for r in range(len(leading.load)):
        above |= leading.load[r, b] + leading.weight[r, p] > leading.ceiling[r, b]
    return above


@inlined
def outside(leading, r, b, more):
    """How far a broker is outside of its limits with so much more."""
    load = leading.load[r, b] + more
    return max(0.0, load - leading.high[r, b], leading.low[r, b] - load)


@inlined
def gain_of_swap(leading, p, slot, q, other):
    """How much less is outside of its limits if p, which is counted nowhere now, and q change their leaders."""
    begin, at = leading.offsets[p], leading.offsets[q]
    take(leading, q, -1.0)
    before = both(leading, p, q)
    swap(leading, begin, slot)
    swap(leading, at, other)
    after = both(leading, p, q)
    swap(leading, begin, slot)
    swap(leading, at, other)
    take(leading, q, 1.0)
    return before - after


@inlined
def both(leading, p, q):
    """What it costs to count two partitions that are counted nowhere now."""
    cost = cost_of(leading, p)
    take(leading, p, 1.0)
    cost += cost_of(leading, q)
    take(leading, p, -1.0)
    return cost


@inlined
def cost_of(leading, p):
    """What it costs to count a partition, which is counted nowhere now, as its list is ordered."""
    leaders, rest = cost_of_leader(leading, p, leading.broker[leading.offsets[p]])
    return leaders + rest + cost_of_failover(leading, p)


@compiled
def unevenness(leading):
    """All that is outside of its limits, squared: leaders, other loads and topics, and what survivors would have."""
    leaders, others, survivors = 0.0, 0.0, 0.0
    for r in range(len(leading.load)):
        for b in range(leading.load.shape[1]):
            off = outside(leading, r, b, 0.0) * leading.unit[r, b]
            if r == 0:
                leaders += off * off
            else:
                others += off * off
    for row in range(len(leading.topic_leaders)):
        for count in leading.topic_leaders[row]:
            off = max(0, count - leading.topic_high[row])
            others += leading.topic_weight * off * off
    for r in range(len(leading.fail_weight)):
        for b in range(leading.load.shape[1]):
            load, unit = leading.load[r, b], leading.fail_unit[r, b]
            for dead in range(leading.load.shape[1]):
                if dead != b and leading.inherited[dead, b, r] > 0:
                    over = leading.inherited[dead, b, r] - limit(leading, r, dead, b, load)
                    survivors += leading.fail_weight[r] * (max(0.0, over) * unit) ** 2
            for rack in range(leading.inherited_by_rack.shape[1]):
                if leading.inherited_by_rack[r, rack, b] > 0:
                    over = leading.inherited_by_rack[r, rack, b] - limit_by_rack(leading, r, rack, b, load)
                    survivors += leading.fail_weight[r] * (max(0.0, over) * unit) ** 2
    return leaders, others, survivors


@compiled
def reserve(leading):
    """Lower what a broker may send by what it would inherit, where both together are more than it may have then.

    Numbers of leaders, the first load, stay as even as they are.
    """
    for r in range(1, len(leading.fail_weight)):
        for b in range(leading.load.shape[1]):
            for dead in range(leading.load.shape[1]):
                inherited = leading.inherited[dead, b, r]
                if dead != b and inherited > leading.least[r, dead]:
                    left = leading.growth[r, dead] * leading.part[r, b] - inherited
                    leading.high[r, b] = min(leading.high[r, b], max(left, 0.0))


@inlined
def swap(leading, first, second):
    """Let two replicas of a list change places."""
    leading.broker[first], leading.broker[second] = leading.broker[second], leading.broker[first]
    leading.may_lead[first], leading.may_lead[second] = leading.may_lead[second], leading.may_lead[first]


@inlined
def heir(leading, p, rack):
    """Who leads when the first replica dies, and with it its rack if `rack` says so; -1 for nobody."""
    begin = leading.offsets[p]
    dead = leading.broker[begin]
    for slot in range(begin + 1, leading.offsets[p + 1]):
        b = leading.broker[slot]
        if leading.may_lead[slot] and not (rack and leading.rack[b] == leading.rack[dead]):
            return b
    return -1


@inlined
def take(leading, p, sign):
    """Count a partition in all loads, or out of them."""
    leader = leading.broker[leading.offsets[p]]
    for r in range(len(leading.load)):
        leading.load[r, leader] += sign * leading.weight[r, p]
    row = leading.row[p]
    if row >= 0:
        leading.topic_leaders[row, leader] += int(sign)
    next_one, next_rack = heir(leading, p, False), heir(leading, p, True)
    for r in range(len(leading.fail_weight)):
        if next_one >= 0:
            leading.inherited[leader, next_one, r] += sign * leading.weight[r, p]
        if next_rack >= 0 and leading.rack[leader] >= 0:
            leading.inherited_by_rack[r, leading.rack[leader], next_rack] += sign * leading.weight[r, p]


@inlined
def cost_of_leader(leading, p, b):
    """How much more is outside of limits if a broker leads a partition that is counted nowhere: leaders, the rest."""
    leaders = 0.0
    rest = 0.0 if b == leading.leader[p] else CHANGE
    for r in range(len(leading.load)):
        cost = more_outside(leading, r, b, 0.0, leading.weight[r, p])
        if r == 0:
            leaders += cost
        else:
            rest += cost
    row = leading.row[p]
    if row >= 0:
        over = leading.topic_leaders[row, b] - leading.topic_high[row]
        if over >= 0:
            rest += leading.topic_weight * (2 * over + 1)
    return leaders, rest


@inlined
def cost_of_failover(leading, p):
    """How much more survivors would inherit above their limits with a partition that is counted nowhere now.

    What was inherited before is above its limit or not, whoever inherits this one: only what comes on top counts.
    """
    cost = 0.0
    if len(leading.fail_weight):
        leader = leading.broker[leading.offsets[p]]
        next_one, next_rack, rack = heir(leading, p, False), heir(leading, p, True), leading.rack[leader]
        for r in range(len(leading.fail_weight)):
            if next_one >= 0:
                most = limit(leading, r, leader, next_one, leading.high[r, next_one])
                over = leading.inherited[leader, next_one, r] - most
                cost += leading.fail_weight[r] * excess(over, leading.weight[r, p], leading.fail_unit[r, next_one])
            if next_rack >= 0 and rack >= 0:
                most = limit_by_rack(leading, r, rack, next_rack, leading.high[r, next_rack])
                over = leading.inherited_by_rack[r, rack, next_rack] - most
                cost += leading.fail_weight[r] * excess(over, leading.weight[r, p], leading.fail_unit[r, next_rack])
    return cost


@inlined
def limit(leading, r, dead, survivor, has):
    """The most that a survivor may inherit from a broker: what it may have then, less what it has."""
    return max(leading.least[r, dead], leading.growth[r, dead] * leading.part[r, survivor] - has)


@inlined
def limit_by_rack(leading, r, rack, survivor, has):
    """The same from a rack."""
    return max(leading.least_by_rack[r, rack], leading.growth_by_rack[r, rack] * leading.part[r, survivor] - has)


@inlined
def is_calm(leading, p, first):
    """Whether no other order of a list is worth a change: it costs no less than this one does, as all others are.

    Another order costs nothing at best; with another leader it costs the change, and gains where one leads too few.
    Loads count from the first one on that is given: in a swap, numbers of leaders stay.
    """
    begin, end = leading.offsets[p], leading.offsets[p + 1]
    leader, row = leading.broker[begin], leading.row[p]
    led, inherited, outside_now = 0.0, 0.0, 0.0
    for r in range(first, len(leading.load)):
        led += more_outside(leading, r, leader, -leading.weight[r, p], 0.0)
    if row >= 0:
        over = leading.topic_leaders[row, leader] - 1 - leading.topic_high[row]
        if over >= 0:
            led += leading.topic_weight * (2 * over + 1)
    if len(leading.fail_weight):
        next_one, next_rack, rack = heir(leading, p, False), heir(leading, p, True), leading.rack[leader]
        for r in range(len(leading.fail_weight)):
            w = leading.weight[r, p]
            if next_one >= 0:
                most = limit(leading, r, leader, next_one, leading.high[r, next_one])
                over, unit = leading.inherited[leader, next_one, r] - most, leading.fail_unit[r, next_one]
                outside_now += leading.fail_weight[r] * (max(0.0, over) * unit) ** 2
                inherited += leading.fail_weight[r] * excess(over - w, w, unit)
            if next_rack >= 0 and rack >= 0:
                most = limit_by_rack(leading, r, rack, next_rack, leading.high[r, next_rack])
                over, unit = leading.inherited_by_rack[r, rack, next_rack] - most, leading.fail_unit[r, next_rack]
                outside_now += leading.fail_weight[r] * (max(0.0, over) * unit) ** 2
                inherited += leading.fail_weight[r] * excess(over - w, w, unit)
    if outside_now > LEAST and inherited > LEAST_GAIN:
        return False
    least = CHANGE if leader == leading.leader[p] else 0.0
    if led + inherited > least:
        return False
    for slot in range(begin + 1, end if first == 0 else begin):
        gained = more_outside(leading, 0, leading.broker[slot], 0.0, leading.weight[0, p])
        if led + inherited > CHANGE + gained:
            return False
    return True


@inlined
def more_outside(leading, r, b, before, after):
    """How much more of a load is outside of its limits with so much more than now, instead of so much more."""
    return (outside(leading, r, b, after) ** 2 - outside(leading, r, b, before) ** 2) * leading.unit[r, b] ** 2


@inlined
def excess(over, w, unit):
    """How much the square of what is above a limit grows by a weight on top."""
    after, before = max(0.0, over + w) * unit, max(0.0, over) * unit
    return after * after - before * before
