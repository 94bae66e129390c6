"""Traffic out of leaders evened out by swaps: two brokers each hand one partition to the other.

A leader sends what is written to its followers and its readers, so what goes out of a broker follows from which
partitions it leads. Numbers of leaders are even by now and stay so: a busy partition goes from a broker that sends too
much to a follower that sends little, which hands back a quiet one.

Example: broker 1 leads partitions of 9 and 1 MB/s, broker 2 of 2 and 2, all with replicas on both. The share is 7 each.
Broker 1 hands over the 9 and is handed a 2: now they send 3 and 11, which is worse. With the 1 for a 2 it is no better
either: 11 and 3. Nothing is done. With 5 and 5 against 2 and 2, one swap makes it 7 and 7.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NONE = -1


@njit(cache=True)
def swap_leaders(offsets, broker, leads, movable, may_lead, rate, high, load, work):
    """Swap leaders until no swap brings a broker above its band down; returns how many were swapped."""
    size = len(load)
    order = np.argsort(-rate)
    first = np.full(size, NONE, np.int64)
    after = np.full(len(leads), NONE, np.int64)
    # Lists by leader, the busiest partition first.
    for place in range(len(order) - 1, -1, -1):
        p = order[place]
        if movable[p] and leads[p] >= 0:
            after[p] = first[leads[p]]
            first[leads[p]] = p
    swaps = 0
    for s in np.argsort(-load):
        p = first[s]
        while p != NONE and load[s] > high[s] and work > 0:
            following = after[p]
            d, q = best_swap(offsets, broker, leads, may_lead, rate, high, load, first, after, s, p)
            work -= 1
            if q != NONE:
                difference = rate[p] - rate[q]
                load[s] -= difference
                load[d] += difference
                unlink(first, after, s, p)
                unlink(first, after, d, q)
                leads[p], leads[q] = d, s
                swaps += 1
            p = following
    return swaps


@njit(cache=True)
def best_swap(offsets, broker, leads, may_lead, rate, high, load, first, after, s, p):
    """The follower of p that sends the least, and its busiest partition that makes the swap worth it; NONE if none."""
    best = NONE
    for slot in range(offsets[p], offsets[p + 1]):
        d = broker[slot]
        if d >= 0 and d != s and may_lead[d] and (best == NONE or load[d] < load[best]):
            best = d
    if best == NONE:
        return NONE, NONE
    q = first[best]
    looked = 0
    while q != NONE and looked < 1000:
        looked += 1
        difference = rate[p] - rate[q]
        if difference > 0 and load[best] + difference <= max(high[best], load[s] - difference):
            for slot in range(offsets[q], offsets[q + 1]):
                if broker[slot] == s:
                    return best, q
        q = after[q]
    return NONE, NONE


@njit(cache=True)
def unlink(first, after, b, p):
    """Take partition p out of the list of broker b: it has changed hands once, and does not again."""
    if first[b] == p:
        first[b] = after[p]
        return
    at = first[b]
    while at != NONE and after[at] != p:
        at = after[at]
    if at != NONE:
        after[at] = after[p]
