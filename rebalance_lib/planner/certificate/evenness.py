"""How even a load could be at all: a lower bound on the most loaded broker, over its share.

Why it is a bound: each of these holds for every allowed placement, and the largest is taken.

- *Total.* If no broker is above ``level`` times its share, the brokers together hold at most the sum of these, a rack
  at most what the rule of racks lets it have, a broker that takes nothing at most what it has now; and that must be
  enough for all replicas. A broker holds at least what may not leave it.
- *One partition.* Its replicas are on distinct brokers, so one of them is on a broker whose share is at most the r-th
  largest of those it may be on, r being the replication factor.
- *Some large ones.* Of the n * j + 1 largest replicas some broker holds j + 1, and these are not less than the smallest
  ones among them. And a broker at ``level`` has space for ``floor(level * share / smallest)`` of them.

Example:
    Three brokers with a share of 4 each and replicas of 7, 3 and 2: the total allows a level of 1, the largest replica
    7/4. With replicas of 3, 3, 3 and 3 instead, two of the four are on one broker: 6/4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Flags, Floats, Loads, Problem

HALVINGS = 60
ROUNDING = 1e-12
PREFIXES = 64  # how many numbers of large replicas are tried


def best_possible(problem: Problem, loads: Loads) -> float:
    """No allowed placement has a lower maximum of load over share; 0 if nobody has a share."""
    counted = (loads.share > 0) & ~problem.leaves
    if not counted.any():
        return 0.0
    bound = max(_by_total(problem, loads, counted), _by_one_partition(problem, loads, counted))
    if not (problem.takes & ~problem.leaves & ~counted).any():
        bound = max(bound, _by_many(problem, loads, counted))
    return 1.0 if 1 - 1e-9 < bound < 1 else bound  # a rounding error below


def _by_total(problem: Problem, loads: Loads, counted: Flags) -> float:
    fixed, now = problem.held(loads, problem.holds_back), problem.held(loads)
    total = float((loads.per_replica * problem.replication_factor).sum())
    unplaced = (problem.broker < 0) & ~problem.must_leave
    total -= float(loads.per_replica[problem.slot_partition[unplaced]].sum())
    uncounted = np.where(problem.leaves, fixed, np.where(problem.takes, np.inf, now))
    rack = np.where(problem.rack < 0, problem.racks, problem.rack)
    limit = np.append(_rack_limits(problem, loads), np.inf)

    def enough(level: float) -> bool:
        space = np.maximum(level * loads.share, fixed)
        space = np.where(problem.takes, space, np.minimum(space, now))
        in_rack = np.bincount(rack, np.where(counted, space, uncounted), problem.racks + 1)
        return float(np.minimum(in_rack, limit).sum()) >= total * (1 - ROUNDING)

    return _lowest(enough, float((fixed[counted] / loads.share[counted]).max()))


def _rack_limits(problem: Problem, loads: Loads) -> Floats:
    """The most that each rack may hold: of movable partitions as many replicas as the rule lets it, and the rest."""
    movable = problem.movable
    by_level = np.bincount(problem.most_in_rack[movable], loads.per_replica[movable])
    limits = by_level @ np.minimum(problem.in_rack, np.arange(len(by_level))[:, None])
    rest = np.flatnonzero(~movable[problem.slot_partition] & (problem.broker >= 0))
    rest = rest[problem.rack[problem.broker[rest]] >= 0]
    of_rest = loads.per_replica[problem.slot_partition[rest]]
    limits = limits + np.bincount(problem.rack[problem.broker[rest]], of_rest, problem.racks)
    return np.asarray(limits * (1 + ROUNDING), np.float64)


def _by_one_partition(problem: Problem, loads: Loads, counted: Flags) -> float:
    """Of each replication factor and rule of racks, the largest partition."""
    bound = 0.0
    movable = np.flatnonzero(problem.movable & (problem.replication_factor > 0))
    share = np.where(counted, loads.share, np.inf)
    kind = problem.replication_factor * (int(problem.most_in_rack.max(initial=0)) + 1) + problem.most_in_rack
    for one in np.unique(kind[movable]).tolist():
        those = movable[kind[movable] == one]
        p = int(those[loads.per_replica[those].argmax()])
        hosts = problem.takes.copy()
        here = problem.broker[problem.offsets[p] : problem.offsets[p + 1]]
        hosts[here[here >= 0]] = True
        order = np.flatnonzero(hosts & ~problem.leaves)
        order = order[np.argsort(-share[order], kind="stable")]
        chosen = order[_among_first(problem.rack[order], int(problem.most_in_rack[p]))]
        factor = int(problem.replication_factor[p])
        if factor <= len(chosen):
            bound = max(bound, float(loads.per_replica[p] / share[chosen[factor - 1]]))
    return bound


def _among_first(rack: NDArray[np.int32], most: int) -> Flags:
    """Whether each is among the first so many of its rack; those without a rack always are."""
    earlier = np.zeros(len(rack), np.int64)
    for one in np.unique(rack).tolist():
        earlier[rack == one] = np.arange(np.count_nonzero(rack == one))
    return np.asarray((earlier < most) | (rack < 0))


def _by_many(problem: Problem, loads: Loads, counted: Flags) -> float:
    here = problem.must_leave | (problem.broker >= 0) & counted[problem.broker]
    if not problem.racks_are_closed:
        return _pigeonhole(loads.per_replica[problem.slot_partition[here]], loads.share[counted])
    bound = 0.0
    for rack in range(problem.racks):
        inside = here & (problem.rack[problem.broker] == rack)
        brokers = counted & (problem.rack == rack)
        if brokers.any():
            bound = max(bound, _pigeonhole(loads.per_replica[problem.slot_partition[inside]], loads.share[brokers]))
    return bound


def _pigeonhole(items: Floats, share: Floats) -> float:
    """The level at which there is space for the largest items, for several numbers of them."""
    brokers, largest = len(share), float(share.max())
    items = np.sort(items[items > 0])[::-1]
    if not len(items):
        return 0.0
    summed = np.append(0.0, np.cumsum(items))
    bound = 0.0
    for j in range(min(PREFIXES, (len(items) - 1) // brokers + 1)):
        count = brokers * j + 1
        bound = max(bound, float(summed[count] - summed[count - j - 1]) / largest * (1 - ROUNDING))
    numbers = {len(items), *(brokers * j + 1 for j in range(1, PREFIXES)), *range(1, min(brokers, PREFIXES))}
    for count in sorted(number for number in numbers if number <= len(items)):
        space = share / items[count - 1]

        def enough(level: float, space: Floats = space, count: int = count) -> bool:
            return float(np.floor(level * space + 1e-9).sum()) >= count

        if not enough(bound):
            bound = _lowest(enough, bound)
    return bound


def _lowest(enough: Callable[[float], bool], low: float) -> float:
    """The lowest level that is enough, or a little less."""
    if enough(low):
        return low
    high = max(1.0, 2 * low)
    while not enough(high):
        low, high = high, 2 * high
        if high > 1e18:
            return np.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return low
