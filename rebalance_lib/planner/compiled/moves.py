"""What the compiled parts of the planner share: records, the rules of a single move, and lists by broker.

Rules that no move breaks: a partition's replicas are on distinct brokers; only brokers that may take get replicas; no
log dir is filled past its limit; a partition's racks are never shared worse than before. The last one comes down to one
comparison. Let a replica leave a rack that holds ``own`` replicas of its partition, itself included, for a rack that
holds ``others``: the move is fair if ``others + 1 <= own``. It can then neither fill a rack beyond the fullest one
before nor leave the partition in fewer racks. A partition is repaired while a move with ``others + 1 < own`` is
possible.

Example: three replicas in racks a, a and b. One of those in a may go to b (1 + 1 <= 2: two in b, one in a, as good as
before) and better to c (0 + 1 < 2: one in each). The one in b may go to c (0 + 1 <= 1), not to a (2 + 1 > 1).

Records rather than an array for each field: a replica that is looked at is then one place in memory, not five. All
functions change their arrays in place and are deterministic. Compiled code is cached by file: after an edit here,
remove the caches of the files that import this one (``make clean`` does).
"""

from __future__ import annotations

import numpy as np
from numba import njit

NOWHERE = -1
SCAN_LIMIT = 128  # receivers looked at first for one replica, beginning at a place that rotates

PARTITION = np.dtype(
    [
        ("begin", np.int64),  # its first slot; the record behind the last partition has the end of all slots
        ("size", np.int64),  # what a new replica will occupy
        ("row", np.int32),  # of its topic in `held`; -1 for none
        ("limit", np.int32),  # how many replicas of its topic a broker may hold before others are preferred
        ("leader", np.int32),  # who leads at the start; -1 for none
        ("movable", np.uint8),
    ],
    align=True,
)
SLOT = np.dtype(
    [
        ("bytes", np.int64),  # what the replica occupies
        ("broker", np.int32),  # where it is; -1 if a broker is still to be found
        ("home", np.int32),  # where it was at the start
        ("log_dir", np.int32),  # where on the broker, counted over all log dirs; -1 if not known
        ("marked", np.uint8),  # is about to leave
    ],
    align=True,
)
LISTED = np.dtype(
    [
        ("slot", np.int64),
        ("bytes", np.int64),
        ("partition", np.int32),
        ("leads", np.uint8),  # its broker leads the partition
        ("at_home", np.uint8),  # it was on this broker at the start
        ("marked", np.uint8),
    ],
    align=True,
)
BROKER = np.dtype(
    [
        ("bytes", np.int64),
        ("replicas", np.int64),
        ("leads", np.int64),  # replicas that lead at the start and are still here
        ("rack", np.int32),
        ("first_dir", np.int32),  # of its log dirs; the record behind the last broker has the number of all
        ("takes", np.uint8),
        ("gives", np.uint8),
        ("leaves", np.uint8),  # must be emptied
    ],
    align=True,
)


@njit(cache=True)
def fits(partitions, slots, brokers, free, held, p, d, strict):
    """Whether partition p may get a replica on broker d, racks aside."""
    for other in range(partitions[p].begin, partitions[p + 1].begin):
        if slots[other].broker == d:
            return False
    if strict:
        row = partitions[p].row
        if row >= 0 and held[row, d] >= partitions[p].limit:
            return False
    size = partitions[p].size
    for log_dir in range(brokers[d].first_dir, brokers[d + 1].first_dir):
        if free[log_dir] >= size:
            return True
    return brokers[d].first_dir == brokers[d + 1].first_dir


@njit(cache=True)
def in_rack(partitions, slots, brokers, p, slot, rack):
    """How many replicas of p other than the slot's are in a rack."""
    count = 0
    for other in range(partitions[p].begin, partitions[p + 1].begin):
        if other != slot:
            b = slots[other].broker
            if b >= 0 and brokers[b].rack == rack:
                count += 1
    return count


@njit(cache=True)
def affordable(partitions, slots, left, p, slot):
    """Whether the budgets allow this replica to leave."""
    if slots[slot].broker != slots[slot].home:
        return True
    return left[0] >= partitions[p].size and left[1] >= 1


@njit(cache=True)
def move(partitions, slots, brokers, free, held, left, p, slot, d):
    """Put a slot's replica on broker d."""
    s = slots[slot].broker
    row = partitions[p].row
    if s >= 0:
        brokers[s].bytes -= slots[slot].bytes
        brokers[s].replicas -= 1
        if partitions[p].leader == s:
            brokers[s].leads -= 1
        if slots[slot].log_dir >= 0:
            free[slots[slot].log_dir] += slots[slot].bytes
        if row >= 0:
            held[row, s] -= 1
    if s == slots[slot].home:
        left[0] -= partitions[p].size
        left[1] -= 1
    best = -1
    for log_dir in range(brokers[d].first_dir, brokers[d + 1].first_dir):
        if best < 0 or free[log_dir] > free[best]:
            best = log_dir
    if best >= 0:
        free[best] -= partitions[p].size
    slots[slot].log_dir = best
    slots[slot].bytes = partitions[p].size
    slots[slot].broker = d
    brokers[d].bytes += partitions[p].size
    brokers[d].replicas += 1
    if partitions[p].leader == d:
        brokers[d].leads += 1
    if row >= 0:
        held[row, d] += 1


