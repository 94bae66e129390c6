"""Each broker's fair share of a load, and what brokers should give and take to come near it.

*Shares.* A load is shared out by the brokers' weights, with two limits. A rack cannot take more than its limit: with as
many replicas as racks, each rack holds one copy of everything, and the brokers of a small rack hold more than others.
A broker cannot hold less than what may not leave it, nor, if it may take nothing, more than it holds now.

*Give and take.* A broker is out of balance when it is further from its share than the tolerance. The least amount that
any plan must move is the larger of two: what lies above the upper edge, and what lacks below the lower one. As much as
that is taken from the top down to one level, and given to the bottom up to another: whoever lies between the levels is
left alone.

Example: with a share of 100 each and a tolerance of 10 %, loads of 130, 104 and 66 are out of balance. The plan aims at
a tenth of the tolerance: 32 lie above 101, 33 lack below 99. So 33 move: the first two brokers give down to 100.5, and
the last takes up to 99.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_lib.planner.compiled.level import STEPS, Limits, even_level

Floats = NDArray[np.float64]

AIM = 0.1  # how much of the tolerance a plan leaves, once it has to move anything


def even_shares(
    total: float,
    weights: Floats,
    rack: NDArray[np.int32],
    rack_limit: Floats,
    *,
    at_least: Floats | None = None,
    at_most: Floats | None = None,
) -> Floats:
    """The most even split of a load over brokers of these weights, within the limits of racks and brokers."""
    if not weights.any():
        return np.zeros_like(weights)
    at_least = np.zeros(len(weights)) if at_least is None else at_least.astype(np.float64)
    at_most = np.full(len(weights), np.inf) if at_most is None else at_most.astype(np.float64)
    limits = Limits(weights.astype(np.float64), rack, rack_limit.astype(np.float64), at_least, at_most)
    shares: Floats = even_level(float(total), limits)
    return shares


def band(share: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Whole numbers near a share: within the tolerance, and never narrower than the numbers beside it."""
    share = np.round(share, 6)  # a share of 6 may have come out as 5.999999
    low = np.minimum(np.floor(share), np.ceil(share * (1 - tolerance)))
    return low, np.maximum(np.ceil(share), np.floor(share * (1 + tolerance)))


@dataclass(frozen=True, slots=True)
class Exchange:
    """What each broker should give and take."""

    give: NDArray[np.int64]
    take: NDArray[np.int64]

    @property
    def amount(self) -> int:
        """How much changes hands."""
        return int(self.give.sum())


def exchange(
    load: Floats,
    share: Floats,
    tolerance: float,
    *,
    givers: NDArray[np.bool_],
    takers: NDArray[np.bool_],
    limit: float = np.inf,
) -> Exchange:
    """The least that has to change hands to come within a part of the tolerance, or as much of it as the limit allows.

    Nothing changes hands while all who may give or take are within the tolerance.
    """
    aim = AIM * tolerance
    needed = 0.0
    if np.any((load > share * (1 + tolerance) + 0.5) & givers):
        needed = np.maximum(0, load - share * (1 + aim))[givers].sum()
    if np.any((load < share * (1 - tolerance) - 0.5) & takers):
        needed = max(needed, np.maximum(0, share * (1 - aim) - load)[takers].sum())
    spare = np.where(givers, np.maximum(0, load - share), 0)
    lack = np.where(takers, np.maximum(0, share - load), 0)
    amount = min(needed, spare.sum(), lack.sum(), limit)
    give = _cut(np.where(givers, load, 0), share, amount)
    take = _cut(np.where(takers, -load, -np.inf), -share, amount)
    return Exchange(give, take)


def _cut(load: Floats, share: Floats, amount: float) -> NDArray[np.int64]:
    """What lies above one level, in terms of shares, such that it comes to the amount."""
    if amount <= 0:
        return np.zeros(len(load), np.int64)
    width = np.abs(share)
    ratio = np.divide(load, width, out=np.full(len(load), -np.inf), where=share != 0)
    low, high = np.sign(share.sum()), float(max(ratio.max(), 1.0))
    above = np.empty(len(load))
    for _ in range(STEPS):
        level = (low + high) / 2
        if not low < level < high:
            break
        # Into one array: to make others in every step would take most of the time.
        np.subtract(load, np.multiply(width, level, out=above), out=above)
        if np.add.reduce(np.maximum(above, 0, out=above)) >= amount:
            low = level
        else:
            high = level
    cut: NDArray[np.int64] = np.maximum(0, load - low * width).astype(np.int64)
    return cut
