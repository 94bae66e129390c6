"""Replica lists, partition by partition: put in order, and compared before and after."""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled


@compiled
def compare(offsets, broker, log_dir, offsets_after, broker_after, log_dir_after):
    """By slot after: whether the replica is new on its broker, and whether it stays there on another log dir.

    By partition after: whether its list or a log dir differs. Partitions beyond those before are new.
    """
    known = len(offsets) - 1
    arrives = np.zeros(len(broker_after), np.bool_)
    other_dir = np.zeros(len(broker_after), np.bool_)
    differs = np.zeros(len(offsets_after) - 1, np.bool_)
    for p in range(len(offsets_after) - 1):
        begin, end = offsets_after[p], offsets_after[p + 1]
        if p >= known:
            differs[p] = True
            arrives[begin:end] = True
            continue
        differs[p] = end - begin != offsets[p + 1] - offsets[p]
        for slot in range(begin, end):
            found = -1
            for old in range(offsets[p], offsets[p + 1]):
                if broker[old] == broker_after[slot]:
                    found = old
            if found < 0:
                arrives[slot] = True
                differs[p] = True
                continue
            if found - offsets[p] != slot - begin:
                differs[p] = True
            if log_dir[found] >= 0 and log_dir_after[slot] >= 0 and log_dir[found] != log_dir_after[slot]:
                other_dir[slot] = True
                differs[p] = True
    return arrives, other_dir, differs


@compiled
def leader_to_front(offsets, broker, leader):
    """Put the leader at the front of each list, in place; the others keep their order behind it."""
    for p in range(len(leader)):
        begin = offsets[p]
        at = begin
        while at < offsets[p + 1] and broker[at] != leader[p]:
            at += 1
        if leader[p] < 0 or at == offsets[p + 1]:
            continue
        while at > begin:
            broker[at] = broker[at - 1]
            at -= 1
        broker[begin] = leader[p]


@compiled
def follow(offsets, before, after, values):
    """What belongs to each replica, once lists are in another order: `before` and `after` have the brokers by slot."""
    moved = values.copy()
    for p in range(len(offsets) - 1):
        for slot in range(offsets[p], offsets[p + 1]):
            if after[slot] != before[slot]:
                for old in range(offsets[p], offsets[p + 1]):
                    if before[old] == after[slot]:
                        moved[slot] = values[old]
    return moved


@compiled
def stay_in_place(offsets, broker, held, log_dir, after):
    """Give replicas that are on their broker again, in place, the bytes and the log dir that they have there.

    `after` has brokers, bytes and log dirs by slot, of the same lists.
    """
    broker_after, held_after, log_dir_after = after
    for p in range(len(offsets) - 1):
        for slot in range(offsets[p], offsets[p + 1]):
            for old in range(offsets[p], offsets[p + 1]):
                if broker[old] == broker_after[slot] and broker[old] >= 0:
                    held_after[slot], log_dir_after[slot] = held[old], log_dir[old]


@compiled
def rack_spread(offsets, broker, rack):
    """By partition: in how many racks it is, and how many replicas its fullest one has; rack -1 does not count."""
    racks = np.zeros(len(offsets) - 1, np.int64)
    fullest = np.zeros(len(offsets) - 1, np.int64)
    for p in range(len(offsets) - 1):
        for slot in range(offsets[p], offsets[p + 1]):
            own = rack[broker[slot]]
            if own < 0:
                continue
            first, count = True, 0
            for other in range(offsets[p], offsets[p + 1]):
                if rack[broker[other]] == own:
                    count += 1
                    first = first and other >= slot
            racks[p] += first
            fullest[p] = max(fullest[p], count)
    return racks, fullest
