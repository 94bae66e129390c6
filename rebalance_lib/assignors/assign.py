"""Sharing the partitions of topics among the members of a consumer group, as Kafka's clients do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from rebalance_lib.assignors.cooperative import cooperative_sticky
from rebalance_lib.assignors.group import ConsumerGroup, Racks
from rebalance_lib.assignors.range_ import range_
from rebalance_lib.assignors.round_robin import round_robin
from rebalance_lib.assignors.sticky import sticky
from rebalance_lib.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rebalance_lib.assignors.subscription import Assignment, Subscription

Strategy = Callable[[ConsumerGroup], "NDArray[np.int32]"]

STRATEGIES: dict[str, Strategy] = {
    "range": range_,
    "roundrobin": round_robin,
    "sticky": sticky,
    "cooperative-sticky": cooperative_sticky,
}
"""By the names that clients give their assignors."""

AS_CLIENTS_DO: dict[str, Strategy] = STRATEGIES | {
    "sticky": partial(sticky, improved=False),
    "cooperative-sticky": partial(cooperative_sticky, improved=False),
}


def assign(
    strategy: str,
    partitions_per_topic: Mapping[str, int],
    subscriptions: Mapping[str, Subscription],
    *,
    racks: Racks | None = None,
    as_clients_do: bool = False,
) -> Assignment:
    """What each member gets.

    Args:
        strategy: One of `STRATEGIES`.
        partitions_per_topic: Topics that are not here are left out, as clients do without their metadata.
        subscriptions: By member id. Where the sticky assignors choose between equals, the order of members counts as in
            Java's maps.
        racks: By topic and partition, the racks of the replicas: of use where members say in which rack they are.
        as_clients_do: For forecasts: what Kafka's clients would answer, also where there is a better answer.

    Returns:
        By member, its partitions in order; with the cooperative assignor, those that another member must give up first
        are left out, and come with the next rebalance.

    Raises:
        InvalidInputError: There is no such strategy.
    """
    if strategy not in STRATEGIES:
        raise InvalidInputError(f"there is no assignor {strategy!r}; there are {', '.join(STRATEGIES)}")
    if not subscriptions:
        return {}
    group = ConsumerGroup(subscriptions, partitions_per_topic, racks or {})
    return group.assignment((AS_CLIENTS_DO if as_clients_do else STRATEGIES)[strategy](group))
