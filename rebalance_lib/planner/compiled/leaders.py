"""Who leads: leadership evened out by the order of replica lists, with as few changes as can be.

Constraints: a leader is one of the partition's replicas, on a broker that may lead. A partition whose leader still has
its replica keeps it, unless its broker leads too many.

1. Partitions without a leader, because its replica left, take the replica whose broker lacks the most.
2. Brokers above their band hand partitions to followers below theirs, then to any that lack leaders, each directly: one
   change for one leader. Then brokers below their band take from brokers that can spare some.
3. What is left needs a detour: a chain of brokers, each handing one partition to the next, found by breadth-first
   search, so that it is the shortest one.
4. Changes that the others have made needless are taken back.

Example: brokers 1, 2 and 3 lead 3, 1 and 0 of four partitions on [1,2], [1,2], [1,2] and [2,3]; one or two is fair.
No partition of 1 has a replica on 3, so 1 hands one to 2, and 2 hands its own to 3. They lead 2, 1 and 1 after two
changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined, inner

NONE = -1
WORK = 1  # partitions looked at in search of chains, for each replica there is


class Leaders(NamedTuple):
    """Who leads, and within which limits; `leads`, `counts` and `load` are changed in place."""

    offsets: Any
    broker: Any  # by slot
    may_lead: Any  # by slot
    leads: Any  # by partition: the broker that leads it, -1 for none
    movable: Any  # by partition
    share: Any  # by broker, as the next three
    low: Any
    high: Any
    counts: Any  # partitions led
    weight: Any  # by partition: what its leader sends
    load: Any  # by broker, as the next: what it sends; changed in place
    ceiling: Any  # what no change brings it above, unless a partition has nobody else


class Links(NamedTuple):
    """Partitions by leader, as lists linked both ways, since leaders change with every chain."""

    first: Any  # by broker
    after: Any  # by partition, as the next
    before: Any


@compiled
def keep_or_appoint(leaders):
    """Keep each leader whose replica is still there, then appoint one for each other partition."""
    offsets, broker, may_lead, leads = leaders.offsets, leaders.broker, leaders.may_lead, leaders.leads
    share, counts = leaders.share, leaders.counts
    vacant = 0
    for p in range(len(leads)):
        keeps = False
        for slot in range(offsets[p], offsets[p + 1]):
            if broker[slot] == leads[p] and leads[p] >= 0:
                keeps = may_lead[slot] > 0 or not leaders.movable[p]
        if keeps:
            counts[leads[p]] += 1
            leaders.load[leads[p]] += leaders.weight[p]
        else:
            leads[p] = NONE
            vacant += 1
    if vacant == 0:
        return
    for p in range(len(leads)):
        if leads[p] != NONE:
            continue
        best = NONE
        for slot in range(offsets[p], offsets[p + 1]):
            b = broker[slot]
            if b < 0 or not may_lead[slot]:
                continue
            if best == NONE or (fits(leaders, p, b), share[b] - counts[b]) > (
                fits(leaders, p, best),
                share[best] - counts[best],
            ):
                best = b
        leads[p] = best
        if best != NONE:
            counts[best] += 1
            leaders.load[best] += leaders.weight[p]


@inlined
def fits(leaders, p, b):
    """Whether a broker stays below its ceiling if it leads one more partition."""
    return leaders.load[b] + leaders.weight[p] <= leaders.ceiling[b]


@inlined
def hand(leaders, p, b):
    """Let another broker lead a partition."""
    s, w = leaders.leads[p], leaders.weight[p]
    leaders.leads[p] = b
    leaders.counts[s] -= 1
    leaders.counts[b] += 1
    leaders.load[s] -= w
    leaders.load[b] += w


@compiled
def hand_over(leaders):
    """Bring brokers within their bands: directly where a follower lacks leaders, by a chain where none does.

    Returns whether the search for chains came to its end.
    """
    offsets, broker, may_lead, leads = leaders.offsets, leaders.broker, leaders.may_lead, leaders.leads
    share, low, high, counts = leaders.share, leaders.low, leaders.high, leaders.counts
    for turn in range(3):
        for p in range(len(leads)):
            s = leads[p]
            if s == NONE or not leaders.movable[p]:
                continue
            # First from those that lead too many to those that lead too few, then each of them with who is between.
            if counts[s] <= (high[s] if turn < 2 else max(float(low[s]), share[s])):
                continue
            best = NONE
            most = 0.0
            for slot in range(offsets[p], offsets[p + 1]):
                b = broker[slot]
                if b < 0 or b == s or not may_lead[slot]:
                    continue
                lack = share[b] - counts[b] if turn == 1 else float(low[b] - counts[b])
                if lack > most and counts[b] < high[b] and fits(leaders, p, b):
                    best, most = b, lack
            if best != NONE:
                hand(leaders, p, best)
    return chains(leaders)


@inner
def linked(brokers, leads, wanted):
    """The wanted partitions by leader."""
    size = len(leads)
    links = Links(np.full(brokers, NONE, np.int64), np.full(size, NONE, np.int64), np.full(size, NONE, np.int64))
    for p in range(size - 1, -1, -1):
        if leads[p] != NONE and wanted[p]:
            link(links, leads[p], p)
    return links


@inner
def chains(leaders):
    """Shortest chains from brokers that lead too many, then to brokers that lead too few; whether all were found."""
    leads, share, low, high, counts = leaders.leads, leaders.share, leaders.low, leaders.high, leaders.counts
    size = len(share)
    links = linked(size, leads, leaders.movable)
    via = np.empty(size, np.int64)
    seen = np.empty(size, np.bool_)
    queue = np.empty(size, np.int32)
    work = WORK * len(leaders.broker)
    # After a search in vain, nobody that it came by can reach more than it did; until leaders change again.
    closed = np.zeros(size, np.bool_)
    for direction in range(2):
        closed[:] = False
        for b in range(size):
            while work > 0 and not closed[b] and (counts[b] > high[b] if direction == 0 else counts[b] < low[b]):
                tail = 0
                seen[:] = False
                via[:] = NONE
                if direction == 0:
                    queue[0] = b
                    seen[b] = True
                    tail = 1
                else:
                    for source in range(size):
                        if source != b and counts[source] > low[source] and counts[source] > share[source]:
                            queue[tail] = source
                            seen[source] = True
                            tail += 1
                goal = NONE if direction == 0 else b
                end, looked = search(leaders, links, via, seen, queue, tail, goal)
                work -= looked
                if end == NONE:
                    for other in range(size):
                        closed[other] |= seen[other] if direction == 0 else not seen[other]
                    break
                closed[:] = False
                while via[end] != NONE:
                    p = via[end]
                    s = leads[p]
                    unlink(links, s, p)
                    link(links, end, p)
                    hand(leaders, p, end)
                    end = s
    return work > 0


@inlined
def link(links, b, p):
    """Put partition p at the head of the list of broker b."""
    links.after[p] = links.first[b]
    links.before[p] = NONE
    if links.first[b] != NONE:
        links.before[links.first[b]] = p
    links.first[b] = p


@inlined
def unlink(links, b, p):
    """Take partition p out of the list of broker b."""
    if links.before[p] == NONE:
        links.first[b] = links.after[p]
    else:
        links.after[links.before[p]] = links.after[p]
    if links.after[p] != NONE:
        links.before[links.after[p]] = links.before[p]


@inlined
def search(leaders, links, via, seen, queue, tail, goal):
    """Breadth-first along followers, from the brokers in the queue to the goal, or to one that lacks a leader."""
    counts, share, high = leaders.counts, leaders.share, leaders.high
    looked = 0
    head = 0
    while head < tail:
        p = links.first[queue[head]]
        head += 1
        while p != NONE:
            looked += 1
            for slot in range(leaders.offsets[p], leaders.offsets[p + 1]):
                b = leaders.broker[slot]
                if b < 0 or seen[b] or not leaders.may_lead[slot] or not fits(leaders, p, b):
                    continue
                seen[b] = True
                via[b] = p
                if b == goal or (goal == NONE and counts[b] + 1 <= share[b] + 0.5 and counts[b] < high[b]):
                    return b, looked
                queue[tail] = b
                tail += 1
            p = links.after[p]
    return NONE, looked


@compiled
def undo(leaders, leader):
    """Take back changes that others make needless; returns how many.

    A partition that could have kept its leader gets it back if that broker has room, or if another partition there,
    whose own leader is gone so that it changes anyway, can be led by somebody else instead.
    """
    offsets, broker, may_lead, leads = leaders.offsets, leaders.broker, leaders.may_lead, leaders.leads
    low, high, counts = leaders.low, leaders.high, leaders.counts
    kept = np.zeros(len(leads), np.bool_)
    for p in range(len(leads)):
        for slot in range(offsets[p], offsets[p + 1]):
            if leader[p] >= 0 and broker[slot] == leader[p] and may_lead[slot]:
                kept[p] = True
    links = linked(len(counts), leads, ~kept)
    undone = 0
    for p in range(len(leads)):
        if not kept[p] or leads[p] == leader[p]:
            continue
        home, now = leader[p], leads[p]
        if not fits(leaders, p, home):
            continue
        if counts[home] < high[home] and counts[now] > low[now]:
            hand(leaders, p, home)
            undone += 1
            continue
        other, heir = links.first[home], NONE
        while other != NONE and heir == NONE:
            for slot in range(offsets[other], offsets[other + 1]):
                b = broker[slot]
                if b < 0 or b == home or not may_lead[slot] or not fits(leaders, other, b):
                    continue
                if b == now or (counts[b] < high[b] and counts[now] > low[now]):
                    heir = b
            if heir == NONE:
                other = links.after[other]
        if heir != NONE:
            unlink(links, home, other)
            link(links, heir, other)
            hand(leaders, other, heir)
            hand(leaders, p, home)
            undone += 1
    return undone
