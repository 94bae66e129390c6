"""Who had which partition before: what members claim, and whom to believe.

Each member tells what it owned and in which generation. If two claim a partition, the later generation is right, and
the other one's claim is remembered as where the partition was before. Two claims of the same generation cannot both
be true: none is believed.

Example: m1 claims a-0 of generation 2, m2 claims it of generation 1. m1 owns it, and it was m2's before. Had both
claimed it of generation 2, nobody would own it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.assignors.group import NOBODY
from rebalance_lib.assignors.subscription import NO_GENERATION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.assignors.group import ConsumerGroup


@dataclass(frozen=True, eq=False)
class Claims:
    """By row, as numbers of members.

    Args:
        owner: Who is believed to have owned it.
        previous: Who claims it of an earlier generation than the group's last.
        contested: Whether two members claimed it of the same generation.
    """

    owner: NDArray[np.int32]
    previous: NDArray[np.int32]
    contested: NDArray[np.bool_]

    @classmethod
    def of(cls, group: ConsumerGroup) -> Claims:
        """What the members of a group claim."""
        owner = np.full(group.partitions, NOBODY, np.int32)
        previous = np.full(group.partitions, NOBODY, np.int32)
        contested = np.zeros(group.partitions, np.bool_)
        last = np.full(group.partitions, NOBODY, np.int32)  # who claimed it last, be it believed or not
        generation = [max(group.subscriptions[member].generation, NO_GENERATION) for member in group.members]
        newest = max(generation, default=NO_GENERATION)
        for member in group.in_hash_order():
            for row in group.owned_rows(member):
                other = last[row]
                if generation[member] < newest and _is_later(generation, member, previous[row]):
                    previous[row] = member
                if other == member or (other != NOBODY and generation[member] < generation[other]):
                    continue
                believed = other == NOBODY or generation[member] > generation[other]
                contested[row] |= not believed
                owner[row] = member if believed else NOBODY
                last[row] = member
        return cls(owner, previous, contested)


def _is_later(generation: list[int], member: int, other: int) -> bool:
    return other == NOBODY or generation[member] > generation[other]
