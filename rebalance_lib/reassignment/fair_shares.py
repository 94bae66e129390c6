"""Who gets how much where many copies share the brokers' limits: max-min fair shares.

Goal: no copy can be given more without taking it from one that has no more than it. Kafka does not promise that, but a
fetcher takes its partitions in turn, so that copies between the same brokers come along alike.

Algorithm: a limit offers each of its copies an equal part of what it has left. A limit whose offer is the lowest that
any of its copies gets from either side is where these copies wait: they are settled at that rate, which leaves the rest
of what they were offered elsewhere to others. Offers only rise as copies settle, so all such limits can be settled at
once, and a few rounds do, however many copies there are.

Example: broker 1 sends to 2 and to 3, broker 4 sends to 3, and each may send and receive 10. Broker 1 offers 5 to each
of its two, broker 3 offers 5 to each of its two: all three copies get 5. Without the copy from 4 to 3, nothing changes
for broker 1; without the one from 1 to 2, the copies to 3 still get 5 each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAME = 1 - 1e-12


def fair_shares(one: NDArray[np.int64], other: NDArray[np.int64], limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of each copy, given the two limits that it counts against; a limit may be infinite, not both."""
    shares = np.zeros(len(one))
    free = limits.astype(np.float64)
    left = np.arange(len(one))
    while len(left):
        first, second = one[left], other[left]
        users = np.bincount(first, minlength=len(free)) + np.bincount(second, minlength=len(free))
        offer = np.where(users > 0, free / np.maximum(users, 1), np.inf)
        gets = np.minimum(offer[first], offer[second])
        lowest = np.full(len(free), np.inf)
        np.minimum.at(lowest, first, gets)
        np.minimum.at(lowest, second, gets)
        waits = lowest >= offer * _SAME
        settled = waits[first] | waits[second]
        shares[left[settled]] = gets[settled]
        for side in (first, second):
            free -= np.bincount(side[settled], gets[settled], minlength=len(free))
        np.maximum(free, 0.0, out=free)
        left = left[~settled]
    return shares
