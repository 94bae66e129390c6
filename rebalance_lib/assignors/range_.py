"""Range: each topic for itself, cut into one run of partitions per subscriber.

With 5 partitions and 3 subscribers each gets 1, and the first two, in the order of their names, one more: [0, 1], [2,
3], [4]. Members get the same numbers of all topics with as many partitions and the same subscribers, so that
partitions with the same number meet in one member.

*Racks.* Where members say in which rack they are, and not every partition is in every rack, partitions first go to
members with a replica in their rack, with the same numbers of partitions for each. Topics with the same subscribers and
as many partitions go together: a partition number goes to a member that has a replica of it nearby in all of them. What
is left is shared out as above.

Example: C0 in rack a and C1 in rack b subscribe to t with t-0 and t-1 in b, t-2 and t-3 in a. C0 gets 2 and 3, C1
gets 0 and 1.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.assignors.racks import minds_racks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rebalance_lib.assignors.group import ConsumerGroup


def range_(group: ConsumerGroup) -> NDArray[np.int32]:
    """By row: the member that gets it."""
    order = group.in_name_order()
    seat = np.argsort(order)
    subscriber_sets = [members[np.argsort(seat[members])] for members in group.subscriber_sets]
    if group.has_racks:
        topics = [
            _Topic(group, topic, subscriber_sets[group.subscriber_set_of[topic]].tolist())
            for topic in range(len(group.topics))
        ]
        if any(topic.minds_racks for topic in topics):
            return _with_racks(group, topics)
    owner = np.empty(group.partitions, np.int32)
    for topic, (begin, end) in enumerate(zip(group.offsets[:-1], group.offsets[1:], strict=True)):
        members = subscriber_sets[group.subscriber_set_of[topic]]
        each, more = divmod(int(end - begin), len(members))
        taking = members if each else members[:more]
        owner[begin:end] = np.repeat(taking, each + (np.arange(len(taking)) < more))
    return owner


class _Topic:
    """A topic while it is shared out."""

    def __init__(self, group: ConsumerGroup, topic: int, members: list[int]) -> None:
        self.first = int(group.offsets[topic])
        self.racks = group.racks_of(topic)
        self.rack_of = {member: group.rack_of(member) for member in members}
        self.each, self.more = divmod(len(self.racks), len(members))
        self.taken = dict.fromkeys(members, 0)
        self.owner: dict[int, int] = {}
        self.minds_racks = minds_racks({rack for rack in self.rack_of.values() if rack}, self.racks)

    def room(self, member: int) -> int:
        return max(0, self.each + (self.more > 0) - self.taken[member])

    def give(self, member: int, partitions: list[int]) -> None:
        for partition in partitions:
            self.owner[partition] = member
        self.taken[member] += len(partitions)
        if partitions and self.taken[member] > self.each:
            self.more -= 1

    def give_ranges(self, *, nearby: bool) -> None:
        """Give each member as many as it has room for; nearby, only such as have a replica in its rack."""
        there: dict[str | None, Iterator[int]] = {}  # by rack: its partitions, as far as nobody has looked at them yet
        for member in self.taken:
            rack = self.rack_of[member] if nearby else None
            if rack not in there:
                there[rack] = self._partitions_in(rack)
            free = (partition for partition in there[rack] if partition not in self.owner)
            self.give(member, list(islice(free, self.room(member))))

    def _partitions_in(self, rack: str | None) -> Iterator[int]:
        return (partition for partition, racks in enumerate(self.racks) if rack is None or rack in racks)


def _with_racks(group: ConsumerGroup, topics: list[_Topic]) -> NDArray[np.int32]:
    together: dict[tuple[int, int], list[_Topic]] = {}
    for place, topic in enumerate(topics):
        if any(topic.rack_of.values()):
            together.setdefault((int(group.subscriber_set_of[place]), len(topic.racks)), []).append(topic)
    for some in together.values():
        if len(some) > 1:
            _give_together(some)
        elif some[0].minds_racks:
            some[0].give_ranges(nearby=True)
    owner = np.empty(group.partitions, np.int32)
    for topic in topics:
        topic.give_ranges(nearby=False)
        for partition, member in topic.owner.items():
            owner[topic.first + partition] = member
    return owner


def _give_together(topics: list[_Topic]) -> None:
    """Give each partition number to the first member with room that has a replica of it nearby in all topics.

    All topics have the same members and as many partitions, and get the same owners here: each has the same room.
    """
    first = topics[0]
    seat = {member: place for place, member in enumerate(first.taken)}
    waiting: dict[str | None, deque[int]] = {}  # by rack: members that may have room, in order
    for member in first.taken:
        waiting.setdefault(first.rack_of[member], deque()).append(member)
    for partition in range(len(first.racks)):
        everywhere = frozenset.intersection(*(topic.racks[partition] for topic in topics))
        for rack in (None, *everywhere):
            while waiting.get(rack) and not first.room(waiting[rack][0]):
                waiting[rack].popleft()
        heads = [waiting[rack][0] for rack in (None, *everywhere) if waiting.get(rack)]
        if heads:
            for topic in topics:
                topic.give(min(heads, key=seat.__getitem__), [partition])
