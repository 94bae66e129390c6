"""The last unevenness of bytes where sizes are coarse: single moves, and swaps of two replicas.

Where there are few partitions, no sum of them may fit: then moves and swaps are tried for the broker furthest from its
share, as long as one of them brings it nearer. The best one is taken, of equal ones that of the first slots.

A swap must bring both brokers nearer to their shares than the best one found so far. For each replica of the broker and
each other broker, that leaves an interval of sizes, which is looked up among the replicas of the other by size: of the
30 million pairs of a cluster of 10,000 partitions, a few thousand are weighed. What is counted are the pairs.

Example: brokers 1 and 2 hold 6+4 and 3+3 GB, the share is 8 each. No move helps: 4 makes it 6 and 10. Swapping the 6
for a 3 makes it 7 and 9, swapping the 4 for a 3 makes it 9 and 7: either halves what is missing, and the first found is
taken.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined
from rebalance_lib.planner.compiled.moves import NOWHERE, affordable, fits, in_rack, move

ROUNDING = 1e-9  # of a broker's bytes: an interval of sizes is wider by it than what sums of floats can be off


@compiled
def polish(state, share, tolerance, steps, work):
    """Single moves and swaps that bring the broker furthest from its share nearer, where sizes are coarse.

    Each one lowers the larger deviation of the two brokers it touches; returns how many replicas moved.
    """
    partitions, slots, brokers = state.partitions, state.slots, state.brokers
    count = len(share)
    partition = np.empty(len(slots), np.int32)
    for p in range(len(partitions) - 1):
        partition[partitions[p].begin : partitions[p + 1].begin] = p
    by_size = np.empty(0, np.int64)  # sorted once it is needed
    given_up = np.zeros(count, np.bool_)
    moved = 0
    for _ in range(steps):
        worst, deviation = -1, tolerance
        for b in range(count):
            if share[b] > 0 and not given_up[b]:
                off = abs(brokers[b].bytes / share[b] - 1)
                if off > deviation:
                    worst, deviation = b, off
        if worst < 0 or work <= 0:
            break
        best = deviation * 0.999
        slot, target, looked = best_move(state, share, partition, worst, best)
        work -= looked
        other = -1
        if slot < 0:
            if not len(by_size):
                by_size = np.argsort(partitions["size"][:-1].copy(), kind="mergesort")
            slot, other, looked = best_swap(state, share, partition, by_size, worst, best)
            work -= looked
        if slot < 0:
            given_up[worst] = True
            continue
        source = slots[slot].broker
        if other >= 0:
            target = slots[other].broker
        move(state, partition[slot], slot, target)
        moved += 1
        if other >= 0:
            move(state, partition[other], other, source)
            moved += 1
        given_up[source] = False
        given_up[target] = False
    return moved


@compiled
def best_move(state, share, partition, worst, best):
    """The slot whose replica had best move, where to, and how many moves were looked at; -1 for no slot."""
    partitions, slots, brokers = state.partitions, state.slots, state.brokers
    over = brokers[worst].bytes > share[worst]
    first, last = (0, len(share)) if over else (worst, worst + 1)
    best_slot, best_target, looked = -1, NOWHERE, 0
    for slot in range(len(slots)):
        s = slots[slot].broker
        if s < 0 or over != (s == worst) or not brokers[s].gives or share[s] <= 0:
            continue
        p = partition[slot]
        z = partitions[p].size
        if z == 0 or not partitions[p].movable or not affordable(state, p, slot):
            continue
        without = abs((brokers[s].bytes - slots[slot].bytes) / share[s] - 1)
        for d in range(first, last):
            if d == s or not brokers[d].takes or share[d] <= 0:
                continue
            looked += 1
            if without >= best:
                continue
            off = max(without, abs((brokers[d].bytes + z) / share[d] - 1))
            # Hardly any brings both nearer: what takes longer to find out comes last.
            if off < best and keeps_racks(state, p, slot, d) and fits(state, p, d, False):
                best, best_slot, best_target = off, slot, d
    return best_slot, best_target, looked


@inlined
def keeps_racks(state, p, slot, d):
    """Whether the racks of p are shared no worse with a slot's replica on broker d."""
    rack, own = state.brokers[d].rack, state.brokers[state.slots[slot].broker].rack
    return rack == own or in_rack(state, p, slot, rack) <= in_rack(state, p, slot, own)


