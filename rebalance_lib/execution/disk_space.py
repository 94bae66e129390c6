"""DiskSpace on the log dirs, while old and new copies are side by side.

Where a plan leaves the log dir of a new replica open, Kafka takes the one with the fewest replicas, full or not. Here
the one with the most space is chosen, and the broker is asked for it before the replica comes. What is under way but
not yet copied is counted as taken, and a part of every log dir stays free.

`first_without_space` walks a whole plan ahead: moves that fit begin, end, and free what they leave, until none is left,
or none fits any more.

Example: broker 1 has ``/a`` with 50 MB left and ``/b`` with 30 MB, and a copy of 25 MB is on its way to ``/a``. Another
of 20 MB goes to ``/b``, a third of 20 MB waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lib.cluster import HeldReplica, LogDir
from rebalance_lib.execution.progress import Copy
from rebalance_lib.topology import TopicPartition

Place = tuple[int, str]  # broker and path of a log dir


class DiskSpace:
    """The bytes left in each log dir; None where the broker is too old to say."""

    def __init__(self, log_dirs: Mapping[int, Iterable[LogDir]], under_way: Iterable[Copy], reserve: float) -> None:
        self._left: dict[int, dict[str, float | None]] = defaultdict(dict)
        holding: dict[tuple[object, int], str] = {}
        sizes: dict[tuple[object, int], int] = {}
        future: list[tuple[int, str, HeldReplica]] = []
        for broker, listed in log_dirs.items():
            for log_dir in listed:
                if not log_dir.online:
                    continue
                known = log_dir.usable_bytes is not None and log_dir.total_bytes is not None
                self._left[broker][log_dir.path] = (
                    (log_dir.usable_bytes or 0) - reserve * (log_dir.total_bytes or 0) if known else None
                )
                for held in log_dir.replicas:
                    if held.future:
                        future.append((broker, log_dir.path, held))
                    else:
                        holding[held.partition, broker] = log_dir.path
                        sizes[held.partition, broker] = held.size
        for copy in under_way:
            path = holding.get((copy.partition, copy.broker)) or self.emptiest(copy.broker)
            if path is not None:
                self.take(copy.broker, path, copy.remaining)
        for broker, path, held in future:  # copies between the log dirs of a broker
            self.take(broker, path, max(0, sizes.get((held.partition, broker), held.size) - held.size))

    def log_dirs(self, broker: int) -> int:
        """How many log dirs the broker has that work."""
        return len(self._left[broker])

    def emptiest(self, broker: int) -> str | None:
        """The log dir with the most space; None if the broker has none, or did not answer."""
        places = self._left[broker]
        return max(places, key=lambda path: _as_number(places[path]), default=None)

    def lacking(self, places: Mapping[int, str | None], size: int) -> str | None:
        """Why copies of this size cannot go to these log dirs, by broker; None if they can."""
        for broker, path in places.items():
            if path is None:
                return f"broker {broker} does not describe its log dirs"
            left = self._left[broker].get(path, 0.0)
            if left is not None and left < size:
                return f"{size} bytes do not fit into {path} of broker {broker}, {max(0, int(left))} are free for it"
        return None

    def take(self, broker: int, path: str, size: int) -> None:
        """Count a copy as being there; a negative size frees what one that left had."""
        left = self._left[broker].get(path)
        if left is not None:
            self._left[broker][path] = left - size


def _as_number(left: float | None) -> float:
    return float("inf") if left is None else left


@dataclass(frozen=True, slots=True)
class Change:
    """A stage of one partition: copies that come, by broker, each to a log dir or to any; and replicas that leave."""

    partition: TopicPartition
    size: int
    coming: dict[int, str | None]
    removed: tuple[tuple[int, str, int], ...]


def first_without_space(space: DiskSpace, ways: Iterable[Sequence[Change]]) -> str | None:
    """Why a plan would get stuck for want of disk space, however long it waits; None if it would not.

    Args:
        space: the log dirs as they are; it is used up.
        ways: the changes of each partition, one after the other.
    """
    left = [list(way) for way in ways if way]
    while left:
        ended, stuck = [], None
        for way in left:
            change = way[0]
            places = {broker: path or space.emptiest(broker) for broker, path in change.coming.items()}
            lacking = space.lacking(places, change.size)
            if lacking is not None:
                stuck = stuck or f"{change.partition}: {lacking}"
                continue
            for broker, path in places.items():
                space.take(broker, str(path), change.size)
            ended.append(way)
        if not ended:
            return stuck
        for way in ended:
            for broker, path, size in way.pop(0).removed:
                space.take(broker, path, -size)
        left = [way for way in left if way]
    return None
