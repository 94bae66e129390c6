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
AHEAD = 16  # lists read at once: a million of `half` on 1,500 brokers take 0.69 s instead of 1.10, of `full` 0.56, 0.64
LEAST = 0.01  # of a squared tolerance: what survivors may inherit too much of without a change of followers
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
    for b in range(len(leading.base)):
        for load in range(leading.base.shape[1]):
            leading.load[b, load] = leading.base[b, load]
    leading.topic_leaders[:] = 0
    leading.inherited[:] = 0
    leading.inherited_by_rack[:] = 0
    for p in range(len(leading.movable)):
        if leading.offsets[p] < leading.offsets[p + 1] and leading.broker[leading.offsets[p]] >= 0:
            take(leading, p, 1.0)


@compiled
def order_replicas(leading, passes, strict):
    """Change the order of lists until no change helps, or so many passes are over; returns how many changed."""
    changes, longest, total = 0, 0, len(leading.movable)
    for p in range(total):
        longest = max(longest, leading.offsets[p + 1] - leading.offsets[p])
    costs = np.empty(longest), np.empty(longest)  # by place in the list: what it costs if that one leads
    for _ in range(passes):
        changed = sweep(leading, costs, strict)
        changes += changed
        if not changed:
            break
    return changes


@inlined
def sweep(leading, costs, strict):
    """Look at each list once; returns how many changed."""
    changes, total, touched = 0, len(leading.movable), 0.0
    for p in range(total):
        if p % AHEAD == 0:
            touched += read_ahead(leading, p, min(p + AHEAD, total))
        if leading.movable[p]:
            changes += reorder(leading, p, costs, strict)
    return changes if touched >= 0.0 else 0


@inlined
def read_ahead(leading, first, end):
    """Read all that lists are judged by: from large tables many at once take little longer than one."""
    touched = 0.0
    for p in range(first, end):
        row = leading.row[p]
        for slot in range(leading.offsets[p], leading.offsets[p + 1]):
            b = leading.broker[slot]
            if row >= 0:
                touched += leading.topic_leaders[row, b]
            if len(leading.fail_weight):
                for other in range(leading.offsets[p], leading.offsets[p + 1]):
                    touched += leading.inherited[b, leading.broker[other], 0]
    return touched


@inlined
def reorder(leading, p, costs, strict):
    """Let two replicas of a list change places where that gains the most; whether any do.

    Most lists are left alone before all is counted: those that cost no more than another leader does, unless one leads
    too few, and those of which no other leader costs less, since an order costs what its leader costs at least.
    """
    begin, end = leading.offsets[p], leading.offsets[p + 1]
    leaders, rest = costs
    leaders[0], rest[0] = cost_of_leader(leading, p, leading.broker[begin], 1.0)
    survivors, outside_now = cost_of_failover(leading, p, 1.0)
    best, best_first, best_second = leaders[0] + rest[0] + survivors, -1, -1
    margin = LEAST_GAIN * (1 + abs(best))
    others, leads = survivors > margin, False
    for slot in range(begin + 1, end):
        leads |= leading.load[0, leading.broker[slot]] < leading.low[0, leading.broker[slot]]
    if not leads and best <= CHANGE and not (others and outside_now > LEAST):
        return False
    leads = False
    for slot in range(begin + 1, end):
        at = slot - begin
        leaders[at], rest[at] = cost_of_leader(leading, p, leading.broker[slot], 0.0)
        if not leading.may_lead[slot] or (strict and leaders[at] > leaders[0] + margin):
            leaders[at] = np.inf
        leads |= leaders[at] + rest[at] < best - margin
    if not leads and not others:
        return False
    take(leading, p, -1.0)
    for first in range(begin, min(begin + 2, end)):
        if not (leads if first == begin else others):
            continue
        for second in range(first + 1, end):
            at = second - begin if first == begin else 0
            least = leaders[at] + rest[at]
            if least >= best - margin or (at and exceeds(leading, p, leading.broker[second])):
                continue
            swap(leading, first, second)
            found = least + cost_of_failover(leading, p, 0.0)[0]
            swap(leading, first, second)
            if found < best - margin:
                best, best_first, best_second = found, first, second
    if best_first >= 0:
        swap(leading, best_first, best_second)
    take(leading, p, 1.0)
    return best_first >= 0


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
def cost_of_leader(leading, p, b, counted):
    """How much more is outside of limits if a broker leads a partition than if nobody does: leaders, the rest.

    The partition is `counted` as led by the broker now, 1, or not, 0.
    """
    leaders = 0.0
    rest = 0.0 if b == leading.leader[p] else CHANGE
    for r in range(len(leading.load)):
        w = leading.weight[r, p]
        cost = more_outside(leading, r, b, -counted * w, (1.0 - counted) * w)
        if r == 0:
            leaders += cost
        else:
            rest += cost
    row = leading.row[p]
    if row >= 0:
        over = leading.topic_leaders[row, b] - counted - leading.topic_high[row]
        if over >= 0:
            rest += leading.topic_weight * (2 * over + 1)
    return leaders, rest


@inlined
def cost_of_failover(leading, p, counted):
    """How much more survivors would inherit above their limits with a partition, as its list is ordered, than without.

    The partition is `counted` now, 1, or not, 0. What was inherited before is above its limit or not, whoever inherits
    this one: only what comes on top counts. The second answer is all that they inherit above their limits now.
    """
    cost, outside_now = 0.0, 0.0
    if len(leading.fail_weight):
        leader = leading.broker[leading.offsets[p]]
        next_one, next_rack, rack = heir(leading, p, False), heir(leading, p, True), leading.rack[leader]
        for r in range(len(leading.fail_weight)):
            w, counts = leading.weight[r, p], leading.fail_weight[r]
            if next_one >= 0:
                most = limit(leading, r, leader, next_one, leading.high[r, next_one])
                over, unit = leading.inherited[leader, next_one, r] - most, leading.fail_unit[r, next_one]
                cost += counts * (excess(over + (1.0 - counted) * w, unit) - excess(over - counted * w, unit))
                outside_now += counts * excess(over, unit)
            if next_rack >= 0 and rack >= 0:
                most = limit_by_rack(leading, r, rack, next_rack, leading.high[r, next_rack])
                over, unit = leading.inherited_by_rack[r, rack, next_rack] - most, leading.fail_unit[r, next_rack]
                cost += counts * (excess(over + (1.0 - counted) * w, unit) - excess(over - counted * w, unit))
                outside_now += counts * excess(over, unit)
    return cost, outside_now


@inlined
def limit(leading, r, dead, survivor, has):
    """The most that a survivor may inherit from a broker: what it may have then, less what it has."""
    return max(leading.least[r, dead], leading.growth[r, dead] * leading.part[r, survivor] - has)


@inlined
def limit_by_rack(leading, r, rack, survivor, has):
    """The same from a rack."""
    return max(leading.least_by_rack[r, rack], leading.growth_by_rack[r, rack] * leading.part[r, survivor] - has)


@inlined
def more_outside(leading, r, b, before, after):
    """How much more of a load is outside of its limits with so much more than now, instead of so much more."""
    return (outside(leading, r, b, after) ** 2 - outside(leading, r, b, before) ** 2) * leading.unit[r, b] ** 2


@inlined
def excess(over, unit):
    """What is above a limit, squared, in units."""
    return (max(0.0, over) * unit) ** 2
