"""What a plan changes for those who read: how many partitions topics have, who leads them, and in which racks they are.

Partitions are rows: those of a topic follow one another by their numbers, those that the plan adds behind the others.

Example: ``orders`` has partition 0 on brokers 1 and 2, led by 1. A plan puts it on 2 and 3, and adds partition 1 on
3. It has 1 partition before and 2 after; the leader of row 0 changes from 1 to 2, row 1 has had none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.topology import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

NONE = -1


@dataclass(frozen=True, eq=False)
class Effects:
    """A plan beside the cluster that it is for.

    Args:
        snapshot: The cluster as it is.
        entries: The plan's, with topic, partition and replicas; partitions that are not here stay as they are.
    """

    snapshot: Snapshot
    entries: pa.Table
    _racks_of: dict[str, list[list[str]]] = field(default_factory=dict, init=False, repr=False)  # many groups ask

    @property
    def _replicas(self) -> pa.Table:
        return self.snapshot.replicas

    @cached_property
    def _place(self) -> dict[str, int]:
        listed = (pc.unique(table["topic"]).to_pylist() for table in (self._replicas, self.entries))
        return {topic: place for place, topic in enumerate(dict.fromkeys(t for one in listed for t in one))}

    @cached_property
    def _counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """By topic: its partitions before and after."""
        before = _highest(self._topics(self._replicas), self._replicas["partition"].to_numpy(), len(self._place))
        planned = _highest(self._topics(self.entries), self.entries["partition"].to_numpy(), len(self._place))
        return before, np.maximum(before, planned)

    def _topics(self, table: pa.Table) -> NDArray[np.int64]:
        names = pa.array(list(self._place), pa.string())
        places: NDArray[np.int64] = pc.index_in(table["topic"], value_set=names).to_numpy().astype(np.int64)
        return places

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        return np.append(0, np.cumsum(self._counts[1]))

    def _rows_of(self, table: pa.Table) -> NDArray[np.int64]:
        rows: NDArray[np.int64] = self._offsets[self._topics(table)] + table["partition"].to_numpy()
        return rows

    @property
    def rows(self) -> int:
        """How many partitions there are after the plan."""
        return int(self._offsets[-1])

    def partitions(self, topics: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
        """How many partitions each of these topics has before and after; unknown ones are left out."""
        known = [topic for topic in topics if topic in self._place]
        before, after = self._counts
        places = [self._place[topic] for topic in known]
        counted = [{t: n for t, n in zip(known, one[places].tolist(), strict=True) if n} for one in (before, after)]
        return counted[0], counted[1]

    def find(self, partitions: Sequence[tuple[str, int]]) -> NDArray[np.int64]:
        """The row of each partition; `NONE` for one that the snapshot does not know."""
        topics, numbers = zip(*partitions, strict=True) if partitions else ((), ())
        place = np.fromiter(map(self._place.get, topics, repeat(NONE)), np.int64, len(topics))
        number = np.array(numbers, np.int64)
        known = (place != NONE) & (number >= 0) & (number < self._counts_after[place])
        return np.where(known, self._offsets[place] + number, NONE)

    @cached_property
    def _counts_after(self) -> NDArray[np.int64]:
        """By topic: its partitions after; behind them 0, for a topic that is not known."""
        return np.append(self._counts[1], 0)

    def _slice(self, topic: str) -> slice:
        place = self._place[topic]
        return slice(self._offsets[place], self._offsets[place + 1])

    @cached_property
    def _leaders(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        before = np.full(self.rows, NONE, np.int32)
        leading = self._replicas.filter(self._replicas["leader"])
        before[self._rows_of(leading)] = leading["broker"].to_numpy()
        after = before.copy()
        first = pc.list_element(self.entries["replicas"], 0) if self.entries.num_rows else pa.array([], pa.int32())
        after[self._rows_of(self.entries)] = first.to_numpy()
        return before, after

    @cached_property
    def leader_changes(self) -> NDArray[np.bool_]:
        """By row: whether it is led by another broker after the plan than now."""
        before, after = self._leaders
        changes: NDArray[np.bool_] = (before != NONE) & (before != after)
        return changes

    @cached_property
    def end_offset(self) -> NDArray[np.int64]:
        """By row: its end, or `NONE` where it is not known."""
        ends = np.full(self.rows, NONE, np.int64)
        ends[self._rows_of(self._replicas)] = pc.fill_null(self._replicas["end_offset"], NONE).to_numpy()
        return ends

    @cached_property
    def rack_names(self) -> dict[str, int]:
        """The racks of brokers, and the column that each has in `racks`."""
        names = pc.unique(self.snapshot.brokers["rack"]).drop_null().to_pylist()
        return {name: place for place, name in enumerate(sorted(names))}

    @cached_property
    def racks(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """By row and rack, before and after: whether there is a replica."""
        before = np.zeros((self.rows, len(self.rack_names)), np.bool_)
        there = self._replicas.filter(pc.invert(self._replicas["adding"]))  # one being added may have little of it yet
        self._mark(before, self._rows_of(there), there["broker"].to_numpy())
        after = before.copy()
        lists = self.entries["replicas"].combine_chunks()
        rows = self._rows_of(self.entries)
        after[rows] = False
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        self._mark(after, np.repeat(rows, lengths), pc.list_flatten(lists).to_numpy(zero_copy_only=False))
        return before, after

    def _mark(self, present: NDArray[np.bool_], rows: NDArray[np.int64], brokers: NDArray[Any]) -> None:
        ids = self.snapshot.brokers["broker"].to_pylist()
        names = self.snapshot.brokers["rack"].to_pylist()
        known = {id_: self.rack_names[rack] for id_, rack in zip(ids, names, strict=True) if rack is not None}
        unique, place = np.unique(brokers, return_inverse=True)
        rack = np.array([known.get(broker, NONE) for broker in unique.tolist()], np.int64)[place]
        present[rows[rack != NONE], rack[rack != NONE]] = True

    def racks_of(self, topic: str) -> list[list[str]]:
        """The racks of a topic's partitions after the plan, as assignors take them."""
        if topic not in self._racks_of:
            names = list(self.rack_names)
            present = self.racks[1][self._slice(topic)]
            self._racks_of[topic] = [[names[rack] for rack in np.flatnonzero(row)] for row in present]
        return self._racks_of[topic]

    def racks_change(self, topics: Iterable[str]) -> bool:
        """Whether any partition of these topics is in other racks after the plan."""
        before, after = self.racks
        some = [self._slice(topic) for topic in topics if topic in self._place]
        return any(not np.array_equal(before[rows], after[rows]) for rows in some)


def _highest(topic: NDArray[np.int64], partition: NDArray[np.int32], topics: int) -> NDArray[np.int64]:
    counts = np.zeros(topics, np.int64)
    np.maximum.at(counts, topic, partition.astype(np.int64) + 1)
    return counts
