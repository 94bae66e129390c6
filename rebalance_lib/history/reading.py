"""The samples of a share, in the order of time, out of files of one moment and of whole days.

A file of one moment is read when its turn comes. Of a day file, the share's row groups are read one after another when
its first moment is due; what is kept are the samples, that is, the leaders' rows, in the order of their moments.
Moments that follow each other and have the same partitions are given together, since arithmetic on few partitions at a
time is slow: of two months with 288 snapshots a day and 300 partitions, it took half of all time.

Files may have been replaced since they were listed. Who finds one missing looks up where its moment is by now.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import FileMissingError
from rebalance_lib.history.dataset import LISTINGS, HistoryFile, is_day_file, located, moments_in
from rebalance_lib.history.intervals import Flags, Ints
from rebalance_lib.history.reads import Committed
from rebalance_lib.history.series import Samples
from rebalance_lib.history.shares import AFTER_ALL, COMMITTED, TAKEN_AT, Share, columns_of, row_groups_of

Places = np.ndarray[tuple[int], np.dtype[np.signedinteger[Any]]]
UNKNOWN = -1
SECONDS_OF_A_DAY = 86_400
MICROSECONDS = 1_000_000


class ShareReader:
    """Reads a share; topics and groups are numbers, whose names are known when all is read."""

    def __init__(self, history: Artifacts, share: Share) -> None:
        self.topics = Topics()
        self.groups = Names()
        self._history = history
        self._share = share
        self._places = {file.taken_at: n for n, file in enumerate(share.files)}
        self._read: dict[datetime, Samples] = {}  # what is read already, by the first of its moments

    def samples(self) -> Iterator[Samples]:
        """All samples, in the order of time."""
        done = 0
        while done < len(self._share.files):
            file = self._share.files[done]
            if file.taken_at not in self._read:
                self._read_file(file)
            samples = self._read.pop(file.taken_at)
            done += len(samples.at)
            if len(samples.keys):
                yield samples

    def _read_file(self, file: HistoryFile) -> None:
        for _ in range(LISTINGS - 1):
            try:
                return self._read_moments(file)
            except FileMissingError:
                file = located(self._history, file) or file
        return self._read_moments(file)

    def _read_moments(self, file: HistoryFile) -> None:
        """Read one moment, and of a day file those of the share that come after it."""
        name = f"{self._history.uri}/{file.name}"
        with self._history.open_parquet(file.name, read_dictionary=["topic"]) as parquet:
            numbers, columns = row_groups_of(parquet, self._share, name), columns_of(parquet)
            at_once, moments, places = [numbers] if numbers else [], [file.taken_at], None
            if is_day_file(file.name):
                known = moments_in(parquet, name)
                moments = [moment for moment in known if moment >= file.taken_at and moment in self._places]
                at_once, columns, places = [[number] for number in numbers], [TAKEN_AT, *columns], places_of(moments)
            parts = [
                self._rows(parquet.read_row_groups(some, columns=columns, use_threads=False), places)
                for some in at_once
            ]
        # Where another file has a moment in between, it comes first.
        breaks = [n for n, (one, next_) in enumerate(pairwise(self._places[m] for m in moments), 1) if next_ > one + 1]
        self._read |= _by_time(parts, moments, breaks)

    def _rows(self, table: pa.Table, places: Places | None) -> _Rows:
        """Those of a table's rows that are samples of the share, at a moment that has a place."""
        size = _ints(table["size_bytes"])
        rows = np.flatnonzero(table["leader"].to_numpy() & (size >= 0))
        moment: Places = np.zeros(len(rows), np.int16)
        if places is not None:
            moment = places[second_of_day(table[TAKEN_AT], rows)]
            if moment.min(initial=0) < 0:
                rows, moment = rows[moment >= 0], moment[moment >= 0]
        keys = self.topics.keys(table, rows)
        within = self.topics.within(keys, self._share)
        if not within.all():
            rows, moment, keys = rows[within], moment[within], keys[within]
        start, end = (_ints(table[name])[rows] for name in ("start_offset", "end_offset"))
        return _Rows(moment, keys, size[rows], start, end, self._committed(table, rows))

    def _committed(self, table: pa.Table, rows: Ints) -> Committed | None:
        """What groups had committed for these rows; None where no groups were listed."""
        if COMMITTED not in table.column_names or table[COMMITTED].null_count == table.num_rows:
            return None
        column = table[COMMITTED].combine_chunks().take(pa.array(rows))
        entries = pc.list_flatten(column)
        names = entries.field("group").dictionary_encode()
        return Committed(
            listed=pc.is_valid(column).to_numpy(zero_copy_only=False),
            row=pc.list_parent_indices(column).to_numpy().astype(np.int64),
            group=self.groups.numbers(names.dictionary.to_pylist())[names.indices.to_numpy()],
            offset=entries.field("offset").to_numpy(),
        )


