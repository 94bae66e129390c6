"""Replicas that must have another place: without a broker, on one to be emptied, or too many in a rack.

Each goes to the rack with the fewest replicas of its partition, and there to the broker that lacks the most bytes; the
small ones at the end go to the broker that lacks the most replicas. From the largest to the smallest: the small ones
level what the large ones left uneven.

Example: broker 3 is to be emptied of replicas of 5, 4 and 1 GB; brokers 1 and 2 lack 7 and 5 GB. The 5 go to broker 1,
which then lacks 2, the 4 to broker 2, and the 1 to broker 1, which then lacks 1 as broker 2 does.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inner
from rebalance_lib.planner.compiled.moves import NOWHERE, affordable, best_of, in_rack, move, receivers_by_rack

TAIL = 2  # the smaller half of what moves is placed by number: it holds next to no bytes


@inner
def of_those_that_lack(leaders, lack, lowest):
    """What each broker lacks that lacks leaders, and ``lowest`` for the others."""
    found = np.empty_like(lack)
    for b in range(len(lack)):
        found[b] = lack[b] if leaders[b] > 0 else lowest
    return found


@compiled
def settle(state, order, share_bytes, share_replicas, share_leaders):
    """Place every slot that has no broker, or one that must be emptied; what finds no place is returned.

    The rack with the fewest replicas of the partition comes first, in it the broker that lacks the most. A replica that
    leads goes to a broker that lacks leaders, if there is one: it can then lead there, and nobody else has to change.
    """
    partitions, slots, brokers = state.partitions, state.slots, state.brokers
    receivers = receivers_by_rack(state, brokers["takes"][:-1])
    pending = 0
    unassigned = np.zeros(len(partitions) - 1, np.bool_)  # mostly few: the others are not looked at once more
    for p in range(len(partitions) - 1):
        for slot in range(partitions[p].begin, partitions[p + 1].begin):
            b = slots[slot].broker
            if partitions[p].movable and (b < 0 or brokers[b].leaves):
                pending += 1
                unassigned[p] = True
    stuck = np.empty(pending, np.int64)
    stuck_count = 0
    lack_bytes = share_bytes - brokers["bytes"][:-1]
    lack_replicas = share_replicas - brokers["replicas"][:-1]
    done = 0
    lowest = np.iinfo(np.int64).min
    lack_leaders = share_leaders - brokers["leads"][:-1]
    in_tail = False
    lack = lack_bytes
    lack_leading = of_those_that_lack(lack_leaders, lack, lowest)
    counts = np.zeros(state.racks, np.int64)
    for p in order:
        if not unassigned[p]:
            continue
        for slot in range(partitions[p].begin, partitions[p + 1].begin):
            b = slots[slot].broker
            if b >= 0 and not brokers[b].leaves:
                continue
            if not in_tail and (done >= pending - pending // TAIL or partitions[p].size == 0):
                in_tail = True
                lack = lack_replicas
                lack_leading = of_those_that_lack(lack_leaders, lack, lowest)
            done += 1
            for rack in range(state.racks):
                counts[rack] = in_rack(state, p, slot, rack)
            target = NOWHERE
            leads = b >= 0 and partitions[p].leader == b
            for others in range(partitions[p + 1].begin - partitions[p].begin):
                for anyone in range(0 if leads else 1, 2):
                    if target == NOWHERE:
                        target = best_of(
                            state, receivers, counts, others, others, lack if anyone else lack_leading, p, lowest, done
                        )
            if target == NOWHERE:
                stuck[stuck_count] = slot
                stuck_count += 1
                continue
            if b >= 0:
                lack_bytes[b] += slots[slot].bytes
                lack_replicas[b] += 1
            move(state, p, slot, target)
            lack_bytes[target] -= partitions[p].size
            lack_replicas[target] -= 1
            lack_leaders[target] -= leads
            lack_leading[target] = lack[target] if lack_leaders[target] > 0 else lowest
    return stuck[:stuck_count]


@compiled
def repair_racks(state, order, share_bytes):
    """Move replicas out of racks that hold more of a partition than needed; how many did, and how many were refused."""
    partitions, slots, brokers = state.partitions, state.slots, state.brokers
    receivers = receivers_by_rack(state, brokers["takes"][:-1])
    lack = share_bytes - brokers["bytes"][:-1]
    lowest = np.iinfo(np.int64).min
    counts = np.zeros(state.racks, np.int64)
    moved, refused = 0, 0
    if state.racks < 2:
        return moved, refused
    crowded = np.zeros(len(partitions) - 1, np.bool_)
    for p in range(len(partitions) - 1):
        begin, end = partitions[p].begin, partitions[p + 1].begin
        for slot in range(begin, end):
            for other in range(begin, slot):
                if brokers[slots[slot].broker].rack == brokers[slots[other].broker].rack:
                    crowded[p] = True
    for p in order:
        if not partitions[p].movable or not crowded[p]:
            continue
        improved = True
        while improved:
            improved = False
            best_slot, best_own = -1, 0
            for slot in range(partitions[p].begin, partitions[p + 1].begin):
                b = slots[slot].broker
                own = in_rack(state, p, slot, brokers[b].rack) + 1
                if own < 2 or own < best_own or not brokers[b].gives:
                    continue
                better = best_slot < 0 or own > best_own
                if not better:
                    # A follower rather than the leader, then the one whose broker holds the most.
                    rival = slots[best_slot].broker
                    leads, rival_leads = partitions[p].leader == b, partitions[p].leader == rival
                    better = (rival_leads and not leads) or (rival_leads == leads and lack[b] < lack[rival])
                if better:
                    best_slot, best_own = slot, own
            if best_slot < 0:
                break
            for rack in range(state.racks):
                counts[rack] = in_rack(state, p, best_slot, rack)
            for others in range(best_own - 1):
                target = best_of(state, receivers, counts, others, others, lack, p, lowest, p)
                if target != NOWHERE:
                    if not affordable(state, p, best_slot):
                        refused += 1
                        break
                    lack[slots[best_slot].broker] += slots[best_slot].bytes
                    move(state, p, best_slot, target)
                    lack[target] -= partitions[p].size
                    improved = True
                    moved += 1
                    break
    return moved, refused
