"""The arithmetic of `loads`, on arrays: samples of many partitions come in, moment by moment; rates come out.

Partitions are columns in the order of their first appearance, see `intervals`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rebalance_lib.history.intervals import Columns, Flags, Floats, Intervals, Ints, percentile, spread
from rebalance_lib.history.reads import Committed, Reads


class Samples(NamedTuple):
    """One sample each of some partitions, all at one moment.

    Args:
        keys: The partitions.
        size: Their bytes.
        start: Their start offsets; below zero for unknown.
        end: Their end offsets; below zero for unknown.
        committed: What consumer groups had committed for them; None where no groups were listed.
    """

    keys: Ints
    size: Ints
    start: Ints
    end: Ints
    committed: Committed | None = None


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
        self._sizes: list[Floats] = []

    @property
    def keys(self) -> Ints:
        """The partitions."""
        return self._columns.keys

    def add(self, at: float, samples: Samples) -> None:
        """Take in the samples of one moment, in seconds, which is later than those before it."""
        keys, size, start, end, committed = samples
        columns = self._columns.of(keys)
        self._extend()
        old_size, old_start, old_end = self.size[columns], self._start[columns], self._end[columns]
        seconds = at - self._at[columns]  # NaN where this is the first sample
        kept = (seconds > 0) & ~_backwards(old_end, end) & ~_backwards(old_start, start)
        records = end - old_end
        held = end - start
        record_known = (start >= 0) & (held > 0) & (size > 0)
        # Where a start offset is not known, no record's size is: to keep only the intervals without any would give 0.
        known = kept & (end >= 0) & (old_end >= 0) & (record_known | ((records == 0) & (start >= 0)))
        per_record = np.divide(size, held, out=np.full(len(keys), np.nan), where=record_known)
        count = len(self.keys)
        written = np.where(records == 0, 0.0, records * per_record)
        self._grown.add(columns, count, np.where(kept, size - old_size, np.nan), seconds)
        self._written.add(columns, count, np.where(known, written, np.nan), seconds)
        self.reads.add(at, np.arange(count)[columns], kept, per_record, committed)
        self._sizes.append(spread(columns, count, size.astype(np.float64)))
        self.size[columns], self._start[columns], self._end[columns] = size, start, end
        self._at[columns] = at
        self.samples[columns] += 1

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


def _backwards(old: Ints, new: Ints) -> Flags:
    return (new >= 0) & (new < old)
