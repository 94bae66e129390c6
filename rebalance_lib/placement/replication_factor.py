"""Changing the number of replicas of partitions that exist, moving nothing that can stay.

Goal:
    Every partition gets the replication factor asked for; its replicas stand in as many racks as can be;
    the counts of replicas per broker come closer to each other.

Constraints:
    Nothing moves: to go up, replicas are only added, to go down, they are only dropped. The order of those
    that stay stays, so the preferred leader does too. The leader of the moment is never dropped. A
    partition that has the factor already is left as it is. The same question always has the same answer.

Algorithm:
    Partitions are taken in the order given; the counts of replicas per broker are kept up to date between
    them.

    Up: a replica is added at the end of the list, in a rack that holds the fewest replicas of the
    partition; there, on the broker with the fewest replicas of all, the lowest id first. Each rack keeps
    its brokers in a heap by count, so that a choice costs a look at each rack, not at each broker.

    Down: the replica to drop is one on a broker that is gone; else one in the rack that holds the most
    replicas of the partition; among those the one on the broker with the most replicas of all; among those
    the last in the list. The leader is left out of the choice, and so is the preferred leader while there
    is another.

    Where racks do not count (see ``RackMode``) all brokers are as if in one rack.

Example:
    Brokers 0, 1 in rack ``a``, 2, 3 in rack ``b``. Two partitions on 0, 1 and 0, 2, from two to three
    replicas. Partition 0 has none in rack b, where broker 3 holds nothing yet and broker 2 one replica.
    Partition 1 has one in each rack; of brokers 1 and 3, with one replica each, the lower id gets it.

    | partition | two replicas | three replicas | two again |
    |-----------|--------------|----------------|-----------|
    | 0         | 0, 1         | 0, 1, 3        | 0, 3      |
    | 1         | 0, 2         | 0, 2, 1        | 0, 2      |

    Down again, both partitions give up broker 1, because each has two replicas in rack a.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeVar

from rebalance_lib.placement.brokers import RackMode, brokers_in_mode, check_replication_factor

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

    from rebalance_lib.topology import Broker

Partition = TypeVar("Partition", bound="Hashable")


def change_replication_factor(
    assignment: Mapping[Partition, Sequence[int]],
    brokers: Iterable[Broker],
    replication_factor: int,
    *,
    leaders: Mapping[Partition, int] | None = None,
    replica_counts: Mapping[int, int] | None = None,
    rack_mode: RackMode = RackMode.ENFORCED,
) -> dict[Partition, list[int]]:
    """Give each partition as many replicas as asked for, with the least movement there is.

    Args:
        assignment: the partitions to change with their replicas, preferred leader first.
        brokers: the brokers that can hold replicas; replicas on others are the first to be dropped.
        replication_factor: how many replicas each partition shall have.
        leaders: the broker that leads each partition at the moment; the preferred leader where left out.
        replica_counts: how many replicas each broker holds in the whole cluster before the change; counted
            from ``assignment`` if left out.
        rack_mode: whether racks count.

    Returns:
        The new replicas of every partition given, in the order given.

    Raises:
        InvalidInputError: in Kafka's own words where Kafka refuses.
    """
    listed = list(brokers)
    check_replication_factor(replication_factor, len(listed))
    racks = {broker.id: broker.rack for broker in brokers_in_mode(listed, rack_mode)}
    if replica_counts is None:
        replica_counts = Counter(broker for replicas in assignment.values() for broker in replicas)
    load = _Load(racks, replica_counts)
    changed: dict[Partition, list[int]] = {}
    for partition, current in assignment.items():
        replicas = list(current)
        while len(replicas) > replication_factor:
            leader = replicas[0] if leaders is None else leaders.get(partition, replicas[0])
            replicas.remove(load.drop_from(replicas, leader))
        while len(replicas) < replication_factor:
            replicas.append(load.add_to(replicas))
        changed[partition] = replicas
    return changed


class _Load:
    """How many replicas each broker holds, kept so that the emptiest broker of a rack is found at once."""

    def __init__(self, racks: Mapping[int, str | None], replica_counts: Mapping[int, int]) -> None:
        self._racks = racks
        self._counts = Counter({broker: replica_counts.get(broker, 0) for broker in racks})
        self._size = Counter(racks.values())
        self._heaps: defaultdict[str | None, list[tuple[int, int]]] = defaultdict(list)
        for broker, rack in racks.items():
            self._heaps[rack].append((self._counts[broker], broker))
        for heap in self._heaps.values():
            heapify(heap)

    def add_to(self, replicas: Sequence[int]) -> int:
        """The broker for one more replica of a partition, now counted as holding it."""
        held = self._held(replicas)
        open_racks = [rack for rack in self._heaps if held[rack] < self._size[rack]]
        fewest = min(held[rack] for rack in open_racks)
        _, broker = min(self._emptiest(rack, replicas) for rack in open_racks if held[rack] == fewest)
        self._count(broker, 1)
        return broker

    def drop_from(self, replicas: Sequence[int], leader: int) -> int:
        """The broker of the replica that a partition gives up, now counted without it."""
        held = self._held(replicas)
        droppable = [broker for broker in replicas if broker != leader]
        droppable = [broker for broker in droppable if broker != replicas[0]] or droppable

        def reasons_to_drop(place: int) -> tuple[bool, int, int, int]:
            broker = droppable[place]
            gone = broker not in self._racks
            return gone, 0 if gone else held[self._racks[broker]], self._counts[broker], place

        broker = droppable[max(range(len(droppable)), key=reasons_to_drop)]
        self._count(broker, -1)
        return broker

    def _held(self, replicas: Iterable[int]) -> Counter[str | None]:
        return Counter(self._racks[broker] for broker in replicas if broker in self._racks)

    def _count(self, broker: int, change: int) -> None:
        if broker in self._racks:
            self._counts[broker] += change
            heappush(self._heaps[self._racks[broker]], (self._counts[broker], broker))

    def _emptiest(self, rack: str | None, taken: Collection[int]) -> tuple[int, int]:
        """The rack's broker with the fewest replicas outside ``taken``; outdated entries are thrown away."""
        heap = self._heaps[rack]
        passed: list[tuple[int, int]] = []
        while (entry := heap[0])[0] != self._counts[entry[1]] or entry[1] in taken:
            heappop(heap)
            if entry[0] == self._counts[entry[1]] and entry not in passed:
                passed.append(entry)
        for other in passed:
            heappush(heap, other)
        return entry
