"""Leaders kept in some racks: who may lead where a partition has nobody there, and which partitions share out there.

A replica in sync in one of the racks is preferred to all others. A partition that has none there is led by whom it
would be without the rule, and counts in nobody's share.

Example: leaders are kept in rack a, with brokers 1 and 2. [3, 1] and [4, 2] become [1, 3] and [2, 4]; [3, 4] stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.scope import Scope

    Bools = NDArray[np.bool_]


def preferred(scope: Scope, offsets: NDArray[np.int64], broker: NDArray[np.int32], in_sync: Bools) -> Bools:
    """By slot: whether the replica may be made the leader, of those that may be if only being in sync counted."""
    placed = (broker >= 0) & in_sync
    chosen: Bools = placed & scope.may_lead[broker]
    if scope.may_lead_else is None:
        return chosen
    lengths = np.diff(offsets)
    none = np.repeat(~_any(offsets, chosen), lengths)
    return np.where(none, placed & scope.may_lead_else[broker], chosen)


def shared_partitions(scope: Scope, offsets: NDArray[np.int64], broker: NDArray[np.int32]) -> Bools | None:
    """By partition: whether those that share leaders could lead it; None for all."""
    if scope.may_lead_else is None:
        return None
    return _any(offsets, (broker >= 0) & scope.may_lead[broker])


def _any(offsets: NDArray[np.int64], marked: Bools) -> Bools:
    running = np.r_[0, np.cumsum(marked)]
    found: Bools = running[offsets[1:]] > running[offsets[:-1]]
    return found
