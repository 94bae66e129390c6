"""The cooperative sticky assignor: the sticky one, in two steps.

Members go on reading while the group rebalances. So a partition that another member still has is not given away yet: it
is left out, its owner gives it up, and the rebalance that follows gives it to the new member.

Example: m1 has a-0 and a-1, m2 joins. The sticky assignor gives a-1 to m2; here, m1 is left with a-0 and m2 with
nothing yet. In the next rebalance nobody claims a-1, and m2 gets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.assignors.claims import Claims
from rebalance_lib.assignors.group import NOBODY
from rebalance_lib.assignors.sticky import sticky

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.assignors.group import ConsumerGroup


def cooperative_sticky(group: ConsumerGroup, *, improved: bool = True) -> NDArray[np.int32]:
    """By row: the member that gets it, or nobody yet."""
    owner = sticky(group, improved=improved)
    held = _still_held(group, owner)
    return np.where(held, NOBODY, owner).astype(np.int32)


def _still_held(group: ConsumerGroup, owner: NDArray[np.int32]) -> NDArray[np.bool_]:
    """By row: whether it is given to a member while another one has it."""
    if group.is_uniform:
        claims = Claims.of(group)
        taken: NDArray[np.bool_] = (claims.owner != NOBODY) & (claims.owner != owner)
        return taken | claims.contested
    elsewhere = np.zeros(len(owner), np.bool_)
    own = np.zeros(len(owner), np.bool_)
    for member in range(len(group.members)):
        rows = np.array(group.owned_rows(member), np.int64)
        elsewhere[rows[owner[rows] != member]] = True
        own[rows[owner[rows] == member]] = True
    return elsewhere & ~own
