"""KRaft's placement, Kafka 4's ``StripedReplicaPlacer``: racks in turn, and in each rack brokers in turn.

Goal:
    First, the replicas of a partition in as many racks as can be; then, replicas even over the brokers of a
    rack and partitions on ever new sets of brokers; last, within a rack, no replica on a fenced broker while
    an unfenced one is left. Racks go before brokers: the only broker of a small rack gets a replica of nearly
    every partition.

Constraints:
    No broker holds two replicas of a partition. The leader is never fenced. Brokers without a rack form one
    rack of their own, which sorts first; racks need not be known for all brokers.

Algorithm:
    Each rack keeps two rings of brokers sorted by id, unfenced and fenced; the racks form a ring sorted by
    name. Every ring has an offset, drawn at random at the start.

    A partition's leader is the next unfenced broker of the rack at the rack ring's offset, or of the first
    rack after it that has one. Its followers come from the racks in turn, beginning again at the offset and
    leaving out the leader's rack once; a rack gives its next unfenced broker, then its next fenced one, and
    is passed over when all its brokers are in use. With each partition the rack ring moves on by one, and
    so does every broker ring the first time that this partition asks it.

    After as many partitions as there are unfenced brokers everything is shuffled, lest the same sets come
    again, and the count of partitions (the epoch, by which a ring knows that it is asked by another
    partition) begins again at 0. A ring last asked in an epoch 0 does not notice the change when it is
    asked first in the new epoch 0: it does not move and goes on behind the brokers it gave then. That is
    how Kafka does it, so it is kept.

    What is drawn, and in which order: at the start for each rack by name the offset of its fenced ring,
    then of its unfenced one, each only if the ring is not empty; then the offset of the rack ring. At a
    shuffle the rack ring, then for each rack by name its fenced and its unfenced ring: for each size from
    the ring's length down to 2, the place with which the last of so many changes places.

Example:
    Racks ``a``, ``b`` and ``c`` with brokers 0 to 2, 10 to 12 and 20 to 22, three replicas, every offset 0.

    | partition | racks   | replicas   |
    |-----------|---------|------------|
    | 0         | a, b, c | 0, 10, 20  |
    | 1         | b, c, a | 11, 21, 1  |
    | 2         | c, a, b | 22, 2, 12  |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement.brokers import check_unique, rack_order

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rebalance_lib.topology import Broker

Draw: TypeAlias = Callable[[int], int]
"""Answers a bound with a number from 0 up to, not including, the bound."""

DRAWN_AT_ONCE = 4096


class BrokerRing:
    """Brokers of one rack, all fenced or all unfenced, given out one after the other to a partition."""

    __slots__ = ("_brokers", "_epoch", "_given", "_offset")

    def __init__(self, brokers: Iterable[int], draw: Draw) -> None:
        self._brokers = sorted(brokers)
        self._offset = draw(len(self._brokers)) if self._brokers else 0
        self._given = 0
        self._epoch = 0

    def next(self, epoch: int) -> int | None:
        """The next broker for the partition of this epoch, or None when all were given to it."""
        brokers = self._brokers
        size = len(brokers)
        if self._epoch != epoch and size:
            self._epoch = epoch
            self._given = 0
            self._offset = (self._offset + 1) % size
        if self._given >= size:
            return None
        broker = brokers[(self._given + self._offset) % size]
        self._given += 1
        return broker

    def shuffle(self, draw: Draw) -> None:
        """Change the order of the brokers; offset and position stay."""
        shuffle(self._brokers, draw)


class Rack:
    """The brokers of a rack."""

    __slots__ = ("fenced", "unfenced")

    def __init__(self, brokers: Iterable[int], fenced: Collection[int], draw: Draw) -> None:
        listed = list(brokers)
        self.fenced = BrokerRing((broker for broker in listed if broker in fenced), draw)
        self.unfenced = BrokerRing((broker for broker in listed if broker not in fenced), draw)

    def next(self, epoch: int) -> int | None:
        """The next broker for the partition of this epoch, unfenced ones first."""
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class RackRing:
    """The racks of a cluster, from which one partition after the other is placed."""

    def __init__(self, brokers: Iterable[Broker], fenced: Collection[int], draw: Draw) -> None:
        by_rack: defaultdict[str | None, list[int]] = defaultdict(list)
        for broker in brokers:
            by_rack[broker.rack].append(broker.id)
        self._draw = draw
        self._by_name = [Rack(by_rack[name], fenced, draw) for name in sorted(by_rack, key=rack_order)]
        self._racks = list(self._by_name)
        self._offset = draw(len(self._racks))
        self._epoch = 0
        self._unfenced = sum(broker not in fenced for ids in by_rack.values() for broker in ids)

    def place(self, replication_factor: int) -> list[int]:
        """The replicas of the next partition, leader first."""
        if self._epoch == self._unfenced > 1:
            self._shuffle()
            self._epoch = 0
        self._offset %= len(self._racks)
        in_turn = self._racks[self._offset :] + self._racks[: self._offset]
        replicas: list[int] = []
        lead_rack = self._add_leader(replicas, in_turn)
        self._add_followers(replicas, replication_factor, (rack for rack in in_turn if rack is not lead_rack))
        while len(replicas) < replication_factor:
            self._add_followers(replicas, replication_factor, in_turn)
        self._epoch += 1
        self._offset += 1
        return replicas

    def _add_leader(self, replicas: list[int], in_turn: Iterable[Rack]) -> Rack:
        for rack in in_turn:
            leader = rack.unfenced.next(self._epoch)
            if leader is not None:
                replicas.append(leader)
                return rack
        raise AssertionError("the rings asked for the partition before always have brokers left")

    def _add_followers(self, replicas: list[int], replication_factor: int, in_turn: Iterable[Rack]) -> None:
        if len(replicas) == replication_factor:
            return
        for rack in in_turn:
            follower = rack.next(self._epoch)
            if follower is not None:
                replicas.append(follower)
                if len(replicas) == replication_factor:
                    return

    def _shuffle(self) -> None:
        shuffle(self._racks, self._draw)
        for rack in self._by_name:
            rack.fenced.shuffle(self._draw)
            rack.unfenced.shuffle(self._draw)


def place_replicas(
    brokers: Iterable[Broker],
    partitions: int,
    replication_factor: int,
    *,
    start_partition: int = 0,
    fenced: Collection[int] = (),
    rng: np.random.Generator | int | None = None,
    draw: Draw | None = None,
) -> dict[int, list[int]]:
    """Place the partitions of a topic as the controller of Kafka 4 does.

    Args:
        brokers: all registered brokers, fenced ones too.
        partitions: how many partitions to place.
        replication_factor: how many replicas each partition gets.
        start_partition: the number of the first partition to place; it does not change where replicas go.
        fenced: the ids of the fenced brokers.
        rng: a generator, or the seed of one, for the offsets and shuffles.
        draw: where the offsets and shuffles come from instead, in the order that the module describes.

    Returns:
        For each partition the ids of its brokers, preferred leader first.

    Raises:
        InvalidInputError: in Kafka's own words where Kafka refuses.
    """
    listed = list(brokers)
    check_unique(listed)
    ids = {broker.id for broker in listed}
    unknown = sorted(set(fenced) - ids)
    if unknown:
        raise InvalidInputError(
            f"Fenced brokers {unknown} are not among the brokers {sorted(ids)}; name them there too."
        )
    if partitions <= 0:
        raise InvalidInputError("Number of partitions was set to an invalid non-positive value.")
    if replication_factor <= 0:
        raise InvalidInputError(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if len(set(fenced)) == len(listed):
        raise InvalidInputError("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(listed):
        raise InvalidInputError(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(listed)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    ring = RackRing(listed, frozenset(fenced), draw or drawing_from(np.random.default_rng(rng)))
    return {start_partition + placed: ring.place(replication_factor) for placed in range(partitions)}


def shuffle(items: list[Any], draw: Draw) -> None:
    """Bring the items into a random order, in place."""
    for size in range(len(items), 1, -1):
        other = draw(size)
        items[size - 1], items[other] = items[other], items[size - 1]


def drawing_from(generator: np.random.Generator) -> Draw:
    """Draw from a generator, many at once: one by one takes longer than the placement itself."""

    def fractions() -> Iterator[float]:
        while True:
            yield from generator.random(DRAWN_AT_ONCE).tolist()

    upcoming = fractions()
    return lambda bound: int(next(upcoming) * bound)
