"""The arithmetic of `loads`, on arrays: samples of many partitions come in, by time; rates come out.

Partitions are columns in the order of their first appearance, see `intervals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rebalance_lib.history.intervals import (
    Columns,
    FlagGrid,
    FloatGrid,
    Floats,
    Intervals,
    IntGrid,
    Ints,
    percentile,
    spread,
)
from rebalance_lib.history.reads import Committed, Reads


class Samples(NamedTuple):
    """Samples of some partitions, the same at each of some moments that follow each other.

    Args:
        at: The moments, in seconds.
        keys: The partitions.
        size: By moment and partition, as the next two: their bytes.
        start: Their start offsets; below zero for unknown.
        end: Their end offsets; below zero for unknown.
        committed: By moment, what consumer groups had committed for them; None where no groups were listed.
    """

    at: Floats
    keys: Ints
    size: IntGrid
    start: IntGrid
    end: IntGrid
    committed: Sequence[Committed | None]


class Series:
    """The samples of many partitions, as far as they have come in; all arrays are by partition.

    Args:
        by_group: Whether the rates of each consumer group are kept, too, and not only their sum.
    """

    def __init__(self, *, by_group: bool = False) -> None:
        self.size: Ints = np.empty(0, np.int64)
        self.samples: Ints = np.empty(0, np.int64)
        self.reads = Reads(by_group=by_group)
        self._columns = Columns()
        self._at: Floats = np.empty(0)
        self._start: Ints = np.empty(0, np.int64)
        self._end: Ints = np.empty(0, np.int64)
        self._grown = Intervals()
        self._written = Intervals()
        self._sizes: list[FloatGrid] = []

    @property
    def keys(self) -> Ints:
        """The partitions."""
        return self._columns.keys

    def add(self, samples: Samples) -> None:
        """Take in samples, which are later than those before them."""
        at, keys, size, start, end, committed = samples
        columns = self._columns.of(keys)
        self._extend()
        count = len(self.keys)
        old_size, old_start, old_end = (
            np.vstack([before[columns], now[:-1]])
            for before, now in ((self.size, size), (self._start, start), (self._end, end))
        )
        seconds = np.empty(size.shape)
        seconds[0], seconds[1:] = at[0] - self._at[columns], np.diff(at)[:, None]  # NaN where it is the first sample
        kept = (seconds > 0) & ~_backwards(old_end, end) & ~_backwards(old_start, start)
        records = end - old_end
        held = end - start
        record_known = (start >= 0) & (held > 0) & (size > 0)
        # Where a start offset is not known, no record's size is: to keep only the intervals without any would give 0.
        known = kept & (end >= 0) & (old_end >= 0) & (record_known | ((records == 0) & (start >= 0)))
        per_record = np.divide(size, held, out=np.full(size.shape, np.nan), where=record_known)
        written = np.where(records == 0, 0.0, records * per_record)
        self._grown.add(columns, count, np.where(kept, size - old_size, np.nan), seconds)
        self._written.add(columns, count, np.where(known, written, np.nan), seconds)
        places = np.arange(count)[columns]
        listed = [n for n, one in enumerate(committed) if one is not None]
        for first, last in pairwise([0, *(n + 1 for n in listed), len(at)]):  # a listing ends each part but the last
            self.reads.begin(at[first:last], places, kept[first:last])
            if last and (found := committed[last - 1]) is not None and first < last:
                self.reads.add(float(at[last - 1]), places, per_record[last - 1], found)
        self._sizes.append(spread(columns, count, size.astype(np.float64)))
        self.size[columns], self._start[columns], self._end[columns] = size[-1], start[-1], end[-1]
        self._at[columns] = at[-1]
        self.samples[columns] += len(at)

    def rates(self) -> dict[str, Floats]:
        """The columns of `LOADS` that are computed over the window; NaN for unknown."""
        count = len(self.keys)
        return {
            "size_p95": percentile(self._sizes, count),
            "growth": self._grown.mean(count),
            "growth_p95": self._grown.p95(count),
            **statistics("write_rate", self._written, count),
            **statistics("read_rate", self.reads.of_partitions, count),
        }

    def _extend(self) -> None:
        new = len(self.keys) - len(self.size)
        if new:
            unknown = np.full(new, -1, dtype=np.int64)
            self.size = np.concatenate([self.size, unknown])
            self._start = np.concatenate([self._start, unknown])
            self._end = np.concatenate([self._end, unknown])
            self.samples = np.concatenate([self.samples, np.zeros_like(unknown)])
            self._at = np.concatenate([self._at, np.full(new, np.nan)])


def statistics(name: str, intervals: Intervals, count: int) -> dict[str, Floats]:
    """A rate in the three columns that there are of it."""
    return {
        name: intervals.mean(count),
        f"{name}_p95": intervals.p95(count),
        f"{name}_last": intervals.last(count),
    }


def _backwards(old: IntGrid, new: IntGrid) -> FlagGrid:
    return (new >= 0) & (new < old)
