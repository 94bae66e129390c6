"""Sums and percentiles over intervals, on arrays: what `series` and `reads` are made of.

Whatever is measured has a column: a partition in `series`, a partition as one group reads it in `reads`. Columns stand
in the order of their first appearance. Values come in *grids*, a row for each of some moments that follow each other,
mostly those of a day, and are kept as they came, as wide as there were columns then; what has no value has NaN. Sums
are those of one moment after the other, to the last digit, however many come at once.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
IntGrid = np.ndarray[tuple[int, int], np.dtype[np.int64]]
FloatGrid = np.ndarray[tuple[int, int], np.dtype[np.float64]]
FlagGrid = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
PERCENTILE = 0.95
BLOCK = 4096  # columns sorted at a time
FEW_RANKS = 16  # of all columns: mostly each has as many values, and to find two ranks takes a quarter of sorting all


class Columns:
    """Which column each key has; the keys of one moment mostly are those of the moment before, in the same order."""

    def __init__(self) -> None:
        self.keys: Ints = np.empty(0, np.int64)
        self._last_keys: Ints | None = None
        self._last_columns: Ints | slice = slice(0)

    def of(self, keys: Ints) -> Ints | slice:
        """Where these keys stand, each of which comes once; new ones are given a column at the end."""
        if self._last_keys is None or not np.array_equal(keys, self._last_keys):
            new = np.setdiff1d(keys, self.keys)
            if len(new) == len(keys) and not len(self.keys):
                new = keys  # the first: in the order they come, so that the next need no lookup
            self.keys = np.concatenate([self.keys, new])
            order = np.argsort(self.keys, kind="stable")
            found = order[np.searchsorted(self.keys, keys, sorter=order)]
            in_order = len(found) == len(self.keys) and bool((np.diff(found) == 1).all())
            self._last_keys, self._last_columns = keys, slice(None) if in_order else found
        return self._last_columns


class Intervals:
    """Bytes and seconds of all kept intervals, the rate of each, and the rate of the last."""

    def __init__(self) -> None:
        self._rates: list[FloatGrid] = []
        self._bytes: Floats = np.empty(0)
        self._seconds: Floats = np.empty(0)
        self._last: Floats = np.empty(0)

    def add(self, columns: Ints | slice, count: int, amount: FloatGrid, seconds: FloatGrid) -> None:
        """Take in intervals of some of ``count`` columns; one is not kept where its amount is NaN."""
        self._bytes, self._seconds = (padded(total, count, 0.0) for total in (self._bytes, self._seconds))
        self._last = padded(self._last, count, np.nan)
        known = ~np.isnan(amount)
        if known.any():
            rate = amount / seconds
            self._bytes[columns] = _added(self._bytes[columns], np.where(known, amount, 0.0))
            self._seconds[columns] = _added(self._seconds[columns], np.where(known, seconds, 0.0))
            row = last_row(known)
            self._last[columns] = np.where(row >= 0, rate[row, np.arange(len(row))], self._last[columns])
            self._rates.append(spread(columns, count, rate))

    def mean(self, count: int) -> Floats:
        """Bytes over seconds; NaN without an interval."""
        total, seconds = (padded(values, count, 0.0) for values in (self._bytes, self._seconds))
        rate: Floats = np.divide(total, seconds, out=np.full(count, np.nan), where=seconds > 0)
        return rate

    def p95(self, count: int) -> Floats:
        """The 95th percentile of the rates, each interval counting once; NaN without an interval."""
        return percentile(self._rates, count)

    def last(self, count: int) -> Floats:
        """The rate of the last kept interval; NaN without one."""
        return padded(self._last, count, np.nan)


def _added(total: Floats, rows: FloatGrid) -> Floats:
    """The total and all rows, in this order: a sum over a column would be another one in its last digit."""
    added: Floats = np.add.accumulate(np.vstack([total, rows]))[-1]
    return added


def last_row(known: FlagGrid) -> Ints:
    """By column: the last row in which it is known; -1 where it never is."""
    rows: Ints = np.where(known, np.arange(len(known))[:, None], -1).max(axis=0)
    return rows


def percentile(grids: list[FloatGrid], count: int) -> Floats:
    """The 95th percentile of each of ``count`` columns over what is not NaN in it; NaN where nothing is.

    Grids may be narrower than the others: what is missing at their right is NaN.
    """
    found = np.full(count, np.nan)
    ends = np.cumsum([0, *map(len, grids)])
    for begin in range(0, count if grids else 0, BLOCK):
        width = min(BLOCK, count - begin)
        values = np.full((width, ends[-1]), np.nan)
        for (first, last), grid in zip(pairwise(ends), grids, strict=True):
            part = grid[:, begin : begin + width]
            values[: part.shape[1], first:last] = part.T
        rank = PERCENTILE * (np.maximum(np.count_nonzero(~np.isnan(values), axis=1), 1) - 1)
        below, above = np.floor(rank).astype(np.intp), np.ceil(rank).astype(np.intp)
        wanted = np.unique([below, above])
        if len(wanted) <= FEW_RANKS:
            values.partition(wanted, axis=1)
        else:
            values.sort(axis=1)  # NaN goes to the end, in both
        low, high = (np.take_along_axis(values, n[:, None], 1)[:, 0] for n in (below, above))
        found[begin : begin + width] = low + (high - low) * (rank - below)
    return found


def spread(columns: Ints | slice, count: int, values: FloatGrid) -> FloatGrid:
    """A value for each of ``count`` columns: these in their columns, NaN elsewhere."""
    if isinstance(columns, slice):
        return values
    every = np.full((len(values), count), np.nan)
    every[:, columns] = values
    return every


def padded(values: Floats, count: int, padding: float) -> Floats:
    """The values, and as many times the padding as new columns have come."""
    if len(values) == count:
        return values
    return np.concatenate([values, np.full(count - len(values), padding)])
