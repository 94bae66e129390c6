"""Placement by hand, in the form that ``kafka-topics --replica-assignment`` takes.

Goal:
    Say exactly where the replicas of each partition go, and have the mistakes found before Kafka is asked.

Constraints:
    Partitions are numbered in the order given. All have the same number of replicas, no broker twice in a
    partition, and only brokers that exist.

Form:
    Commas between partitions, colons between the brokers of a partition, preferred leader first; white
    space around a number does not count. What is read and written again is the same text, and the other way
    round.

Example:
    ``0:1:2,1:2:0,2:0:1`` places three partitions with three replicas each:

    | partition | replicas |
    |-----------|----------|
    | 0         | 0, 1, 2  |
    | 1         | 1, 2, 0  |
    | 2         | 2, 0, 1  |
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rebalance_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rebalance_lib.topology import Broker

_BROKER_ID = re.compile(r"[0-9]{1,10}")
_LARGEST_BROKER_ID = 2**31 - 1


def parse_replica_assignment(text: str) -> dict[int, list[int]]:
    """Read ``0:1:2,1:2:3``.

    Raises:
        InvalidInputError: an entry is not a number, a broker stands twice in a partition, or the partitions
            differ in their number of replicas.
    """
    assignment: dict[int, list[int]] = {}
    for partition, entry in enumerate(text.split(",")):
        replicas = [_broker_id(word.strip(), partition, entry) for word in entry.split(":")]
        twice = [broker for broker, times in Counter(replicas).items() if times > 1]
        if twice:
            raise InvalidInputError(
                f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}"
                f" (partition {partition}: {entry.strip()})"
            )
        assignment[partition] = replicas
        if len(replicas) != len(assignment[0]):
            raise InvalidInputError(f"Partition {partition} has different replication factor: {replicas}")
    return assignment


def format_replica_assignment(assignment: Mapping[int, Sequence[int]]) -> str:
    """Write an assignment in the form that ``parse_replica_assignment`` reads.

    Raises:
        InvalidInputError: the partitions are not numbered from 0 without a gap; the form has no other.
    """
    check_consecutive(assignment)
    return ",".join(":".join(map(str, assignment[partition])) for partition in range(len(assignment)))


def check_replica_assignment(
    assignment: Mapping[int, Sequence[int]],
    brokers: Iterable[Broker],
    *,
    replication_factor: int | None = None,
) -> None:
    """Refuse an assignment that Kafka would refuse, in Kafka's words.

    Args:
        assignment: the partitions placed by hand.
        brokers: the brokers that exist.
        replication_factor: what partition 0 of the topic has; as the lowest partition given, if left out.
    """
    available = {broker.id for broker in brokers}
    for partition, replicas in assignment.items():
        _check_replicas(partition, replicas, available)
    if replication_factor is None and assignment:
        replication_factor = len(assignment[min(assignment)])
    other = sorted(partition for partition, replicas in assignment.items() if len(replicas) != replication_factor)
    if other:
        raise InvalidInputError(
            "Inconsistent replication factor between partitions, partition 0 has "
            f"{replication_factor} while partitions [{_listed(other)}] have replication factors "
            f"[{_listed(len(assignment[partition]) for partition in other)}], respectively."
        )


def check_consecutive(partitions: Iterable[int]) -> None:
    """Refuse partitions that are not numbered from 0 without a gap, in Kafka's words."""
    numbers = sorted(partitions)
    if numbers != list(range(len(numbers))):
        raise InvalidInputError(
            f"partitions should be a consecutive 0-based integer sequence, not [{_listed(numbers)}]"
        )


def _broker_id(word: str, partition: int, entry: str) -> int:
    if not _BROKER_ID.fullmatch(word) or int(word) > _LARGEST_BROKER_ID:
        raise InvalidInputError(
            f"Partition {partition} of the replica assignment, {entry.strip()!r}, has {word!r} where "
            "a broker id belongs; write partitions as in 0:1:2,1:2:3."
        )
    return int(word)


def _check_replicas(partition: int, replicas: Sequence[int], available: set[int]) -> None:
    if not replicas:
        raise InvalidInputError(f"Cannot have replication factor of 0 for partition id {partition}.")
    if len(replicas) != len(set(replicas)):
        raise InvalidInputError(
            f"Duplicate brokers not allowed in replica assignment: {_listed(replicas)} for partition id {partition}."
        )
    if not available.issuperset(replicas):
        raise InvalidInputError(
            f"Some brokers specified for partition id {partition} are not available. "
            f"Specified brokers: {_listed(replicas)}, available brokers: {_listed(sorted(available))}."
        )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
