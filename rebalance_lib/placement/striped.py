"""Kafka's classic placement: leaders in turn over the brokers, followers at a shift that grows every turn.

Goal:
    Replicas even over the brokers; the followers of one broker's leaders spread over all the others, so
    that the loss of a broker is shared; and, where brokers have racks, the replicas of a partition in as
    many racks as can be.

Constraints:
    No broker holds two replicas of a partition, hence no more replicas than brokers. Racks count for all
    brokers or for none (see ``RackMode``).

Algorithm:
    The brokers form a ring. Without racks they stand in the order given. With racks they alternate: the
    lowest id of every rack, racks sorted by name, then the second lowest of every rack, and so on; a small
    rack drops out early and the ring ends with brokers of the larger racks.

    Partition ``p`` leads at position ``(p + start) mod n``. Its followers come from the ``n - 1`` other
    positions, walked in ring order from ``1 + shift mod (n - 1)`` places behind the leader. The shift grows
    by one whenever the partition number reaches a multiple of ``n``, so the next turn around the ring pairs
    its leaders with other followers. With racks the shift is multiplied by the number of racks, and the
    walk passes over brokers whose rack already holds a replica until every rack holds one; from then on
    only over brokers that hold one themselves.

    A fixed ``start_index`` is both start and first shift. Without it both are drawn at random, one after
    the other. Every step depends on the partition number alone, which is what lets ``striped_array`` do all
    partitions at once.

Example:
    Four brokers, brokers 0 and 1 in rack ``a``, 2 and 3 in rack ``b``, five partitions, two replicas, start
    0. The ring is 0, 2, 1, 3.

    | partition | leader | walk           | replicas |
    |-----------|--------|----------------|----------|
    | 0         | 0      | 2              | 0, 2     |
    | 1         | 2      | 1              | 2, 1     |
    | 2         | 1      | 3              | 1, 3     |
    | 3         | 3      | 0              | 3, 0     |
    | 4         | 0      | 3 (shift 2)    | 0, 3     |
"""

from __future__ import annotations

import gc
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement.brokers import (
    RackMode,
    brokers_in_mode,
    check_partitions,
    check_replication_factor,
    rack_order,
)
from rebalance_lib.placement.striped_array import fill_with_racks, fill_without_racks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rebalance_lib.topology import Broker


@dataclass(frozen=True, slots=True)
class Stripes:
    """Everything a placement depends on besides the partition number.

    ``racks`` has the rack of each ring position as a number, or is empty where racks do not count.
    """

    ring: tuple[int, ...]
    racks: tuple[int, ...]
    start: int
    shift: int
    first_partition: int
    replication_factor: int

    @property
    def shift_per_turn(self) -> int:
        """How far the walk to the first follower moves with each turn around the ring."""
        return len(set(self.racks)) or 1

    def turns(self, partition: int) -> int:
        """How many multiples of the ring's length lie between the first partition and this one."""
        return partition // len(self.ring) - (max(self.first_partition, 1) - 1) // len(self.ring)

    def replicas(self, partition: int) -> list[int]:
        """The replicas of one partition, leader first: what ``striped_array`` computes, to be read."""
        leader = (partition + self.start) % len(self.ring)
        chosen = [leader]
        for position in self._walk(partition, leader):
            if len(chosen) == self.replication_factor:
                break
            if position not in chosen and self._rack_is_due(position, chosen):
                chosen.append(position)
        return [self.ring[position] for position in chosen]

    def _walk(self, partition: int, leader: int) -> Iterator[int]:
        others = len(self.ring) - 1
        step = (self.shift + self.turns(partition)) * self.shift_per_turn
        while others:
            yield (leader + 1 + step % others) % len(self.ring)
            step += 1

    def _rack_is_due(self, position: int, chosen: Sequence[int]) -> bool:
        if not self.racks:
            return True
        held = {self.racks[other] for other in chosen}
        return self.racks[position] not in held or held == set(self.racks)


