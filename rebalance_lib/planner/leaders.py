"""Leadership evened out by the order of replica lists, see ``compiled.leaders``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_lib.planner.compiled.leaders import Leaders, hand_over, keep_or_appoint, undo

REPEATS = 8


Sending = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""By partition, what its leader sends, then by broker: what it sends whoever leads, and what it can at most."""


def without_ceiling(partitions: int, brokers: int) -> Sending:
    """What leaders send, what brokers do and may, where it has no say."""
    return np.zeros(partitions), np.zeros(brokers), np.full(brokers, np.inf)


def sending_of(sending: Sending, rows: NDArray[np.int64], leader: NDArray[np.int32]) -> Sending:
    """The same for some partitions, where all others keep their leaders."""
    sent, base, most = sending
    other = leader >= 0
    other[rows] = False
    return sent[rows], base + np.bincount(leader[other], sent[other], minlength=len(base)), most


def even_leaders(leaders: Leaders, *, even: bool = True) -> NDArray[np.int32]:
    """The leader of each partition, from who leads at the start; -1 only where no replica may lead.

    Leaders are appointed where there is none, and changed beyond that only if they are to be `even`.
    """
    start = leaders.leads.copy()
    keep_or_appoint(leaders)
    for _ in range(REPEATS if even else 0):
        if np.all(leaders.counts <= leaders.high) and np.all(leaders.counts >= leaders.low):
            break
        # A chain may open a way that was closed before: only when none is left does planning again find nothing.
        before = leaders.leads.copy()
        finished = hand_over(leaders)
        undo(leaders, start)
        if not finished or np.array_equal(leaders.leads, before):
            break
    found: NDArray[np.int32] = leaders.leads
    return found
