"""The arithmetic of `loads`, on arrays: samples of many partitions come in, moment by moment; rates come out.

Partitions are columns in the order of their first appearance. For each moment one array of sizes, one of growth and
one of write rates is kept, as long as there were columns then; a partition without a value has NaN.
"""

from __future__ import annotations

import numpy as np

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
PERCENTILE = 0.95
BLOCK = 4096  # columns sorted at a time


class Series:
    """The samples of many partitions, as far as they have come in; all arrays are by partition."""

    def __init__(self) -> None:
        self.keys: Ints = np.empty(0, np.int64)
        self.size: Ints = np.empty(0, np.int64)
        self.samples: Ints = np.empty(0, np.int64)
        self._at: Floats = np.empty(0)
        self._start: Ints = np.empty(0, np.int64)
        self._end: Ints = np.empty(0, np.int64)
        self._grown = _Total()
        self._written = _Total()
        self._sizes: list[Floats] = []
        self._last_keys: Ints | None = None
        self._last_columns: Ints | slice = slice(0)

    def add(self, at: float, keys: Ints, size: Ints, start: Ints, end: Ints) -> None:
        """Take in one sample each of some partitions, all at one moment, which is later than those before it.

        Args:
            at: The moment, in seconds.
            keys: The partitions.
            size: Their bytes.
            start: Their start offsets; below zero for unknown.
            end: Their end offsets; below zero for unknown.
        """
        columns = self._columns(keys)
        old_size, old_start, old_end = self.size[columns], self._start[columns], self._end[columns]
        seconds = at - self._at[columns]  # NaN where this is the first sample
        kept = (seconds > 0) & ~_backwards(old_end, end) & ~_backwards(old_start, start)
        records = end - old_end
        held = end - start
        record_known = (start >= 0) & (held > 0) & (size > 0)
        known = kept & (end >= 0) & (old_end >= 0) & (record_known | (records == 0))
        per_record = np.divide(size, held, out=np.zeros(len(keys)), where=record_known)
        count = len(self.keys)
        self._grown.add(columns, count, np.where(kept, size - old_size, np.nan), seconds)
        self._written.add(columns, count, np.where(known, records * per_record, np.nan), seconds)
        self._sizes.append(_spread(columns, count, size.astype(np.float64)))
        self.size[columns], self._start[columns], self._end[columns] = size, start, end
        self._at[columns] = at
        self.samples[columns] += 1

    def rates(self) -> dict[str, Floats]:
        """The columns of `LOADS` that are computed over the window; NaN for unknown."""
        count = len(self.keys)
        return {
            "size_p95": percentile(self._sizes, count),
            "growth": self._grown.rate(count),
            "growth_p95": percentile(self._grown.rates, count),
            "write_rate": self._written.rate(count),
            "write_rate_p95": percentile(self._written.rates, count),
        }

    def _columns(self, keys: Ints) -> Ints | slice:
        """Where these partitions stand; unknown ones are given a column."""
        if self._last_keys is None or not np.array_equal(keys, self._last_keys):
            new = np.setdiff1d(keys, self.keys)
            if len(new) == len(keys) and not len(self.keys):
                new = keys  # the first: in the order they come, so that the next need no lookup
            self._extend(new)
            order = np.argsort(self.keys, kind="stable")
            found = order[np.searchsorted(self.keys, keys, sorter=order)]
            in_order = len(found) == len(self.keys) and bool((np.diff(found) == 1).all())
            self._last_keys, self._last_columns = keys, slice(None) if in_order else found
        return self._last_columns

    def _extend(self, keys: Ints) -> None:
        unknown = np.full(len(keys), -1, dtype=np.int64)
        self.keys = np.concatenate([self.keys, keys])
        self.size = np.concatenate([self.size, unknown])
        self._start = np.concatenate([self._start, unknown])
        self._end = np.concatenate([self._end, unknown])
        self.samples = np.concatenate([self.samples, np.zeros_like(unknown)])
        self._at = np.concatenate([self._at, np.full(len(keys), np.nan)])


class _Total:
    """Bytes and seconds of all kept intervals, and the rate of each."""

    def __init__(self) -> None:
        self.rates: list[Floats] = []
        self._bytes: Floats = np.empty(0)
        self._seconds: Floats = np.empty(0)

    def add(self, columns: Ints | slice, count: int, amount: Floats, seconds: Floats) -> None:
        """Take in the interval of each partition; it is not kept where its amount is NaN."""
        self._bytes, self._seconds = (_padded(total, count, 0.0) for total in (self._bytes, self._seconds))
        known = ~np.isnan(amount)
        self._bytes[columns] += np.where(known, amount, 0.0)
        self._seconds[columns] += np.where(known, seconds, 0.0)
        if known.any():
            self.rates.append(_spread(columns, count, amount / seconds))

    def rate(self, count: int) -> Floats:
        """Bytes over seconds; NaN without an interval."""
        grown, seconds = (_padded(total, count, 0.0) for total in (self._bytes, self._seconds))
        rate: Floats = np.divide(grown, seconds, out=np.full(count, np.nan), where=seconds > 0)
        return rate


def percentile(rows: list[Floats], count: int) -> Floats:
    """The 95th percentile of each of ``count`` columns over what is not NaN in it; NaN where nothing is.

    Rows may be shorter than the others: what is missing at their ends is NaN.
    """
    found = np.full(count, np.nan)
    for begin in range(0, count if rows else 0, BLOCK):
        width = min(BLOCK, count - begin)
        values = np.full((width, len(rows)), np.nan)
        for n, row in enumerate(rows):
            part = row[begin : begin + width]
            values[: len(part), n] = part
        values.sort(axis=1)  # NaN goes to the end
        rank = PERCENTILE * (np.maximum(np.count_nonzero(~np.isnan(values), axis=1), 1) - 1)
        below = np.floor(rank).astype(np.intp)
        low, high = (np.take_along_axis(values, n[:, None], 1)[:, 0] for n in (below, np.ceil(rank).astype(np.intp)))
        found[begin : begin + width] = low + (high - low) * (rank - below)
    return found


def _backwards(old: Ints, new: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return (new >= 0) & (new < old)


def _spread(columns: Ints | slice, count: int, values: Floats) -> Floats:
    if isinstance(columns, slice):
        return values
    spread = np.full(count, np.nan)
    spread[columns] = values
    return spread


def _padded(values: Floats, count: int, padding: float) -> Floats:
    if len(values) == count:
        return values
    return np.concatenate([values, np.full(count - len(values), padding)])
