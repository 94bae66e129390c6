"""The least throttle at which every copy of a plan catches up, whatever is under way at the same time.

A copy whose share of the throttle is no more than what is written to its partition never catches up. Copies that share
a broker fairly are stuck together as soon as n of them are written to at 1/n of its throttle or more: none ends, so
none leaves its share to the others. The rate that a broker needs is thus the largest ``n * w``, where ``w`` is the
n-th largest write rate of its copies, and n no more than can be under way at the same time. Above it, at any moment, on
the broker that offers its copies the least, one of them gets more than is written to it: it ends, and all do in turn.

Example: partitions that are written to at 6, 5 and 1 bytes per second are copied to one broker. One at a time, it needs
more than 6; all together more than 10, since the first two get 5 each at 10; the third needs 3 and ends before them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan.waves import SLOT, slots_of
from rebalance_lib.reassignment.work import NOBODY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.plan.pace import Pace
    from rebalance_lib.reassignment.conditions import Conditions
    from rebalance_lib.reassignment.work import Work

DIGITS = 2  # that a throttle is rounded up to
MARGIN = 1.01  # above the rate at which copies are stuck for ever


@dataclass(frozen=True, slots=True)
class LeastThrottle:
    """Bytes per second; None where the present throttle is enough."""

    throttle: int | None = None
    log_dir_throttle: int | None = None

    @classmethod
    def of(cls, work: Work, pace: Pace, conditions: Conditions) -> LeastThrottle:
        """What the copies of a plan need."""
        needed, within = rates_needed(work, pace), work.copies.within
        between = float(needed[~within].max(initial=0.0)), conditions.between_brokers(pace)
        log_dirs = float(needed[within].max(initial=0.0)), conditions.between_log_dirs(pace)
        return cls(*(_throttle(least, conditions) if least >= rate else None for least, rate in (between, log_dirs)))


def rates_needed(work: Work, pace: Pace) -> NDArray[np.float64]:
    """By copy: the rate above which neither of its brokers is stuck with it; the largest is what the plan needs."""
    copies, senders = work.copies, work.leader[work.copies.partition]
    sent = ~copies.within & (senders != NOBODY) & work.alive[copies.broker]
    needed = np.zeros(len(sent))
    of_a_move = int(np.bincount(copies.partition).max(initial=1))  # copies that begin together, whatever the caps
    in_cluster = len(sent) if pace.moves_in_cluster is None else max(pace.moves_in_cluster, of_a_move)
    for chosen, brokers, cap in (
        (sent, copies.broker, pace.moves_in),
        (sent, senders, pace.moves_out),
        (copies.within, copies.broker, pace.moves_in),
    ):
        rows = np.flatnonzero(chosen)
        written = work.write_rate[copies.partition[rows]]
        order = rows[np.lexsort((-written, brokers[rows]))]
        for own in np.split(order, np.flatnonzero(np.diff(brokers[order])) + 1):
            together = np.minimum(np.arange(1, len(own) + 1), in_cluster)
            if cap is not None:
                smallest = np.minimum.accumulate(slots_of(copies.size[own]))
                together = np.minimum(together, np.maximum(cap * SLOT // smallest, of_a_move))
            rate = together * work.write_rate[copies.partition[own]]
            # Those that are written to more are stuck with it, too.
            needed[own] = np.maximum(needed[own], np.maximum.accumulate(rate[::-1])[::-1])
    return needed


def _throttle(rate: float, conditions: Conditions) -> int:
    least = rate * MARGIN / conditions.reached
    unit: int = 10 ** max(0, math.floor(math.log10(max(least, 1.0))) + 1 - DIGITS)
    return max(1, math.ceil(least / unit) * unit)
