"""A new placement of topics that exist, as ``kafka-reassign-partitions --generate`` proposes it.

Goal:
    Spread the partitions of each topic anew over the brokers named, whatever is where now.

Constraints:
    Every partition keeps its number of replicas. Racks count for all brokers or for none.

Algorithm:
    Kafka 4 places each topic as its controller would place a new one (see ``kraft``), from a random start. Kafka takes
    the number of replicas of all partitions from one of them; here, where partitions differ, the topic is placed for
    the largest number and each partition takes as many as it has: any beginning of a placement is a placement.

Example:
    A topic on brokers 1 and 2, with two replicas of partition 0 and one of partition 1, over the brokers 3 and 4, could
    become 3, 4 and 4.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement.kraft import place_replicas
from rebalance_lib.topology import Broker, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def brokers_to_place_on(
    wanted: Sequence[int], alive: Mapping[int, Broker], *, rack_aware: bool
) -> tuple[list[Broker], list[int]]:
    """The brokers named that are alive, with their racks if these count; and the ids that are not alive.

    Raises:
        InvalidInputError: In Kafka's words, an id is given twice, or only some brokers have a rack.
    """
    if twice := sorted(broker for broker, times in Counter(wanted).items() if times > 1):
        raise InvalidInputError(f"Broker list contains duplicate entries: {twice}")
    found = [alive[broker] for broker in wanted if broker in alive]
    absent = [broker for broker in wanted if broker not in alive]
    if not found:
        raise InvalidInputError(f"none of the brokers {list(wanted)} is alive; alive are {sorted(alive)}")
    if not rack_aware:
        return [Broker(broker.id) for broker in found], absent
    if 0 < sum(broker.rack is not None for broker in found) < len(found):
        raise InvalidInputError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return found, absent


def propose(
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Sequence[Broker],
    *,
    rng: np.random.Generator | int | None = None,
) -> dict[TopicPartition, list[int]]:
    """Place every partition anew on these brokers, topic by topic.

    Raises:
        InvalidInputError: In Kafka's words, a topic has more replicas than there are brokers.
    """
    generator = np.random.default_rng(rng)
    topics: dict[str, list[TopicPartition]] = {}
    for tp in sorted(current):
        topics.setdefault(tp.topic, []).append(tp)
    proposed = {}
    for partitions in topics.values():
        most = max(len(current[tp]) for tp in partitions)
        placed = place_replicas(brokers, len(partitions), most, rng=generator)
        for tp, replicas in zip(partitions, placed.values(), strict=True):
            proposed[tp] = replicas[: len(current[tp])]
    return proposed
