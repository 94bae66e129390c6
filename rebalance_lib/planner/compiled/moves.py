"""What the compiled parts of the planner share: records, the rules of a single move, and lists by broker.

Rules that no move breaks: a partition's replicas are on distinct brokers; only brokers that may take get replicas; no
log dir is filled past its limit; no broker is brought above its network capacity; a partition's racks are never shared
worse than before. The last one comes down to one comparison. Let a replica leave a rack that holds ``own`` replicas of
its partition, itself included, for a rack that holds ``others``: the move is fair if ``others + 1 <= own``. It can then
neither fill a rack beyond the fullest one before nor leave the partition in fewer racks. A partition is repaired while
a move with ``others + 1 < own`` is possible.

Example: three replicas in racks a, a and b. One of those in a may go to b (1 + 1 <= 2: two in b, one in a, as good as
before) and better to c (0 + 1 < 2: one in each). The one in b may go to c (0 + 1 <= 1), not to a (2 + 1 > 1).

Records rather than an array for each field: a replica that is looked at is then one place in memory, not five. All
functions change the arrays of a `State` in place and are deterministic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined, inner

NOWHERE = -1
NETWORK_IN = 2  # the third resource, where rates are known; disks have limits by log dir, numbers of replicas none
DISK = 0  # the first resource; a replica may occupy other bytes than a new one of its partition will
SCAN_LIMIT = 128  # receivers looked at first for one replica, beginning at a place that rotates

PARTITION = np.dtype(
    [
        ("begin", np.int64),  # its first slot; the record behind the last partition has the end of all slots
        ("size", np.int64),  # what a new replica will occupy
        ("row", np.int32),  # of its topic in `topic_counts`; -1 for none
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


class State(NamedTuple):
    """All that the compiled parts read and change."""

    partitions: Any  # PARTITION, with one more behind the last
    slots: Any  # SLOT
    brokers: Any  # BROKER, with one more behind the last
    free: Any  # by log dir: bytes until its limit
    topic_counts: Any  # by watched topic and broker: replicas
    budget: Any  # bytes and replicas that may still move
    racks: int  # 1 if they do not count
    weight: Any  # by resource and partition: what one replica weighs
    load: Any  # by resource and broker
    ceiling: (
        Any  # by resource and broker: what no move brings it above; infinite where that is not known, and for disks
    )


class Receivers(NamedTuple):
    """Brokers that take, rack by rack: those of rack r are begins[r] up to begins[r + 1]."""

    brokers: Any
    begins: Any


@compiled
def fits(state, p, d, strict):
    """Whether partition p may get a replica on broker d, racks aside."""
    partition = state.partitions[p]
    for other in range(partition.begin, state.partitions[p + 1].begin):
        if state.slots[other].broker == d:
            return False
    if strict and partition.row >= 0 and state.topic_counts[partition.row, d] >= partition.limit:
        return False
    for r in range(NETWORK_IN, len(state.load)):
        if state.weight[r, p] > 0 and state.load[r, d] + state.weight[r, p] > state.ceiling[r, d]:
            return False
    begin, end = state.brokers[d].first_dir, state.brokers[d + 1].first_dir
    for log_dir in range(begin, end):
        if state.free[log_dir] >= partition.size:
            return True
    return begin == end


@inlined
def in_rack(state, p, slot, rack):
    """How many replicas of p other than the slot's are in a rack."""
    count = 0
    for other in range(state.partitions[p].begin, state.partitions[p + 1].begin):
        if other != slot:
            b = state.slots[other].broker
            if b >= 0 and state.brokers[b].rack == rack:
                count += 1
    return count


@inlined
def affordable(state, p, slot):
    """Whether the budgets allow this replica to leave."""
    if state.slots[slot].broker != state.slots[slot].home:
        return True
    return state.budget[0] >= state.partitions[p].size and state.budget[1] >= 1


@inner
def move(state, p, slot, d):
    """Put a slot's replica on broker d."""
    partition, replica = state.partitions[p], state.slots[slot]
    s, row, size = replica.broker, partition.row, partition.size
    if s >= 0:
        state.brokers[s].bytes -= replica.bytes
        state.brokers[s].replicas -= 1
        if partition.leader == s:
            state.brokers[s].leads -= 1
        if replica.log_dir >= 0 and s != replica.home:  # an old copy stays until the new one is there
            state.free[replica.log_dir] += replica.bytes
        if row >= 0:
            state.topic_counts[row, s] -= 1
        state.load[DISK, s] -= replica.bytes
        for r in range(1, len(state.load)):
            state.load[r, s] -= state.weight[r, p]
    if s == replica.home:
        state.budget[0] -= size
        state.budget[1] -= 1
    best = -1
    for log_dir in range(state.brokers[d].first_dir, state.brokers[d + 1].first_dir):
        if best < 0 or state.free[log_dir] > state.free[best]:
            best = log_dir
    if best >= 0:
        state.free[best] -= size
    replica.log_dir = best
    replica.bytes = size
    replica.broker = d
    state.brokers[d].bytes += size
    state.brokers[d].replicas += 1
    if partition.leader == d:
        state.brokers[d].leads += 1
    if row >= 0:
        state.topic_counts[row, d] += 1
    for r in range(len(state.load)):
        state.load[r, d] += state.weight[r, p]


