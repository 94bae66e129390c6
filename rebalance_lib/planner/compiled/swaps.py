"""Two brokers each hand a partition to the other, where handing over one alone helps nobody, see ``compiled.order``.

Numbers of leaders stay as they are by it. It is for small clusters: all pairs of some partitions are looked at.

Example: broker 1 leads two partitions of 10 MB/s, broker 2 two of 2 MB/s, and 12 MB/s is the share of each. If 1 hands
one over alone, it leads one and 2 leads three; if it takes one of 2 MB/s in return, both lead two and send 12 MB/s.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined
from rebalance_lib.planner.compiled.order import (
    CHANGE,
    LEAST,
    LEAST_GAIN,
    cost_of_failover,
    cost_of_leader,
    more_outside,
    swap,
    take,
)

PASSED = 8  # partitions that a follower leads are passed by for each that may be swapped


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
        if not leading.movable[p] or not harms(leading, p):
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
def harms(leading, p):
    """Whether a list, as it is ordered, costs more than another leader does; numbers of leaders stay in a swap."""
    _, rest = cost_of_leader(leading, p, leading.broker[leading.offsets[p]], 1.0)
    survivors, outside_now = cost_of_failover(leading, p, 1.0)
    return rest + survivors > CHANGE or (outside_now > LEAST and survivors > LEAST_GAIN)


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
    leaders, rest = cost_of_leader(leading, p, leading.broker[leading.offsets[p]], 0.0)
    return leaders + rest + cost_of_failover(leading, p, 0.0)[0]