def assign_replicas(
    brokers: Iterable[Broker],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int | None = None,
    start_partition: int = 0,
    replica_shift: int | None = None,
    rack_mode: RackMode = RackMode.ENFORCED,
    rng: np.random.Generator | int | None = None,
) -> dict[int, list[int]]:
    """Place the partitions of a topic as Kafka's ``assignReplicasToBrokers`` does.

    Args:
        brokers: the brokers to place on; where racks do not count, their order is the order of the ring.
        partitions: how many partitions to place.
        replication_factor: how many replicas each partition gets.
        start_index: where in the ring partition 0 leads, and the first shift; drawn at random if not given.
        start_partition: the number of the first partition to place; not 0 where a topic gets more.
        replica_shift: the first shift, where it is to differ from ``start_index``.
        rack_mode: whether racks count.
        rng: a generator, or the seed of one, for what is drawn.

    Returns:
        For each partition the ids of its brokers, preferred leader first.

    Raises:
        InvalidInputError: in Kafka's own words where Kafka refuses.
    """
    placed = assign_replicas_array(
        brokers,
        partitions,
        replication_factor,
        start_index=start_index,
        start_partition=start_partition,
        replica_shift=replica_shift,
        rack_mode=rack_mode,
        rng=rng,
    )
    with _no_collection():
        return dict(enumerate(placed.tolist(), start_partition))


def assign_replicas_array(
    brokers: Iterable[Broker],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int | None = None,
    start_partition: int = 0,
    replica_shift: int | None = None,
    rack_mode: RackMode = RackMode.ENFORCED,
    rng: np.random.Generator | int | None = None,
) -> npt.NDArray[np.int32]:
    """Like ``assign_replicas``, as an array: a row per partition in order, leaders in column 0."""
    stripes = stripes_over(
        brokers,
        partitions,
        replication_factor,
        start_index=start_index,
        start_partition=start_partition,
        replica_shift=replica_shift,
        rack_mode=rack_mode,
        rng=rng,
    )
    return place(stripes, partitions)


def stripes_over(
    brokers: Iterable[Broker],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int | None,
    start_partition: int,
    replica_shift: int | None,
    rack_mode: RackMode,
    rng: np.random.Generator | int | None,
) -> Stripes:
    """Check what was asked for, in the order in which Kafka does, and draw what was left open."""
    listed = list(brokers)
    check_partitions(partitions)
    check_replication_factor(replication_factor, len(listed))
    for name, value in (
        ("start_index", start_index),
        ("start_partition", start_partition),
        ("replica_shift", replica_shift),
    ):
        if value is not None and value < 0:
            raise InvalidInputError(f"{name} is {value}; it must be 0 or larger.")
    usable = brokers_in_mode(listed, rack_mode)

    racked = usable[0].rack is not None
    ring = rack_alternated(usable) if racked else usable
    numbers = {rack: number for number, rack in enumerate({broker.rack: None for broker in ring})}
    generator = np.random.default_rng(rng)
    start = int(generator.integers(len(ring))) if start_index is None else start_index
    if replica_shift is None:
        replica_shift = int(generator.integers(len(ring))) if start_index is None else start_index
    return Stripes(
        ring=tuple(broker.id for broker in ring),
        racks=tuple(numbers[broker.rack] for broker in ring) if racked else (),
        start=start,
        shift=replica_shift,
        first_partition=start_partition,
        replication_factor=replication_factor,
    )


def rack_alternated(brokers: Iterable[Broker]) -> list[Broker]:
    """The brokers so ordered that neighbours stand in different racks for as long as racks last."""
    by_rack: defaultdict[str | None, list[Broker]] = defaultdict(list)
    for broker in sorted(brokers, key=lambda broker: broker.id):
        by_rack[broker.rack].append(broker)
    ranked = [(rank, rack_order(rack), broker) for rack, row in by_rack.items() for rank, broker in enumerate(row)]
    return [broker for _, _, broker in sorted(ranked, key=lambda entry: entry[:2])]


def place(stripes: Stripes, partitions: int) -> npt.NDArray[np.int32]:
    """Place that many partitions from ``stripes.first_partition`` on, all at once."""
    count = len(stripes.ring)
    partition = np.arange(stripes.first_partition, stripes.first_partition + partitions, dtype=np.int64)
    turns = partition // count - (max(stripes.first_partition, 1) - 1) // count
    leaders = (partition + stripes.start) % count
    steps = (stripes.shift + turns) * stripes.shift_per_turn % max(count - 1, 1)

    positions = np.empty((stripes.replication_factor, partitions), dtype=np.int32)
    positions[0] = leaders
    if stripes.racks:
        fill_with_racks(positions, steps.astype(np.int32), np.array(stripes.racks, dtype=np.int32))
    else:
        fill_without_racks(positions, steps.astype(np.int32), count)
    ring = np.array(stripes.ring, dtype=np.int32)
    return np.ascontiguousarray(ring[positions].T)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold off the search for cycles: lists of numbers have none, and a million of them set it off often."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
