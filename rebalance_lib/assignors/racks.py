"""Where members and partitions are, for sticky assignors.

Racks count if some member is in a rack that has partitions, and not every partition is in all of those racks: else they
make no difference.

Example: m1 is in rack a, m2 says nothing; t-0 has replicas in a and b, t-1 in b. The racks are [a, b], the members' are
[0, -1], and the partitions are present in [[1, 1], [0, 1]]. t-1 does not match m1; everything matches m2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.assignors.group import ConsumerGroup

NO_RACK = -1


def minds_racks(members: set[str], partitions: list[frozenset[str]]) -> bool:
    """Whether racks can make a difference: members are where partitions are, and not all partitions are everywhere."""
    everywhere = frozenset().union(*partitions)
    return not members.isdisjoint(everywhere) and any(racks != everywhere for racks in partitions)


@dataclass(frozen=True, eq=False)
class GroupRacks:
    """The racks of a group's members and of the partitions that they can have."""

    group: ConsumerGroup

    @cached_property
    def _of_rows(self) -> list[frozenset[str]]:
        return [racks for topic in range(len(self.group.topics)) for racks in self.group.racks_of(topic)]

    @cached_property
    def _names(self) -> dict[str, int]:
        members = {one.rack for one in self.group.subscriptions.values() if one.rack}
        return {rack: place for place, rack in enumerate(sorted(members.union(*self._of_rows)))}

    @cached_property
    def member_rack(self) -> NDArray[np.int32]:
        """By member: its rack, or `NO_RACK`."""
        members = range(len(self.group.members))
        return np.array([self._names.get(self.group.rack_of(m) or "", NO_RACK) for m in members], np.int32)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """By row and rack: whether there is a replica."""
        if not self.count:
            return np.ones((1, 1), np.bool_)
        present = np.zeros((len(self._of_rows), len(self._names)), np.bool_)
        for row, racks in enumerate(self._of_rows):
            for rack in racks:
                present[row, self._names[rack]] = True
        return present

    @cached_property
    def count(self) -> bool:
        """Whether partitions are matched with members by racks."""
        if not self.group.has_racks:
            return False
        return minds_racks({one.rack for one in self.group.subscriptions.values() if one.rack}, self._of_rows)

    def matching(self, owner: NDArray[np.int32]) -> NDArray[np.bool_]:
        """By row: whether it has a replica in its owner's rack, or racks do not matter."""
        if not self.count:
            return np.ones(len(owner), np.bool_)
        rack = self.member_rack[owner]
        anywhere: NDArray[np.bool_] = rack == NO_RACK
        return anywhere | self.present[np.arange(len(owner)), rack]

    def by_members_near(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows, those first that the fewest members are near to."""
        if not self.group.has_racks:
            return rows
        members = np.bincount(self.member_rack[self.member_rack != NO_RACK], minlength=len(self._names))
        near = [sum(int(members[self._names[rack]]) for rack in self._of_rows[row]) for row in rows.tolist()]
        return rows[np.argsort(near, kind="stable")]