@inner
def best_in(state, receivers, rack, lack, p, least, turn, limit):
    """The receiver in a rack that lacks the most, if more than `least`; those full of the topic last.

    At most `limit` of them are looked at.
    """
    start, end = receivers.begins[rack], receivers.begins[rack + 1]
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
            d = receivers.brokers[at]
            if lack[d] > most and fits(state, p, d, strict):
                best = d
                most = lack[d]
        row = state.partitions[p].row
        if best != NOWHERE and (strict or row < 0 or state.topic_counts[row, best] < state.partitions[p].limit):
            return best
        if best == NOWHERE and not strict:
            return NOWHERE
    return best


@inner
def best_of(state, receivers, counts, fewest, most, lack, p, least, turn):
    """The best receiver in racks with so many replicas of p, for a replica that shall move if it can at all.

    It is looked for among some of each rack first, and only if none of them will do among all.
    """
    for limit in (SCAN_LIMIT, len(receivers.brokers)):
        target = NOWHERE
        lacking = least
        for rack in range(len(counts)):
            if fewest <= counts[rack] <= most:
                d = best_in(state, receivers, rack, lack, p, lacking, turn, limit)
                if d != NOWHERE:
                    target = d
                    lacking = lack[d]
        if target != NOWHERE or len(receivers.brokers) <= SCAN_LIMIT:
            break
    return target


@inner
def with_disk_space(state):
    """By broker: whether it takes, and has disk space for the smallest replica that may move."""
    smallest = np.int64(1) << 62
    for p in range(len(state.partitions) - 1):
        if state.partitions[p].movable:
            smallest = min(smallest, state.partitions[p].size)
    takes = state.brokers["takes"][:-1] > 0
    for b in range(len(takes)):
        begin, end = state.brokers[b].first_dir, state.brokers[b + 1].first_dir
        if begin < end and state.free[begin:end].max() < smallest:
            takes[b] = False
    return takes


@inner
def receivers_by_rack(state, takes):
    """The brokers that take, rack by rack."""
    begins = np.zeros(state.racks + 1, np.int64)
    for b in range(len(takes)):
        if takes[b]:
            begins[state.brokers[b].rack + 1] += 1
    for rack in range(state.racks):
        begins[rack + 1] += begins[rack]
    listed = np.empty(begins[-1], np.int32)
    at = begins.copy()
    for b in range(len(takes)):
        if takes[b]:
            rack = state.brokers[b].rack
            listed[at[rack]] = b
            at[rack] += 1
    return Receivers(listed, begins)


@inner
def slots_by_broker(state, givers, order):
    """The movable slots of each giver, in the order given, and where each giver's begin."""
    partitions, slots = state.partitions, state.slots
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
                enter(state, givers, listed, at, p)
        return listed, begins
    # Of a few brokers: their slots one after another, then sorted, rather than all partitions in their order.
    rank = np.empty(len(order), np.int32)
    for place in range(len(order)):
        rank[order[place]] = place
    for p in range(len(partitions) - 1):
        if partitions[p].movable:
            enter(state, givers, listed, at, p)
    for b in range(len(givers)):
        if givers[b]:
            mine = listed[begins[b] : begins[b + 1]].copy()
            places = np.argsort(rank[mine["partition"]])
            for place in range(len(mine)):
                listed[begins[b] + place] = mine[places[place]]
    return listed, begins


@inner
def enter(state, givers, listed, at, p):
    """Write the slots of a partition into the lists of its brokers."""
    for slot in range(state.partitions[p].begin, state.partitions[p + 1].begin):
        replica = state.slots[slot]
        b = replica.broker
        if b >= 0 and givers[b]:
            entry = listed[at[b]]
            entry.slot = slot
            entry.bytes = replica.bytes
            entry.partition = p
            entry.leads = state.partitions[p].leader == b
            entry.at_home = replica.home == b
            at[b] += 1
