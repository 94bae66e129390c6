"""Adding partitions to a topic that exists.

Goal:
    Place the new partitions as if the topic had been created with them, and leave the others where they
    are.

Constraints:
    Partitions can be added, never taken away. The new ones get as many replicas as partition 0 has.

Algorithm:
    The stripes of ``striped`` go on: the first new partition is the one after the last, and the start is
    the place, among the brokers sorted by id, of the first broker whose id is not below that of partition
    0's first replica (that broker itself, or the next one if it is gone; the first of all if none is left).
    Kafka counts that place in the list sorted by id and uses it in the ring of alternating racks, so with
    racks the stripes of the topic are met only by chance; the spread is as good either way.

    New partitions placed by hand go through the checks of ``manual`` instead. As on Kafka's command line
    the text may name all partitions: what it says about the existing ones is passed over.

Example:
    Brokers 0 to 4 without racks, a topic with four partitions and three replicas, partition 0 on 1, 2, 3.
    Two more partitions start at 1, numbered from 4; at 5 one turn is full and the shift goes from 1 to 2.

    | partition | leader           | replicas |
    |-----------|------------------|----------|
    | 4         | (4 + 1) mod 5    | 0, 2, 3  |
    | 5         | (5 + 1) mod 5    | 1, 4, 0  |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement.brokers import RackMode
from rebalance_lib.placement.manual import check_consecutive, check_replica_assignment
from rebalance_lib.placement.striped import assign_replicas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rebalance_lib.topology import Broker


def add_partitions(
    topic: str,
    existing: Mapping[int, Sequence[int]],
    brokers: Iterable[Broker],
    partitions: int,
    *,
    replica_assignment: Mapping[int, Sequence[int]] | None = None,
    rack_mode: RackMode = RackMode.ENFORCED,
) -> dict[int, list[int]]:
    """Place the partitions that a topic needs to have ``partitions`` of them.

    Args:
        topic: the topic's name, for messages.
        existing: the replicas of each partition that the topic has.
        brokers: the brokers to place on.
        partitions: how many partitions the topic shall have altogether.
        replica_assignment: the new partitions placed by hand; entries for existing ones are passed over.
        rack_mode: whether racks count.

    Returns:
        The replicas of the new partitions only.

    Raises:
        InvalidInputError: in Kafka's own words where Kafka refuses.
    """
    if 0 not in existing:
        raise InvalidInputError(
            f"Unexpected existing replica assignment for topic '{topic}', partition id 0 is missing. "
            f"Assignment: {dict(existing)}"
        )
    check_consecutive(existing)
    if partitions <= len(existing):
        raise InvalidInputError(
            f"The number of partitions for a topic can only be increased. Topic {topic} currently has "
            f"{len(existing)} partitions, {partitions} would not be an increase."
        )
    by_id = sorted(brokers, key=lambda broker: broker.id)
    if replica_assignment is not None:
        return _by_hand(existing, by_id, partitions, replica_assignment)
    return assign_replicas(
        by_id,
        partitions - len(existing),
        len(existing[0]),
        start_index=_place_of(existing[0][0], by_id),
        start_partition=len(existing),
        rack_mode=rack_mode,
    )


def _place_of(first_replica: int, by_id: Sequence[Broker]) -> int:
    return next((place for place, broker in enumerate(by_id) if broker.id >= first_replica), 0)


def _by_hand(
    existing: Mapping[int, Sequence[int]],
    brokers: Sequence[Broker],
    partitions: int,
    replica_assignment: Mapping[int, Sequence[int]],
) -> dict[int, list[int]]:
    new = {
        partition: list(replicas)
        for partition, replicas in sorted(replica_assignment.items())
        if partition not in existing
    }
    wanted = range(len(existing), partitions)
    if len(new) != len(wanted):
        raise InvalidInputError(
            f"Attempted to add {len(wanted)} additional partition(s), but only {len(new)} assignment(s) were specified."
        )
    check_consecutive([*existing, *new])
    check_replica_assignment(new, brokers, replication_factor=len(existing[0]))
    return new