@compiled
def best_swap(state, share, partition, by_size, worst, best):
    """The slot of the broker whose replica had best be swapped, with which, and how many pairs there are; -1 for none.

    A swap of replicas of sizes p and q changes the broker by ``q - p``, and the other one by as much the other way.
    """
    partitions, slots, brokers = state.partitions, state.slots, state.brokers
    best_slot, best_other, looked = -1, -1, 0
    if not brokers[worst].gives or not brokers[worst].takes:
        return best_slot, best_other, looked
    over = brokers[worst].bytes > share[worst]
    listed, begins = np.empty(0, np.int64), np.empty(0, np.int64)
    for slot in range(len(slots)):
        p = partition[slot]
        if slots[slot].broker != worst or not partitions[p].movable or not affordable(state, p, slot):
            continue
        looked += len(slots)
        size = partitions[p].size
        # Both are paid for, also where one of them would not be copied anew.
        left = state.budget[0] - 2 * size
        if state.budget[1] < 2 or state.budget[0] < size:
            continue
        if not len(begins):
            listed, begins = swappable(state, share, by_size, worst)
        for d in range(len(share)):
            begin, end = begins[d], begins[d + 1]
            if begin == end:
                continue
            margin = 1 + ROUNDING * (brokers[worst].bytes + share[worst] + brokers[d].bytes + share[d])
            least = max(share[worst] * (1 - best) - brokers[worst].bytes, brokers[d].bytes - share[d] * (1 + best))
            most = min(share[worst] * (1 + best) - brokers[worst].bytes, brokers[d].bytes - share[d] * (1 - best))
            if over:
                most = min(most, 0.0)
            else:
                least = max(least, 0.0)
            least, most = least - margin, min(most, float(left)) + margin
            while begin < end:  # the first that is large enough
                middle = (begin + end) // 2
                if partitions[partition[listed[middle]]].size - size < least:
                    begin = middle + 1
                else:
                    end = middle
            for place in range(begin, begins[d + 1]):
                other = listed[place]
                q = partition[other]
                change = partitions[q].size - size
                if change > most:
                    break
                if q == p or (change < 0) != over or change > left:
                    continue
                off = max(
                    abs((brokers[worst].bytes + change) / share[worst] - 1),
                    abs((brokers[d].bytes - change) / share[d] - 1),
                )
                # Of equal ones, the first slot in the order of all slots.
                if off > best or (off == best and (best_slot != slot or other > best_other)):
                    continue
                if not affordable(state, q, other):
                    continue
                if not keeps_racks(state, p, slot, d) or not keeps_racks(state, q, other, worst):
                    continue
                if fits(state, p, d, False) and fits(state, q, worst, False):
                    best, best_slot, best_other = off, slot, other
    return best_slot, best_other, looked


@compiled
def swappable(state, share, by_size, worst):
    """The slots of each other broker that may be swapped, from the smallest on, and where each broker's begin."""
    partitions, slots, brokers = state.partitions, state.slots, state.brokers
    open_to = np.zeros(len(share), np.bool_)
    for d in range(len(share)):
        open_to[d] = d != worst and share[d] > 0 and brokers[d].takes and brokers[d].gives
    begins = np.zeros(len(share) + 1, np.int64)
    for p in by_size:
        if partitions[p].movable:
            for slot in range(partitions[p].begin, partitions[p + 1].begin):
                d = slots[slot].broker
                if d >= 0 and open_to[d]:
                    begins[d + 1] += 1
    for d in range(len(share)):
        begins[d + 1] += begins[d]
    at = begins.copy()
    listed = np.empty(begins[-1], np.int64)
    for p in by_size:
        if partitions[p].movable:
            for slot in range(partitions[p].begin, partitions[p + 1].begin):
                d = slots[slot].broker
                if d >= 0 and open_to[d]:
                    listed[at[d]] = slot
                    at[d] += 1
    return listed, begins
