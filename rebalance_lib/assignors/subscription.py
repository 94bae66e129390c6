"""What a member of a consumer group brings to a rebalance, and what it takes from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Assignment = dict[str, list[tuple[str, int]]]
"""By member: its partitions, as topic and number, in order."""

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member says when it joins.

    Args:
        topics: What it wants to read.
        owned: The partitions that it had in its last generation, as topic and number; sticky assignors look at them.
        generation: Of ``owned``: where two members claim a partition, the later generation is believed.
        rack: ``client.rack``; range and sticky assignors prefer partitions with a replica there.
        instance: ``group.instance.id`` of a static member; range and round robin put those first, in its order.
    """

    topics: Sequence[str]
    owned: Sequence[tuple[str, int]] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    instance: str | None = None
