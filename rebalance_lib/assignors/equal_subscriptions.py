"""The sticky assignor where all members subscribe to the same topics.

Everybody gets the same number of partitions, ``least``, or one more: as many members as there are partitions over. So
nothing needs to be searched for:

1. Each member keeps what it had, up to its number. Members are gone through in the order of a Java HashMap, which
   decides who of those that had more keeps one more.
2. What is left is dealt in turn, one at a time, to the members that have less than ``least``, until all have it.
3. The rest goes, one each, to members that have just ``least``: first to those that had it from the beginning, then
   in the order in which they got there.

With racks, members keep only partitions with a replica in their rack, and before steps 2 and 3 whatever can be dealt
within a rack is.

Example: m1 had a-0, a-1, a-2 and m2 is new: a and b have three partitions each, so both get 3. m1 keeps its three; m2
gets b-0, b-1, b-2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.assignors.group import NOBODY
from rebalance_lib.assignors.racks import NO_RACK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.assignors.claims import Claims
    from rebalance_lib.assignors.group import ConsumerGroup
    from rebalance_lib.assignors.racks import GroupRacks


def equal_subscriptions(group: ConsumerGroup, claims: Claims, racks: GroupRacks) -> NDArray[np.int32]:
    """By row: the member that gets it."""
    filling = _Filling.of(group)
    filling.keep(group, _kept(claims, racks), group.in_hash_order())
    left = racks.by_members_near(np.flatnonzero(filling.owner == NOBODY))
    filling.below.sort()
    filling.at.sort()
    if racks.count:
        left = filling.deal_nearby(left, racks)
    filling.deal(left)
    return filling.owner


def _kept(claims: Claims, racks: GroupRacks) -> NDArray[np.int32]:
    """By row: the member that may keep it."""
    return np.where(claims.contested | ~racks.matching(claims.owner), NOBODY, claims.owner)


@dataclass(eq=False)
class _Filling:
    """What members have on the way: ``below`` lacks some of ``least``, ``at`` has just that and may get one more."""

    least: int
    over: int  # members that may still get one more than `least`
    owner: NDArray[np.int32]
    size: NDArray[np.int64]
    below: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, group: ConsumerGroup) -> _Filling:
        least, over = divmod(group.partitions, len(group.members))
        size = np.zeros(len(group.members), np.int64)
        return cls(least, over, np.full(group.partitions, NOBODY, np.int32), size)

    def keep(self, group: ConsumerGroup, kept: NDArray[np.int32], members: list[int]) -> None:
        """Step 1. A member that must give some up keeps those with the lowest numbers."""
        rows = np.lexsort((group.row_topic, group.row_number, kept))
        ends = np.searchsorted(kept[rows], np.arange(len(members) + 1))
        for member in members:
            had = rows[ends[member] : ends[member + 1]]
            stays = self._stays(member, len(had))
            self.owner[had[:stays]] = member
            self.size[member] = stays

    def _stays(self, member: int, had: int) -> int:
        if had < self.least:
            self.below.append(member)
            return had
        if had > self.least and self.over:
            self.over -= 1
            if not self.over:
                self.at.clear()
            return self.least + 1
        if self.over:
            self.at.append(member)
        return self.least

    def deal(self, rows: NDArray[np.int64]) -> None:
        """Steps 2 and 3."""
        below = np.array(self.below, np.int64)
        lacks = self.least - self.size[below]
        # By round, and within one in order: who is given a partition, and whether it is the last that it lacks.
        turns = np.repeat(np.arange(len(below)), lacks)
        rounds = np.arange(len(turns)) - np.repeat(np.cumsum(lacks) - lacks, lacks)
        order = np.lexsort((turns, rounds))
        given = below[turns[order]]
        complete = given[rounds[order] == lacks[turns[order]] - 1]
        takers = np.r_[given, np.array(self.at, np.int64), complete][: len(rows)]
        self.owner[rows] = takers
        self.size += np.bincount(takers, minlength=len(self.size))

    def deal_nearby(self, rows: NDArray[np.int64], racks: GroupRacks) -> NDArray[np.int64]:
        """Deal what can be dealt within racks, and give back what cannot."""
        left, turn = [], 0
        for row in rows.tolist():
            place = _next_near(row, self.below, turn, racks)
            if place is not None:
                turn = self._give_one_below(row, place)
            elif (place := _next_near(row, self.at, 0, racks)) is not None:
                self._give(row, self.at.pop(place))
                self.over -= 1
                if not self.over:
                    self.at.clear()
            else:
                left.append(row)
        return np.array(left, np.int64)

    def _give_one_below(self, row: int, place: int) -> int:
        """Give a partition to a member of those below; whose turn is next."""
        member = self.below[place]
        self._give(row, member)
        if self.size[member] >= self.least:
            del self.below[place]
            if self.over:
                self.at.append(member)
        else:
            place += 1
        return place % len(self.below) if self.below else 0

    def _give(self, row: int, member: int) -> None:
        self.owner[row] = member
        self.size[member] += 1


def _next_near(row: int, members: list[int], first: int, racks: GroupRacks) -> int | None:
    """The next in turn that is in a rack of the partition."""
    for step in range(len(members)):
        place = (first + step) % len(members)
        rack = racks.member_rack[members[place]]
        if rack != NO_RACK and racks.present[row, rack]:
            return place
    return None
