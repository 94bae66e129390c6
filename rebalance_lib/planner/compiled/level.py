"""The level at which brokers, filled by their weights, hold all of a load together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inner


class Limits(NamedTuple):
    """What brokers are filled by, and within."""

    weights: Any  # by broker, as the next one
    rack: Any
    rack_limit: Any  # by rack
    at_least: Any  # by broker, as the next one
    at_most: Any


STEPS = 100  # halvings of an interval, unless it can be halved no more


@compiled
def even_level(total, limits):
    """By broker: what it holds at the lowest level at which all hold the total, or as much as limits allow."""
    held, in_rack = np.empty(len(limits.weights)), np.empty(len(limits.rack_limit))
    # Where racks are full to their limits, the sum may stay a rounding error below the total at any level.
    enough = total * (1 - 1e-12)
    low, high = 0.0, 1.0
    most = 4 * total * len(limits.weights) + 4
    while fill_to(high, limits, held, in_rack) < enough:
        if high * limits.weights.max() >= most:
            break
        high *= 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if fill_to(middle, limits, held, in_rack) >= enough:
            high = middle
        else:
            low = middle
    fill_to(high, limits, held, in_rack)
    return held


@inner
def fill_to(level, limits, held, in_rack):
    """Fill all brokers to a level, each within its limits, then empty racks down to theirs; returns the sum."""
    rack, rack_limit = limits.rack, limits.rack_limit
    in_rack[:] = 0.0
    for b in range(len(held)):
        held[b] = max(min(level * limits.weights[b], limits.at_most[b]), limits.at_least[b])
        in_rack[rack[b]] += held[b]
    total = 0.0
    for b in range(len(held)):
        if in_rack[rack[b]] > rack_limit[rack[b]]:
            held[b] *= rack_limit[rack[b]] / in_rack[rack[b]]
        total += held[b]
    return total
