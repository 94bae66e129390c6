"""Sums over replicas, in one walk through memory."""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled


@compiled
def sums(index, values, size):
    """Whole numbers summed by index, exactly; what has none, -1, is left out."""
    total = np.zeros(size, np.int64)
    for at in range(len(index)):
        if index[at] >= 0:
            total[index[at]] += values[at]
    return total


@compiled
def sums_of_partitions(offsets, index, values, size):
    """What each partition weighs, summed by the index of each of its slots; what has none, -1, is left out."""
    total = np.zeros(size, np.float64)
    for p in range(len(values)):
        for slot in range(offsets[p], offsets[p + 1]):
            if index[slot] >= 0:
                total[index[slot]] += values[p]
    return total


@compiled
def fill(partitions, slots, brokers, offsets, size, row, limit, leader, movable, broker, held, log_dir):
    """Fill empty records of partitions and slots, and count the loads of brokers: pages of memory are met once."""
    for p in range(len(size)):
        partition = partitions[p]
        partition.begin = offsets[p]
        partition.size = size[p]
        partition.row = row[p]
        partition.limit = limit[p]
        partition.leader = leader[p]
        partition.movable = movable[p]
        if leader[p] >= 0:
            brokers[leader[p]].leads += 1
        for at in range(offsets[p], offsets[p + 1]):
            slot = slots[at]
            slot.bytes = held[at]
            slot.broker = slot.home = broker[at]
            slot.log_dir = log_dir[at]
            slot.marked = 0
            if broker[at] >= 0:
                brokers[broker[at]].bytes += held[at]
                brokers[broker[at]].replicas += 1
    behind = partitions[len(size)]
    behind.begin = offsets[len(size)]
    behind.size = behind.row = behind.limit = behind.leader = behind.movable = 0


@compiled
def held_by_topic(row, offsets, broker, rows, brokers):
    """Replicas by a topic's row and broker; `row` has each partition's, -1 for none."""
    held = np.zeros((rows, brokers), np.int32)
    for p in range(len(row)):
        if row[p] >= 0:
            for slot in range(offsets[p], offsets[p + 1]):
                if broker[slot] >= 0:
                    held[row[p], broker[slot]] += 1
    return held
