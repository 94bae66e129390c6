"""The last unevenness of bytes where sizes are coarse: single moves, and swaps of two replicas.

Where there are few partitions, no sum of them may fit: then moves and swaps are tried for the broker furthest from its
share, as long as one of them brings it nearer.

Example: brokers 1 and 2 hold 6+4 and 3+3 GB, the share is 8 each. No move helps: 4 makes it 6 and 10. Swapping the 6
for a 3 makes it 7 and 9, swapping the 4 for a 3 makes it 9 and 7: either halves what is missing, and the first found is
taken.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled
from rebalance_lib.planner.compiled.moves import NOWHERE, affordable, fits, in_rack, move


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
            if z == 0 or not affordable(state, p, slot):
                continue
            own = in_rack(state, p, slot, brokers[s].rack) + 1
            for d in range(count):
                if d == s or not brokers[d].takes or share[d] <= 0 or (not over and d != worst):
                    continue
                work -= 1
                rack = brokers[d].rack
                if rack != brokers[s].rack and in_rack(state, p, slot, rack) + 1 > own:
                    continue
                off = max(
                    abs((brokers[s].bytes - slots[slot].bytes) / share[s] - 1),
                    abs((brokers[d].bytes + z) / share[d] - 1),
                )
                if off < best and fits(state, p, d, False):
                    best, best_slot, best_target, best_other = off, slot, d, -1
        if best_slot < 0:
            for slot in range(len(slots)):
                p = partition[slot]
                if slots[slot].broker != worst or not partitions[p].movable or not brokers[worst].gives:
                    continue
                if not affordable(state, p, slot) or not brokers[worst].takes:
                    continue
                own = in_rack(state, p, slot, brokers[worst].rack) + 1
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
                    if off >= best or not affordable(state, q, other):
                        continue
                    if state.budget[0] < partitions[p].size + partitions[q].size or state.budget[1] < 2:
                        continue
                    if brokers[d].rack != brokers[worst].rack:
                        if in_rack(state, p, slot, brokers[d].rack) + 1 > own:
                            continue
                        own_other = in_rack(state, q, other, brokers[d].rack) + 1
                        if in_rack(state, q, other, brokers[worst].rack) + 1 > own_other:
                            continue
                    if fits(state, p, d, False) and fits(state, q, worst, False):
                        best, best_slot, best_target, best_other = off, slot, d, other
        if best_slot < 0:
            given_up[worst] = True
            continue
        source = slots[best_slot].broker
        move(state, partition[best_slot], best_slot, best_target)
        moved += 1
        if best_other >= 0:
            move(state, partition[best_other], best_other, source)
            moved += 1
        given_up[source] = False
        given_up[best_target] = False
    return moved
