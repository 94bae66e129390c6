"""Sums over replicas, in one walk through memory."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def sums(index, values, size):
    """Whole numbers summed by index, exactly; what has none, -1, is left out."""
    total = np.zeros(size, np.int64)
    for at in range(len(index)):
        if index[at] >= 0:
            total[index[at]] += values[at]
    return total


@njit(cache=True)
def held_by_topic(row, offsets, broker, rows, brokers):
    """Replicas by a topic's row and broker; `row` has each partition's, -1 for none."""
    held = np.zeros((rows, brokers), np.int32)
    for p in range(len(row)):
        if row[p] >= 0:
            for slot in range(offsets[p], offsets[p + 1]):
                if broker[slot] >= 0:
                    held[row[p], broker[slot]] += 1
    return held
