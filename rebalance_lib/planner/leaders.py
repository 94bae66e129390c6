"""Leadership evened out by the order of replica lists, see ``compiled.leaders``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.compiled.leaders import hand_over, keep_or_appoint, undo
from rebalance_lib.planner.shares import band

if TYPE_CHECKING:
    from numpy.typing import NDArray

REPEATS = 8


def even_leaders(
    *,
    offsets: NDArray[np.int64],
    broker: NDArray[np.int32],
    leader: NDArray[np.int32],
    movable: NDArray[np.uint8],
    may_lead: NDArray[np.uint8],
    share: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.int32]:
    """The leader of each partition; -1 only where no replica may lead. `leader` is who led at the start."""
    share = np.round(share, 6)  # a share of 6 may have come out as 5.999999
    low, high = (edge.astype(np.int64) for edge in band(share, tolerance))
    leads = leader.copy()
    counts = keep_or_appoint(offsets, broker, leads, movable, may_lead, share)
    for _ in range(REPEATS):
        if np.all(counts <= high) and np.all(counts >= low):
            break
        # A chain may open a way that was closed before: only when none is left does planning again find nothing.
        before = leads.copy()
        finished = hand_over(offsets, broker, leads, movable, may_lead, share, low, high, counts)
        undo(offsets, broker, leads, leader, may_lead, low, high, counts)
        if not finished or np.array_equal(leads, before):
            break
    return leads
