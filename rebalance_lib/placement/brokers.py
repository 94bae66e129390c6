"""What every placement strategy asks of the brokers: which racks count, in which order, and Kafka's refusals.

Kafka knows three ways to treat racks, and all of them decide about the whole list of brokers at once:

| mode     | all brokers have a rack | some have one             | none has one |
|----------|-------------------------|---------------------------|--------------|
| enforced | racks count             | refused                   | no racks     |
| safe     | racks count             | racks are left out        | no racks     |
| disabled | racks are left out      | racks are left out        | no racks     |
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology import Broker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class RackMode(StrEnum):
    """Whether racks guide the placement."""

    ENFORCED = "enforced"
    DISABLED = "disabled"
    SAFE = "safe"


def brokers_in_mode(brokers: Iterable[Broker], mode: RackMode) -> list[Broker]:
    """The brokers in the given order, either all with their racks or all without.

    Raises:
        InvalidInputError: a broker id is given twice, or racks are enforced and only some brokers have one.
    """
    listed = list(brokers)
    check_unique(listed)
    with_rack = sum(broker.rack is not None for broker in listed)
    if mode is RackMode.ENFORCED and 0 < with_rack < len(listed):
        raise InvalidInputError("Not all brokers have rack information for replica rack aware assignment.")
    if mode is RackMode.DISABLED or with_rack < len(listed):
        return [Broker(broker.id) for broker in listed]
    return listed


def check_unique(brokers: Sequence[Broker]) -> None:
    """Refuse a list in which a broker id stands twice: half the placements on it would be wrong."""
    twice = sorted(broker for broker, times in Counter(broker.id for broker in brokers).items() if times > 1)
    if twice:
        raise InvalidInputError(
            f"Broker ids given more than once: {', '.join(map(str, twice))}; name each broker once."
        )


def check_partitions(partitions: int) -> None:
    """Refuse to place no partitions, in Kafka's words."""
    if partitions <= 0:
        raise InvalidInputError("Number of partitions must be larger than 0.")


def check_replication_factor(replication_factor: int, available: int) -> None:
    """Refuse a replication factor that the brokers cannot hold, in Kafka's words."""
    if replication_factor <= 0:
        raise InvalidInputError("Replication factor must be larger than 0.")
    if replication_factor > available:
        raise InvalidInputError(f"Replication factor: {replication_factor} larger than available brokers: {available}.")


def rack_order(rack: str | None) -> bytes:
    """The key by which Kafka sorts racks: Java compares UTF-16 units, and no rack comes first."""
    return b"" if rack is None else b"\0" + rack.encode("utf-16-be", "surrogatepass")
