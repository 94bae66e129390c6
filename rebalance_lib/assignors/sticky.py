"""The sticky assignor: as balanced as can be, and as much as can be stays where it was.

Members tell what they had; `claims` says whom to believe. Then there are two ways. Where all members subscribe to the
same topics, the numbers are known beforehand (`equal_subscriptions`). Where they do not, partitions are moved as long
as that helps (`mixed_subscriptions`), and what that search overlooks is put right (`improvement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lib.assignors.claims import Claims
from rebalance_lib.assignors.equal_subscriptions import equal_subscriptions
from rebalance_lib.assignors.improvement import improve
from rebalance_lib.assignors.mixed_subscriptions import mixed_subscriptions
from rebalance_lib.assignors.racks import GroupRacks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rebalance_lib.assignors.group import ConsumerGroup


def sticky(group: ConsumerGroup, *, improved: bool = True) -> NDArray[np.int32]:
    """By row: the member that gets it.

    Args:
        group: The group.
        improved: Whether to put right what Kafka's search overlooks; without it, the answer is what clients reach.
    """
    claims, racks = Claims.of(group), GroupRacks(group)
    if group.is_uniform:
        return equal_subscriptions(group, claims, racks)
    owner = mixed_subscriptions(group, claims, racks)
    if improved and not racks.count:
        improve(group, claims, owner)
    return owner
