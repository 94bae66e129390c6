"""A consumer group as columns: partitions are rows, members are numbers.

Rows go by topic, in Java's order of names, then by partition. Members are numbered in the order of their ids. The
subscribers of a topic are a sorted set of such numbers. Many topics share one: a group whose members all want the same
has one set, however many topics there are.

Example: m1 subscribes to a and b, m2 to b; a has 2 partitions, b has 1. Rows 0 and 1 are a-0 and a-1, row 2 is b-0. The
sets of subscribers are [0] of a and [0, 1] of b.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.assignors.java_order import hash_map_order, sort_key, string_hash
from rebalance_lib.assignors.subscription import Assignment, Subscription

if TYPE_CHECKING:
    from numpy.typing import NDArray

Racks = Mapping[str, Sequence[Collection[str | None]]]
"""By topic and partition: the racks of its replicas."""

NOBODY = -1


@dataclass(frozen=True, eq=False)
class ConsumerGroup:
    """Members, the partitions that they can have, and who can have which.

    Args:
        subscriptions: By member, in the order in which the coordinator lists them.
        partitions_per_topic: Topics that are not here, or have none, are left out: nothing is known of them.
        racks: Of the partitions' replicas; where a topic has none, its partitions are in no rack.
    """

    subscriptions: Mapping[str, Subscription]
    partitions_per_topic: Mapping[str, int]
    racks: Racks = field(default_factory=dict)

    @cached_property
    def members(self) -> list[str]:
        """Their ids, in order."""
        return sorted(self.subscriptions, key=sort_key)

    @cached_property
    def number(self) -> dict[str, int]:
        """A member's place in `members`."""
        return {member: place for place, member in enumerate(self.members)}

    @cached_property
    def _wanted(self) -> dict[frozenset[str], list[int]]:
        """The different sets of topics, each with the members that subscribe to it."""
        listed: dict[tuple[str, ...], list[int]] = {}
        for place, member in enumerate(self.members):
            listed.setdefault(tuple(self.subscriptions[member].topics), []).append(place)
        wanted: dict[frozenset[str], list[int]] = {}
        for topics, members in listed.items():
            wanted.setdefault(frozenset(topics), []).extend(members)
        return wanted

    @property
    def is_uniform(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len(self._wanted) == 1

    @cached_property
    def topics(self) -> list[str]:
        """Those that somebody subscribes to and that have partitions, in order."""
        known = frozenset().union(*self._wanted)
        return sorted((topic for topic in known if self.partitions_per_topic.get(topic, 0) > 0), key=sort_key)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each topic's rows begin, and where the last one's end."""
        counts = [self.partitions_per_topic[topic] for topic in self.topics]
        return np.append(0, np.cumsum(counts, dtype=np.int64))

    @property
    def partitions(self) -> int:
        """How many there are to share."""
        return int(self.offsets[-1])

    @cached_property
    def row_topic(self) -> NDArray[np.int32]:
        """By row: the place of its topic."""
        topics: NDArray[np.int32] = np.arange(len(self.topics), dtype=np.int32)
        return np.repeat(topics, np.diff(self.offsets))

    @cached_property
    def row_number(self) -> NDArray[np.int64]:
        """By row: the number of its partition."""
        numbers: NDArray[np.int64] = np.arange(self.partitions) - self.offsets[self.row_topic]
        return numbers

    @cached_property
    def row_hash(self) -> NDArray[np.int64]:
        """By row: the hash by which Java's maps choose a bucket for the partition."""
        topics = np.array([string_hash(topic) for topic in self.topics], np.int64)
        hashes = (31 * (31 + self.row_number) + topics[self.row_topic]) & 0xFFFFFFFF
        return hashes ^ hashes >> 16

    @cached_property
    def _subscriber_sets(self) -> tuple[list[NDArray[np.int32]], NDArray[np.int32]]:
        found = [list(map(self._topic_number.get, wanted, repeat(NOBODY))) for wanted in self._wanted]
        topic = np.array(list(chain.from_iterable(found)), np.int32)
        wanting = np.repeat(np.arange(len(found), dtype=np.int32), [len(one) for one in found])
        order = np.argsort(topic, kind="stable")
        ends = np.searchsorted(topic[order], np.arange(len(self.topics) + 1))
        known: dict[bytes, int] = {}  # topics that the same of `_wanted` have in them have the same subscribers
        of_topic = [
            known.setdefault(wanting[order[begin:end]].tobytes(), len(known)) for begin, end in pairwise(ends.tolist())
        ]
        members = list(self._wanted.values())
        subscriber_sets = [
            np.array(sorted(chain.from_iterable(members[n] for n in np.frombuffer(those, np.int32))), np.int32)
            for those in known
        ]
        return subscriber_sets, np.array(of_topic, np.int32)

    @property
    def subscriber_sets(self) -> list[NDArray[np.int32]]:
        """The different sets of subscribers that topics have."""
        return self._subscriber_sets[0]

    @property
    def subscriber_set_of(self) -> NDArray[np.int32]:
        """By topic: which of `subscriber_sets` is its own."""
        return self._subscriber_sets[1]

    def subscribers(self, topic: int) -> NDArray[np.int32]:
        """The members that subscribe to a topic."""
        return self.subscriber_sets[int(self.subscriber_set_of[topic])]

    def row(self, topic: str, partition: int) -> int | None:
        """The row of a partition; None if there is no such partition to share."""
        place = self._topic_number.get(topic)
        if place is None or not 0 <= partition < self.partitions_per_topic[topic]:
            return None
        return int(self.offsets[place]) + partition

    def owned_rows(self, member: int) -> list[int]:
        """The rows that a member says it owned; partitions that are no more are left out."""
        owned = self.subscriptions[self.members[member]].owned
        return [row for topic, partition in owned if (row := self.row(topic, partition)) is not None]

    @cached_property
    def _topic_number(self) -> dict[str, int]:
        return {topic: place for place, topic in enumerate(self.topics)}

    def racks_of(self, topic: int) -> list[frozenset[str]]:
        """By partition of a topic: the racks where it has replicas."""
        count = int(self.offsets[topic + 1] - self.offsets[topic])
        known = self.racks.get(self.topics[topic], ())
        racks = [frozenset(rack for rack in one if rack is not None) for one in known[:count]]
        return racks + [frozenset()] * (count - len(racks))

    def rack_of(self, member: int) -> str | None:
        """Where a member is, if it says so."""
        return self.subscriptions[self.members[member]].rack or None

    @cached_property
    def has_racks(self) -> bool:
        """Whether any member says where it is."""
        return any(one.rack for one in self.subscriptions.values())

    def in_hash_order(self) -> list[int]:
        """The members as Java's clients go through them."""
        return [self.number[member] for member in hash_map_order(self.subscriptions)]

    def in_name_order(self) -> NDArray[np.int32]:
        """The members by ``group.instance.id``, those without one behind them by their ids."""

        def key(place: int) -> tuple[bool, bytes]:
            instance = self.subscriptions[self.members[place]].instance
            return instance is None, sort_key(self.members[place] if instance is None else instance)

        return np.array(sorted(range(len(self.members)), key=key), np.int32)

    def assignment(self, owner: NDArray[np.int32]) -> Assignment:
        """What each member has, given the owner of each row."""
        names = np.array(self.topics, object)[self.row_topic] if self.topics else np.empty(0, object)
        rows = np.argsort(owner, kind="stable")
        ends = np.searchsorted(owner[rows], np.arange(len(self.members) + 1))
        listed = list(zip(names[rows].tolist(), self.row_number[rows].tolist(), strict=True))
        return {
            member: listed[ends[self.number[member]] : ends[self.number[member] + 1]] for member in self.subscriptions
        }
