"""What Kafka's search among single moves overlooks where members subscribe to different topics.

*Balance.* A member may be able to give nothing to a much smaller one directly, but to a third one, which can give
something else to it. As long as there is such a chain from a member to one that has at least two less, moving a
partition along each of its links lowers the balance score; when there is none left, no assignment has a lower one.

*Movement.* Of all assignments with that score, one is wanted that keeps the most partitions where they were.
Partitions are exchanged in circles, or along chains between members whose sizes differ by one, as long as that brings
more of them back than it takes away. When there is no such circle left, no assignment with this score keeps more: it
is a flow of least cost.

Example: C0 subscribes to a, C1 to a and b, C2 to b, which have three partitions each. C0 has all of a, C1 two of b,
C2 one. Nobody has two more than one that it could give to. But C1 gives one of b to C2 while C0 gives one of a to C1:
all have two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.assignors.compiled.improve import bring_back, even_out
from rebalance_lib.assignors.group import NOBODY
from rebalance_lib.assignors.mixed_subscriptions import is_subscribed, sizes, subscribers_by_topic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.assignors.claims import Claims
    from rebalance_lib.assignors.group import ConsumerGroup


def improve(group: ConsumerGroup, claims: Claims, owner: NDArray[np.int32]) -> None:
    """Change owners in place to the best balance score, with as few changes of hands as it allows."""
    if not len(owner):
        return
    readable = (group.row_topic, *subscribers_by_topic(group))
    size = sizes(group, owner)
    even_out(*readable, owner, size)
    prior = np.where(is_subscribed(group, claims.owner), claims.owner, NOBODY).astype(np.int32)
    if np.any((prior != NOBODY) & (prior != owner)):
        bring_back(*readable, prior, owner, size)
