"""How fast a plan may go: throttles, caps on what moves at the same time, and in which order moves begin.

The pace is part of what is approved with a plan, and the same value drives the engine and the forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from rebalance_lib.errors import InvalidInputError

MOVES_OF_A_BROKER = 10
# Each move costs the controller a record when it begins and one when it ends, and every broker the metadata of both. So
# many fit into one request (`rebalance_lib.cluster`), and Cruise Control's default is about as high (1,250).
MOVES_IN_CLUSTER = 1000
MOST_BYTES = 2**63 - 1  # Kafka's own settings hold no larger number


class Order(StrEnum):
    """Which moves begin first; partitions at risk come before all others either way."""

    SMALLEST_FIRST = "smallest-first"
    LARGEST_FIRST = "largest-first"


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits on the moves of a plan; None is no limit.

    Args:
        throttle: bytes per second of replication to and from each broker.
        log_dir_throttle: bytes per second between the log dirs of a broker.
        moves_in: replicas that may be coming to a broker at the same time; one of less than 10 MB counts only for its
            part of that, so that up to a hundred tiny ones count as one.
        moves_out: replicas that may be copied from a broker at the same time, counted likewise.
        moves_in_cluster: replicas that may be under way in the whole cluster.
        bytes_in_flight: bytes that the moves under way may have altogether, from their beginning to their end.
        order: which moves begin first.
        one_replica_at_a_time: give a partition its new replicas one after the other, see `rebalance_lib.plan.stages`.
    """

    throttle: int | None = None
    log_dir_throttle: int | None = None
    moves_in: int | None = MOVES_OF_A_BROKER
    moves_out: int | None = MOVES_OF_A_BROKER
    moves_in_cluster: int | None = MOVES_IN_CLUSTER
    bytes_in_flight: int | None = None
    order: Order = Order.LARGEST_FIRST
    one_replica_at_a_time: bool = False

    def __post_init__(self) -> None:
        for name in LIMITS:
            value, words = getattr(self, name), name.replace("_", " ")
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidInputError(f"{words} is {value!r}: give a whole number above 0, or none for no limit")
            if value is not None and value > MOST_BYTES:
                raise InvalidInputError(f"{words} is {value}: give {MOST_BYTES} at most, or none for no limit")

    def as_dict(self) -> dict[str, Any]:
        """All of it, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Pace:
        """Read back what `as_dict` gave, or what a program wrote in its place; raises for what is no pace."""
        known = [one.name for one in fields(cls)]
        if unknown := sorted(set(given) - set(known)):
            raise InvalidInputError(f"a pace has no field {unknown[0]!r}: use some of {', '.join(known)}")
        values = dict(given)
        if values.get("order", Order.LARGEST_FIRST) not in list(Order):
            raise InvalidInputError(f"the order of a pace is {values['order']!r}: give one of {', '.join(Order)}")
        if "order" in values:
            values["order"] = Order(values["order"])
        stages = values.get("one_replica_at_a_time", False)
        if type(stages) is not bool:
            raise InvalidInputError(f"one replica at a time is {stages!r}: give true or false")
        return cls(**values)


LIMITS = ("throttle", "log_dir_throttle", "moves_in", "moves_out", "moves_in_cluster", "bytes_in_flight")
