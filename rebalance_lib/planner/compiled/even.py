"""Second loads evened out, and the last unevenness where sizes are coarse.

Numbers of replicas and rates come after bytes: they are brought within their bands by moves that leave the loads before
them within theirs. Replicas that carry much of the second load in few bytes go first: for numbers, the smallest ones.

Where there are few partitions, no sum of them may fit: then single moves, and swaps of two replicas, are tried for the
broker furthest from its share, as long as one of them brings it nearer.

Example: brokers 1 and 2 hold 6+4 and 3+3 GB, the share is 8 each. No move helps: 4 makes it 6 and 10. Swapping the 6
for a 3 makes it 7 and 9, swapping the 4 for a 3 makes it 9 and 7: either halves what is missing, and the first found is
taken.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from rebalance_lib.planner.compiled.moves import (
    NOWHERE,
    affordable,
    fits,
    in_rack,
    move,
    receivers_by_rack,
    slots_by_broker,
)


@njit(cache=True)
def even_out(
    partitions,
    slots,
    brokers,
    free,
    held,
    left,
    racks,
    order,
    weight,
    load,
    low,
    high,
    low_bytes,
    high_bytes,
    low_count,
    high_count,
    leaders,
):
    """Bring a second load within its band by moves that leave bytes, and counts, within theirs.

    `order` has those partitions first whose replicas carry much of that load in few bytes. Brokers above their band
    give to whom lacks the most, then brokers below theirs take from whom can spare it.
    """
    count = len(load)
    moved = 0
    for turn in range(2):
        givers = np.zeros(count, np.uint8)
        takers = np.zeros(count, np.uint8)
        floor = np.empty(count, np.float64)
        lack = np.empty(count, np.float64)
        for b in range(count):
            middle = (low[b] + high[b]) / 2
            floor[b] = high[b] if turn == 0 else middle
            lack[b] = (middle if turn == 0 else low[b]) - load[b]
            givers[b] = load[b] > floor[b] and brokers[b].gives > 0
            takers[b] = lack[b] > 0 and brokers[b].takes > 0
        if givers.sum() == 0 or takers.sum() == 0:
            continue
        receivers, begins = receivers_by_rack(brokers, racks, takers)
        listed, list_begins = slots_by_broker(partitions, slots, givers, order)
        for s in range(count):
            if not givers[s]:
                continue
            for at in range(list_begins[s], list_begins[s + 1]):
                if load[s] <= floor[s]:
                    break
                slot, p = listed[at].slot, listed[at].partition
                size, w = partitions[p].size, weight[p]
                if w <= 0 or w > 2 * (load[s] - floor[s]) + 1 or not affordable(partitions, slots, left, p, slot):
                    continue
                if brokers[s].bytes - slots[slot].bytes < low_bytes[s] or brokers[s].replicas - 1 < low_count[s]:
                    continue
                if partitions[p].leader == s and brokers[s].leads <= leaders[s]:
                    continue
                own = in_rack(partitions, slots, brokers, p, slot, brokers[s].rack) + 1
                target = NOWHERE
                most = w / 2
                for rack in range(racks):
                    if begins[rack] == begins[rack + 1]:
                        continue
                    if rack != brokers[s].rack and in_rack(partitions, slots, brokers, p, slot, rack) + 1 > own:
                        continue
                    for i in range(begins[rack], begins[rack + 1]):
                        d = receivers[i]
                        if (
                            lack[d] > most
                            and brokers[d].bytes + size <= high_bytes[d]
                            and brokers[d].replicas + 1 <= high_count[d]
                            and fits(partitions, slots, brokers, free, held, p, d, True)
                        ):
                            target = d
                            most = lack[d]
                if target == NOWHERE:
                    continue
                move(partitions, slots, brokers, free, held, left, p, slot, target)
                load[s] -= w
                load[target] += w
                lack[target] -= w
                moved += 1
    return moved


@njit(cache=True)
def polish(partitions, slots, brokers, free, held, left, racks, share, tolerance, steps, work):
    """Single moves and swaps that bring the broker furthest from its share nearer, where sizes are coarse.

    Each one lowers the larger deviation of the two brokers it touches; returns how many replicas moved.
    """
    count = len(share)
    partition = np.empty(len(slots), np.int32)
    for p in range(len(partitions) - 1):
        partition[partitions[p].begin : partitions[p + 1].begin] = p
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
        over = brokers[worst].bytes > share[worst]
        best, best_slot, best_target, best_other = deviation * 0.999, -1, NOWHERE, -1
        for slot in range(len(slots)):
            s, p = slots[slot].broker, partition[slot]
            if s < 0 or not partitions[p].movable or not brokers[s].gives or share[s] <= 0 or (over != (s == worst)):
                continue
            z = partitions[p].size
            if z == 0 or not affordable(partitions, slots, left, p, slot):
                continue
            own = in_rack(partitions, slots, brokers, p, slot, brokers[s].rack) + 1
            for d in range(count):
                if d == s or not brokers[d].takes or share[d] <= 0 or (not over and d != worst):
                    continue
                work -= 1
                rack = brokers[d].rack
                if rack != brokers[s].rack and in_rack(partitions, slots, brokers, p, slot, rack) + 1 > own:
                    continue
                off = max(
                    abs((brokers[s].bytes - slots[slot].bytes) / share[s] - 1),
                    abs((brokers[d].bytes + z) / share[d] - 1),
                )
                if off < best and fits(partitions, slots, brokers, free, held, p, d, False):
                    best, best_slot, best_target, best_other = off, slot, d, -1
        if best_slot < 0:
            for slot in range(len(slots)):
                p = partition[slot]
                if slots[slot].broker != worst or not partitions[p].movable or not brokers[worst].gives:
                    continue
                if not affordable(partitions, slots, left, p, slot) or not brokers[worst].takes:
                    continue
                own = in_rack(partitions, slots, brokers, p, slot, brokers[worst].rack) + 1
                for other in range(len(slots)):
                    d, q = slots[other].broker, partition[other]
                    work -= 1
                    if d < 0 or d == worst or q == p or not partitions[q].movable or share[d] <= 0:
                        continue
                    if (
                        not brokers[d].takes
                        or not brokers[d].gives
                        or (partitions[p].size > partitions[q].size) != over
                    ):
                        continue
                    change = partitions[q].size - partitions[p].size
                    off = max(
                        abs((brokers[worst].bytes + change) / share[worst] - 1),
                        abs((brokers[d].bytes - change) / share[d] - 1),
                    )
                    if off >= best or not affordable(partitions, slots, left, q, other):
                        continue
                    if left[0] < partitions[p].size + partitions[q].size or left[1] < 2:
                        continue
                    if brokers[d].rack != brokers[worst].rack:
                        if in_rack(partitions, slots, brokers, p, slot, brokers[d].rack) + 1 > own:
                            continue
                        own_other = in_rack(partitions, slots, brokers, q, other, brokers[d].rack) + 1
                        if in_rack(partitions, slots, brokers, q, other, brokers[worst].rack) + 1 > own_other:
                            continue
                    if fits(partitions, slots, brokers, free, held, p, d, False) and fits(
                        partitions, slots, brokers, free, held, q, worst, False
                    ):
                        best, best_slot, best_target, best_other = off, slot, d, other
        if best_slot < 0:
            given_up[worst] = True
            continue
        source = slots[best_slot].broker
        move(partitions, slots, brokers, free, held, left, partition[best_slot], best_slot, best_target)
        moved += 1
        if best_other >= 0:
            move(partitions, slots, brokers, free, held, left, partition[best_other], best_other, source)
            moved += 1
        given_up[source] = False
        given_up[best_target] = False
    return moved
