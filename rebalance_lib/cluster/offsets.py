"""The offsets of many partitions, leader by leader.

kafka-python gives the offsets of a batch whole, or raises the first error of any of its partitions. A topic that was
just deleted must not cost the others their offsets, so a batch that a broker refused is halved until the refused ones
are alone. A leader that does not answer at all is asked no more. The time that may be lost on all this is bounded,
since nothing depends on offsets but rates: what could not be asked is left out.

Example: of a batch of 4 the third was deleted. Asked are 1-4 (refused), 1-2 (told), 3-4 (refused), 3 (refused), 4
(told): two more requests at each halving, so that one bad partition in a batch of 1,000 costs some 20 requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import kafka
from kafka.errors import BrokerResponseError, KafkaError, UnsupportedVersionError
from kafka.protocol.consumer import OffsetSpec

from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import TopicPartition

BATCH = 1000  # partitions in one request: small enough for any broker's request limits
LOST_SECONDS = 60.0  # on requests that failed, in all; after that no more are made
RETRY_MS = 2_000  # while a partition has just changed its leader


class Offsets(NamedTuple):
    """Of the oldest record on the leader's disk, and of the next record to come."""

    start: int
    end: int


Ask = Callable[[dict[Any, Any]], dict[Any, Any]]  # kafka-python's ``list_partition_offsets``; raises `ClusterError`


def is_silence(error: KafkaError) -> bool:
    """Whether no broker answered, for a reason that may pass: the client may have asked one that has just gone."""
    return bool(error.retriable) and not isinstance(error, BrokerResponseError)


def list_offsets(ask: Ask, leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offsets]:
    """The offsets of each partition, asked of its leader; what no leader told is left out."""
    asking = _Asking(ask)
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in sorted(leaders):
        by_leader.setdefault(leaders[partition], []).append(partition)
    found: dict[TopicPartition, Offsets] = {}
    for _, partitions in sorted(by_leader.items()):
        try:
            for begin in range(0, len(partitions), BATCH):
                found |= asking.ask(partitions[begin : begin + BATCH])
        except ClusterError:  # no answer: the leader is gone
            continue
    return found


class _Asking:
    """The requests of one snapshot: how much time was lost, and what the brokers understand."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lost = 0.0
        # With tiered storage, log dirs count only what is on the disk. Brokers before Kafka 3.5 do not tell it apart.
        self._oldest = OffsetSpec.EARLIEST_LOCAL

    def ask(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Offsets]:
        """The offsets of these partitions of one leader.

        Raises:
            ClusterError: The leader did not answer.
        """
        if self._lost > LOST_SECONDS:
            return {}
        begin = time.monotonic()
        try:
            start = self._list(partitions, self._oldest)  # before the end, so that it is never beyond it
            end = self._list(partitions, OffsetSpec.LATEST)
        except ClusterError as error:
            self._lost += time.monotonic() - begin
            if isinstance(error.__cause__, UnsupportedVersionError) and self._oldest is not OffsetSpec.EARLIEST:
                self._oldest = OffsetSpec.EARLIEST
                return self.ask(partitions)
            if not isinstance(error.__cause__, BrokerResponseError):
                raise
            half = len(partitions) // 2
            return self.ask(partitions[:half]) | self.ask(partitions[half:]) if half else {}
        return {tp: Offsets(start[tp], end[tp]) for tp in partitions if min(start.get(tp, -1), end.get(tp, -1)) >= 0}

    def _list(self, partitions: Sequence[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        wanted = {kafka.TopicPartition(*partition): spec for partition in partitions}
        answer = self._ask(wanted)
        return {TopicPartition(*partition): found.offset for partition, found in answer.items()}