class Names:
    """Names as numbers, in the order of their first appearance."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def numbers(self, names: list[str]) -> Ints:
        """The number of each of these; a new name is given one."""
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = len(self.names)
                self.names.append(name)
        return np.array([self._numbers[name] for name in names], dtype=np.int64)


class Topics(Names):
    """Topics as numbers, so that a partition is one 64-bit integer: the topic's number, then the partition's."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[pa.Array, Ints] | None = None

    def keys(self, table: pa.Table, rows: Ints) -> Ints:
        """The partitions of these rows."""
        column = table["topic"].unify_dictionaries().combine_chunks()
        topics = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        if self._last is None or not self._last[0].equals(topics.dictionary):
            self._last = (topics.dictionary, self.numbers(topics.dictionary.to_pylist()))
        numbers = self._last[1][topics.indices.to_numpy()[rows]]
        keys: Ints = (numbers << 32) | table["partition"].to_numpy()[rows]
        return keys

    def within(self, keys: Ints, share: Share) -> Flags:
        """Which of these partitions belong to the share."""
        inside = np.ones(len(keys), dtype=np.bool_)
        if share.low is None and share.high is None:
            return inside
        first = np.zeros(len(self.names), dtype=np.int64)
        end = np.full(len(self.names), AFTER_ALL, dtype=np.int64)
        for number, name in enumerate(self.names):
            if share.low is not None and name <= share.low.topic:
                first[number] = share.low.partition if name == share.low.topic else AFTER_ALL
            if share.high is not None and name >= share.high.topic:
                end[number] = share.high.partition if name == share.high.topic else 0
        topics, partitions = keys >> 32, keys & (2**32 - 1)
        inside &= (partitions >= first[topics]) & (partitions < end[topics])
        return inside


class _Rows(NamedTuple):
    """Samples of several moments, as a row group has them; by sample, the place of its moment among those wanted."""

    moment: Places
    keys: Ints
    size: Ints
    start: Ints
    end: Ints
    committed: Committed | None


def _by_time(parts: list[_Rows], moments: list[datetime], breaks: list[int]) -> dict[datetime, Samples]:
    """The samples of these moments, as many as can be together; partitions are in the order in which they came.

    Args:
        parts: What was read.
        moments: The moments, by time.
        breaks: The numbers of moments that must not be together with the one before.
    """
    moment, keys, size, start, end = (
        np.concatenate([np.empty(0, np.int16 if n == 0 else np.int64), *(part[n] for part in parts)]) for n in range(5)
    )
    order = np.argsort(moment, kind="stable")
    ends = np.searchsorted(moment[order], np.arange(len(moments) + 1))
    keys, size, start, end = (column[order] for column in (keys, size, start, end))
    committed = _committed_by_moment(parts, order, ends)
    at = np.array([one.timestamp() for one in moments])
    of_moment = [keys[begin:last] for begin, last in pairwise(ends)]
    new = [n for n, (one, other) in enumerate(pairwise(of_moment), 1) if not np.array_equal(one, other)]
    found = {}
    for first, last in pairwise(sorted({0, *new, *breaks, len(moments)})):
        grid, rows = (last - first, len(of_moment[first])), slice(ends[first], ends[last])
        values = (size[rows].reshape(grid), start[rows].reshape(grid), end[rows].reshape(grid))
        found[moments[first]] = Samples(at[first:last], of_moment[first], *values, committed[first:last])
    return found


def _committed_by_moment(parts: list[_Rows], order: Ints, ends: Ints) -> list[Committed | None]:
    """By moment, what groups had committed; the samples of all parts are put in this order, and cut at these ends."""
    starts = np.cumsum([0, *(len(part.moment) for part in parts)])
    found = [(start, part.committed) for start, part in zip(starts, parts, strict=False)]
    known = [(start, one) for start, one in found if one is not None]
    if not known:
        return [None] * (len(ends) - 1)
    listed = np.zeros(len(order), np.bool_)
    for start, one in known:
        listed[start : start + len(one.listed)] = one.listed
    listed = listed[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    row = place[np.concatenate([start + one.row for start, one in known])]
    by_row = np.argsort(row, kind="stable")
    row = row[by_row]
    group, offset = (np.concatenate([one[n] for _, one in known])[by_row] for n in (2, 3))
    entries = np.searchsorted(row, ends)
    return [
        Committed(listed[begin:end], row[first:last] - begin, group[first:last], offset[first:last])
        if listed[begin:end].any()
        else None
        for (begin, end), (first, last) in zip(pairwise(ends), pairwise(entries), strict=True)
    ]


def places_of(moments: list[datetime]) -> Places:
    """By second of the day: which of these moments it is; -1 for none of them."""
    seconds = [int(moment.timestamp()) % SECONDS_OF_A_DAY for moment in moments]
    # Few values are sorted by counting; a day has more moments than 16 bits have only if they are seconds apart.
    places: Places = np.full(SECONDS_OF_A_DAY, -1, np.int16 if len(moments) < 2**15 else np.int32)
    places[seconds] = np.arange(len(moments))
    return places


def second_of_day(taken_at: pa.ChunkedArray, rows: Ints) -> Ints:
    """The second of the day in which each of these rows was taken."""
    microseconds = pc.cast(taken_at, pa.int64()).to_numpy()[rows]
    seconds: Ints = microseconds // MICROSECONDS % SECONDS_OF_A_DAY
    return seconds


def _ints(column: pa.ChunkedArray) -> Ints:
    values: Ints = (pc.fill_null(column, UNKNOWN) if column.null_count else column).to_numpy()
    return values
