"""Round robin: all partitions in order, dealt to the members in turn.

The turn goes round all members of the group; one that does not subscribe to the partition's topic is passed over, and
the next deal begins behind the last one. So partitions of a topic are dealt to its subscribers in a circle.

Example: C0 and C1 subscribe to t0 and t1 with three partitions each. C0 gets t0-0, t0-2, t1-1; C1 gets t0-1, t1-0,
t1-2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.assignors.group import ConsumerGroup


def round_robin(group: ConsumerGroup) -> NDArray[np.int32]:
    """By row: the member that gets it."""
    order = group.in_name_order()
    seat = np.empty(len(order), np.int64)
    seat[order] = np.arange(len(order))
    circles = [np.sort(seat[members]) for members in group.subscriber_sets]
    owner = np.empty(group.partitions, np.int32)
    turn = 0
    for topic, (begin, end) in enumerate(zip(group.offsets[:-1], group.offsets[1:], strict=True)):
        circle = circles[group.subscriber_set_of[topic]]
        first = np.searchsorted(circle, turn)
        seats = circle[(first + np.arange(end - begin)) % len(circle)]
        owner[begin:end] = order[seats]
        turn = (seats[-1] + 1) % len(order)
    return owner