@njit(cache=True)
def best_in(partitions, slots, brokers, free, held, receivers, start, end, lack, p, least, turn, limit):
    """The receiver in a stretch of the list that lacks the most, if more than `least`; those full of the topic last.

    At most `limit` of them are looked at.
    """
    count = end - start
    if count <= 0:
        return NOWHERE
    looked = min(count, limit)
    first = start if looked == count else start + turn % count
    for strict in (False, True, False):
        # Most brokers are not full of the topic, and looking it up costs more than all the rest: first without.
        best = NOWHERE
        most = least
        for step in range(looked):
            at = first + step
            if at >= end:
                at -= count
            d = receivers[at]
            if lack[d] > most and fits(partitions, slots, brokers, free, held, p, d, strict):
                best = d
                most = lack[d]
        row = partitions[p].row
        if best != NOWHERE and (strict or row < 0 or held[row, best] < partitions[p].limit):
            return best
        if best == NOWHERE and not strict:
            return NOWHERE
    return best


@njit(cache=True)
def best_of(partitions, slots, brokers, free, held, receivers, begins, counts, fewest, most, lack, p, least, turn):
    """The best receiver in racks with so many replicas of p, for a replica that shall move if it can at all.

    It is looked for among some of each rack first, and only if none of them will do among all.
    """
    for limit in (SCAN_LIMIT, len(receivers)):
        target = NOWHERE
        lacking = least
        for rack in range(len(counts)):
            if fewest <= counts[rack] <= most:
                start, end = begins[rack], begins[rack + 1]
                d = best_in(
                    partitions, slots, brokers, free, held, receivers, start, end, lack, p, lacking, turn, limit
                )
                if d != NOWHERE:
                    target = d
                    lacking = lack[d]
        if target != NOWHERE or len(receivers) <= SCAN_LIMIT:
            break
    return target


@njit(cache=True)
def receivers_by_rack(brokers, racks, takes):
    """The brokers that take, rack by rack, and where each rack begins in the list."""
    begins = np.zeros(racks + 1, np.int64)
    for b in range(len(takes)):
        if takes[b]:
            begins[brokers[b].rack + 1] += 1
    for rack in range(racks):
        begins[rack + 1] += begins[rack]
    receivers = np.empty(begins[-1], np.int32)
    at = begins.copy()
    for b in range(len(takes)):
        if takes[b]:
            receivers[at[brokers[b].rack]] = b
            at[brokers[b].rack] += 1
    return receivers, begins


@njit(cache=True)
def slots_by_broker(partitions, slots, givers, order):
    """The movable slots of each giver, in the order given, and where each giver's begin."""
    begins = np.zeros(len(givers) + 1, np.int64)
    for p in range(len(partitions) - 1):
        if partitions[p].movable:
            for slot in range(partitions[p].begin, partitions[p + 1].begin):
                b = slots[slot].broker
                if b >= 0 and givers[b]:
                    begins[b + 1] += 1
    for b in range(len(givers)):
        begins[b + 1] += begins[b]
    listed = np.zeros(begins[-1], LISTED)
    at = begins.copy()
    if begins[-1] * 4 > len(slots):
        for p in order:
            if partitions[p].movable:
                for slot in range(partitions[p].begin, partitions[p + 1].begin):
                    b = slots[slot].broker
                    if b >= 0 and givers[b]:
                        enter(partitions, slots, listed, at, b, p, slot)
        return listed, begins
    # Of a few brokers: their slots one after another, then sorted, rather than all partitions in their order.
    rank = np.empty(len(order), np.int32)
    for place in range(len(order)):
        rank[order[place]] = place
    for p in range(len(partitions) - 1):
        if partitions[p].movable:
            for slot in range(partitions[p].begin, partitions[p + 1].begin):
                b = slots[slot].broker
                if b >= 0 and givers[b]:
                    enter(partitions, slots, listed, at, b, p, slot)
    for b in range(len(givers)):
        if givers[b]:
            mine = listed[begins[b] : begins[b + 1]].copy()
            places = np.argsort(rank[mine["partition"]])
            for place in range(len(mine)):
                listed[begins[b] + place] = mine[places[place]]
    return listed, begins


@njit(cache=True)
def enter(partitions, slots, listed, at, b, p, slot):
    """Write a slot into the list of its broker."""
    listed[at[b]].slot = slot
    listed[at[b]].partition = p
    listed[at[b]].bytes = slots[slot].bytes
    listed[at[b]].leads = partitions[p].leader == b
    listed[at[b]].at_home = slots[slot].home == b
    at[b] += 1
