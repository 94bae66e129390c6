"""A consumer group of a live cluster, as a snapshot kept it.

What members subscribe to and have is not always told: not while a group rebalances, not of a group that could not be
described, and not of members whose bytes make no sense. Then it reads what the others tell, and what it has committed
offsets for; it may read more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rebalance_lib.assignors.subscription import Subscription
from rebalance_lib.topology.groups import CONSUMER, UNKNOWN

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Member:
    """A member as it is.

    Args:
        name: Its member id.
        client_id: ``client.id``.
        host: Where it connects from.
        subscription: What it says when it joins next: its partitions are what it owns then.
        tells_topics: Whether it is known what it subscribes to.
        tells_partitions: Whether it is known what it has.
    """

    name: str
    client_id: str | None
    host: str | None
    subscription: Subscription
    tells_topics: bool
    tells_partitions: bool

    @classmethod
    def of(cls, row: dict[str, Any]) -> Member:
        """From a row of `GROUP_MEMBERS`."""
        owned = [(entry["topic"], number) for entry in row["assignment"] or () for number in entry["partitions"]]
        topics = tuple(row["topics"] or ())
        return cls(
            row["member"],
            row["client_id"],
            row["host"],
            Subscription(topics, owned, generation=1, rack=row["rack"], instance=row["instance"]),
            tells_topics=row["topics"] is not None,
            tells_partitions=row["assignment"] is not None,
        )


@dataclass(frozen=True, eq=False)
class LiveGroup:
    """A group with its members, and the partitions that it has committed offsets for."""

    name: str
    type: str
    state: str
    assignor: str | None
    members: list[Member]
    committed: list[tuple[str, int]]
    offsets: NDArray[np.int64]  # of the committed partitions

    @classmethod
    def of(cls, members: pa.Table, offsets: pa.Table) -> LiveGroup:
        """From its rows of `GROUP_MEMBERS` and `GROUP_OFFSETS`, in any order: sticky assignors look at the order."""
        rows = sorted(members.to_pylist(), key=lambda row: row["member"] or "")
        first = rows[0]
        return cls(
            first["group"],
            first["type"],
            first["state"],
            first["assignor"],
            [Member.of(row) for row in rows if row["member"] is not None],
            list(zip(offsets["topic"].to_pylist(), offsets["partition"].to_pylist(), strict=True)),
            offsets["committed"].to_numpy(),
        )

    @property
    def is_described(self) -> bool:
        """Whether Kafka told of it at all."""
        return self.state != UNKNOWN

    @property
    def broker_assigns(self) -> bool:
        """Whether its partitions are shared out by its broker (KIP-848), not by its clients."""
        return self.type == CONSUMER

    @property
    def tells_topics(self) -> bool:
        """Whether it is known what its members subscribe to."""
        return bool(self.members) and all(member.tells_topics for member in self.members)

    @property
    def tells_partitions(self) -> bool:
        """Whether it is known what its members have."""
        return bool(self.members) and all(member.tells_partitions for member in self.members)

    @cached_property
    def topics(self) -> set[str]:
        """What it reads: what its members subscribe to; if not all tell that, also what else is known of it."""
        told = {topic for member in self.members for topic in member.subscription.topics}
        if self.tells_topics:
            return told
        return told | {topic for topic, _ in self._owned} | {topic for topic, _ in self.committed}

    @cached_property
    def partitions(self) -> list[tuple[str, int]]:
        """What it reads, each once: what its members have; if not all tell that, also what it has committed."""
        return list(dict.fromkeys(self._owned if self.tells_partitions else [*self._owned, *self.committed]))

    @property
    def _owned(self) -> list[tuple[str, int]]:
        return [partition for member in self.members for partition in member.subscription.owned]

    @cached_property
    def has_racks(self) -> bool:
        """Whether any member says in which rack it is."""
        return any(member.subscription.rack for member in self.members)

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len({frozenset(member.subscription.topics) for member in self.members}) <= 1
