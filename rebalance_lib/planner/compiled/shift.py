"""Bytes shifted from brokers that hold too much to brokers that hold too little, and replicas with them.

Given is how many bytes and replicas each broker should give or take.

1. *Choose.* A giver's replicas are walked from the largest to the smallest, and an even share of them is marked, so
   that what leaves is like what stays, and comes to the bytes and the number wanted at once; what is then missing in
   bytes is marked from the largest down, what is missing in number from the smallest up. Replicas that lead are marked
   only as far as their broker leads too many.
2. *Place.* All marked replicas, from the largest to the smallest, go to the broker that lacks the most bytes; the small
   tail goes to the broker that lacks the most replicas. This is the longest-processing-time rule: large ones first, and
   the small ones at the end level what the large ones left uneven.

Data moves only from givers to takers, so that next to nothing moves that need not.

Example: brokers 1, 2 and 3 hold replicas of 3+3+2+2+2, 4+1 and 1 GB of different partitions, without racks. The even
share is 6 GB. Broker 1 should give 6, broker 2 take 1 and broker 3 take 5: no replica larger than 5 is chosen, 3 and 3
are. Both go to broker 3, which lacks the most each time. It now holds 1 too many, and in the next round its 1 GB goes
on to broker 2. All hold 6, and 7 GB moved.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inner
from rebalance_lib.planner.compiled.moves import (
    NOWHERE,
    SCAN_LIMIT,
    affordable,
    best_in,
    in_rack,
    move,
    receivers_by_rack,
    slots_by_broker,
)

TAIL = 4  # the smallest quarter of what moves is placed by number


class Wanted(NamedTuple):
    """What each broker should give and take."""

    give: Any  # bytes
    take: Any
    surplus: Any  # replicas that it holds too many of; negative where it lacks some
    leaders: Any  # of those it leads, how many may leave
    slack: Any  # bytes that may leave with replicas that leave for their number alone


@inner
def even_rates(listed, give_bytes, give_replicas, give_leaders):
    """Which part of a broker's replicas should leave: of the larger half and the smaller one, followers and leaders.

    The two halves have two unknown parts, and bytes and replicas are two equations. Followers and leaders of a half
    share what it gives so that no more leave that lead than the broker leads too many.
    """
    half = len(listed) // 2
    sums = np.zeros(4, np.float64)
    counts = np.zeros(4, np.float64)
    for at in range(len(listed)):
        kind = 2 * (at >= half) + listed[at].leads
        sums[kind] += listed[at].bytes
        counts[kind] += 1
    rates = np.zeros(4, np.float64)
    large, small = sums[0] + sums[1], sums[2] + sums[3]
    larger, smaller = counts[0] + counts[1], counts[2] + counts[3]
    wanted = float(give_replicas)
    if wanted <= 0 or larger == 0 or large == 0:
        return rates
    of_large = min(1.0, give_bytes / large)
    of_small = 0.0
    determinant = large * smaller - small * larger
    if determinant > 0:
        of_large = min(1.0, max(0.0, (give_bytes * smaller - small * wanted) / determinant))
        of_small = min(1.0, max(0.0, (wanted - of_large * larger) / smaller))
    if of_large * larger > wanted:
        of_large = wanted / larger
    leaders = of_large * counts[1] + of_small * counts[3]
    followers = of_large * counts[0] + of_small * counts[2]
    wanted_leaders = min(max(0.0, float(give_leaders)), leaders + followers)
    more = wanted_leaders / leaders if leaders > 0 else 0.0
    fewer = (leaders + followers - leaders * more) / followers if followers > 0 else 0.0
    rates[0], rates[1] = min(1.0, of_large * fewer), min(1.0, of_large * more)
    rates[2], rates[3] = min(1.0, of_small * fewer), min(1.0, of_small * more)
    return rates


@inner
def choose(listed, wanted, b, largest, phase):
    """Mark what a broker gives: an even share of its replicas, then the largest or the smallest for what is missing.

    None is larger than what some taker can take. The smallest, given for their number alone, may come to as many bytes
    as the slack.
    """
    rates = np.zeros(4, np.float64)
    owed = np.full(4, phase)
    left = wanted.give[b]
    missing = wanted.surplus[b]
    spare_leaders = wanted.leaders[b]
    slack = wanted.slack[b]
    end = len(listed)
    half = 0
    review = 0
    for at in range(end):
        if at == review:
            # The few largest ones weigh so much that the parts are worked out anew behind them, now and then.
            rates = even_rates(listed[at:], left, missing, spare_leaders)
            half = at + (end - at) // 2
            review = at + max(8, 3 * at)
        role = listed[at].leads
        kind = 2 * (at >= half) + role
        owed[kind] += rates[kind]
        if owed[kind] >= 1.0 and listed[at].bytes <= min(left, largest):
            owed[kind] -= 1.0
            listed[at].marked = 1
            left -= listed[at].bytes
            missing -= 1
            spare_leaders -= role
    # What was moved here already comes first: sending it on costs nothing more. Leaders beyond the surplus come last.
    for turn in range(4):
        for at in range(end):
            if listed[at].marked or listed[at].bytes > min(left, largest) or listed[at].bytes == 0:
                continue
            role = listed[at].leads
            if (turn < 2) == listed[at].at_home or (turn % 2 == 0 and role == 1 and spare_leaders <= 0):
                continue
            listed[at].marked = 1
            left -= listed[at].bytes
            missing -= 1
            spare_leaders -= role
    for turn in range(2):
        for at in range(end - 1, -1, -1):
            if missing <= 0 or listed[at].bytes > left + slack:
                break
            role = listed[at].leads
            if listed[at].marked or (turn == 0 and role == 1 and spare_leaders <= 0):
                continue
            listed[at].marked = 1
            left -= listed[at].bytes
            missing -= 1
            spare_leaders -= role


@compiled
def shift(state, order, wanted, within_racks, seed):
    """Move bytes from givers to takers; returns how many replicas moved."""
    brokers, slots, partitions = state.brokers, state.slots, state.partitions
    give, take = wanted.give, wanted.take
    givers = (give > 0).astype(np.uint8)
    takers = ((take > 0) & (brokers["takes"][:-1] > 0)).astype(np.uint8)
    receivers = receivers_by_rack(state, takers)
    if len(receivers.brokers) == 0:
        return 0
    listed, list_begins = slots_by_broker(state, givers, order)
    most_in_rack = np.zeros(state.racks, np.int64)
    for d in receivers.brokers:
        most_in_rack[brokers[d].rack] = max(most_in_rack[brokers[d].rack], take[d])
    for b in range(len(give)):
        if givers[b]:
            phase = ((b * 0x9E3779B1 + seed * 0x85EBCA6B) & 0xFFFF) / 0x10000
            largest = most_in_rack[brokers[b].rack] if within_racks else most_in_rack.max()
            choose(listed[list_begins[b] : list_begins[b + 1]], wanted, b, largest, phase)
    # From the largest to the smallest over all givers: the marks are put back in the order of partitions.
    total = 0
    for at in range(len(listed)):
        if listed[at].marked:
            slots[listed[at].slot].marked = 1
            total += 1
    lack_bytes = take.copy()
    lack_replicas = -wanted.surplus
    moved = 0
    seen = 0
    for p in order:
        if seen == total:
            break
        for slot in range(partitions[p].begin, partitions[p + 1].begin):
            if not slots[slot].marked:
                continue
            slots[slot].marked = 0
            seen += 1
            if not affordable(state, p, slot):
                continue
            tail = seen > total - total // TAIL
            target = NOWHERE
            # In the tail by number of replicas; a broker that lacks none of them may still lack the bytes.
            if tail:
                target = best_target(state, receivers, lack_replicas, p, slot, 0, seen, within_racks)
            if target == NOWHERE:
                least = partitions[p].size // 2
                target = best_target(state, receivers, lack_bytes, p, slot, least, seen, within_racks)
            if target == NOWHERE:
                continue
            move(state, p, slot, target)
            lack_bytes[target] -= partitions[p].size
            lack_replicas[target] -= 1
            moved += 1
    return moved


@inner
def best_target(state, receivers, lack, p, slot, least, turn, within_racks):
    """The receiver that lacks the most, of those whose rack may get the replica."""
    own_rack = state.brokers[state.slots[slot].broker].rack
    own = in_rack(state, p, slot, own_rack) + 1
    target = NOWHERE
    for rack in range(state.racks):
        if receivers.begins[rack] == receivers.begins[rack + 1]:
            continue
        if rack != own_rack and (within_racks or in_rack(state, p, slot, rack) + 1 > own):
            continue
        d = best_in(state, receivers, rack, lack, p, least, turn, SCAN_LIMIT)
        if d != NOWHERE:
            target = d
            least = lack[d]
    return target
