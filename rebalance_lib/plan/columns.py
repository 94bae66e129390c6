"""Columns of lists, and partitions as numbers: the shapes that let numpy work without a row loop.

A column of replica lists is held as Arrow holds it: all values one after another, and the offsets where
each row begins. A partition is held as one int64 that sorts as the partition does: the rank of its topic in
the upper 32 bits, its number in the lower. Ranks only mean something among tables that were ranked
together.

Example: the replica lists ``[4, 1]``, ``[]`` and ``[7]`` are ``values = 4 1 7`` and ``offsets = 0 2 2 3``;
the rows that the three values belong to are ``0 0 2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.topology import TopicPartition
from rebalance_lib.topology.texts import encode_texts

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    _Integers: TypeAlias = NDArray[np.signedinteger[Any]]

_INT32_BITS = 32
_SHORT = 20  # values in a row: comparing with each was faster than sorting, at 3 M values; it still was with 40
_WIDEST_TABLE = 1 << 20  # of numbers, 8 MB; with 1,000 ids a table answered 3 M look-ups ten times as fast as a search


@dataclass(frozen=True, eq=False)
class Lists:
    """A column of lists of int32 values, none of them null."""

    offsets: NDArray[np.int64]
    values: NDArray[np.int32]

    @classmethod
    def from_lengths(cls, lengths: NDArray[np.int64], values: NDArray[np.int32]) -> Lists:
        """Cut values, given one after another, into rows of these lengths."""
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(offsets, values)

    @classmethod
    def from_column(cls, column: pa.ChunkedArray[Any] | pa.Array[Any]) -> Lists:
        """Read an Arrow column of lists of int32; a null list reads as an empty one."""
        array = one_chunk(column)
        return cls.from_lengths(list_lengths(array), array.flatten().to_numpy(zero_copy_only=False))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many values each row has."""
        return np.diff(self.offsets)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The row of each value."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), self.lengths)

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """Each value with its row in one number, so that rows can be compared as sets."""
        return (self.rows << _INT32_BITS) + self.values

    def take(self, rows: NDArray[np.int64]) -> Lists:
        """The given rows, in the given order."""
        lengths = self.lengths[rows]
        taken = Lists.from_lengths(lengths, self.values[:0])
        within = np.arange(taken.offsets[-1], dtype=np.int64) - np.repeat(taken.offsets[:-1], lengths)
        return Lists(taken.offsets, self.values[np.repeat(self.offsets[:-1][rows], lengths) + within])

    def where(self, mask: NDArray[np.bool_]) -> Lists:
        """The same rows with only those values that the mask, one flag a value, keeps."""
        return Lists.from_lengths(self.count_by_row(mask), self.values[mask])

    def count_by_row(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many values of each row the mask marks."""
        running = np.zeros(len(mask) + 1, dtype=np.int64)
        np.cumsum(mask, out=running[1:])
        return running[self.offsets[1:]] - running[self.offsets[:-1]]

    def contained_in(self, other: Lists) -> NDArray[np.bool_]:
        """For each value, whether the same row of the other column has it too."""
        found: NDArray[np.bool_] = self.position_in(other) >= 0
        return found

    def position_in(self, other: Lists) -> NDArray[np.int64]:
        """For each value, where the other column's values hold it in the same row; -1 where they do not."""
        width = self._width
        if width and width == other._width and len(self.values) == len(other.values):
            return self._position_among(other, width)
        position = np.full(len(self.values), -1, dtype=np.int64)
        begins, lengths = other.offsets[self.rows], other.lengths[self.rows]
        # Replica lists are short: comparing with each place of the other row is far cheaper than any sorting.
        left = np.flatnonzero(lengths > 0)
        place = 0
        while len(left):
            at = begins[left] + place
            same = other.values[at] == self.values[left]
            position[left[same]] = at[same]
            place += 1
            left = left[~same & (lengths[left] > place)]
        return position

    @cached_property
    def _width(self) -> int:
        """How many values each row has, if all have as many; else 0."""
        width = int(self.offsets[1]) if len(self.offsets) > 1 else 0
        return width if np.all(self.lengths == width) else 0

    def _position_among(self, other: Lists, width: int) -> NDArray[np.int64]:
        """`position_in` for rows that are all as long, as the replica lists of most clusters: no row is looked up."""
        ours, theirs = self.values.reshape(-1, width), other.values.reshape(-1, width)
        begins, position = other.offsets[:-1, None], np.full(ours.shape, -1, dtype=np.int64)
        for place in reversed(range(width)):  # the first of equals is written last
            np.copyto(position, begins + place, where=ours == theirs[:, place, None])
        return position.ravel()

    def repeated(self) -> NDArray[np.int64]:
        """Where the values stand that their row has already, for each the last time it is there, sorted."""
        if not self._repeats():
            return np.empty(0, dtype=np.int64)
        order = np.argsort(self.keys, kind="stable")
        again = self.keys[order][1:] == self.keys[order][:-1]
        last = np.append(~again[1:], [True] * min(1, len(again)))
        return np.sort(order[1:][again & last])

    def _repeats(self) -> bool:
        """Whether any row has a value twice: short rows are compared with themselves, shifted; long ones are sorted."""
        longest = int(self.lengths.max(initial=0))
        if longest > _SHORT:
            ordered = np.sort(self.keys)
            return bool(np.any(ordered[1:] == ordered[:-1]))
        return any(np.any(self.keys[step:] == self.keys[:-step]) for step in range(1, longest))

    def same_rows(self, other: Lists) -> NDArray[np.bool_]:
        """For each row, whether both columns have the same values in the same order."""
        same: NDArray[np.bool_] = self.lengths == other.lengths
        if same.all():
            same &= self.count_by_row(self.values != other.values) == 0
        else:
            rows = np.flatnonzero(same)
            same[rows] = self.take(rows).same_rows(other.take(rows))
        return same

    def to_arrow(self) -> pa.Array[Any]:
        """The column as an Arrow list array."""
        return pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), pa.array(self.values, pa.int32()))


def one_chunk(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> Any:
    """The column as one Arrow array; ``Any``, since what it can do depends on its type at run time."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def few_chunks(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The column in one chunk, or where its text is more than 2 GiB, which no chunk can hold, in as few as can be."""
    return pa.table({"": column}).combine_chunks()[0]


def list_lengths(array: Any) -> NDArray[np.int64]:
    """How many values each list of an Arrow list array has; none for a null list."""
    lengths: NDArray[np.int64] = (
        pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return lengths


def partition_keys(*tables: pa.Table) -> list[NDArray[np.int64]]:
    """One number for each row's partition, sorting as partitions do, comparable among these tables."""
    encoded = [encode_texts(table["topic"]) for table in tables]
    topics = sorted(set().union(*(texts.to_pylist() for _, texts in encoded)))
    rank = {topic: number for number, topic in enumerate(topics)}
    keys = []
    for table, (topic_of_row, texts) in zip(tables, encoded, strict=True):
        ranks = np.array([rank[topic] for topic in texts.to_pylist()], dtype=np.int64)
        partition = one_chunk(table["partition"]).to_numpy(zero_copy_only=False)
        keys.append((ranks[topic_of_row] << _INT32_BITS) + partition)
    return keys


def partition_at(table: pa.Table, row: int | np.integer[Any]) -> TopicPartition:
    """The partition of one row."""
    return TopicPartition(table["topic"][int(row)].as_py(), table["partition"][int(row)].as_py())


def find_sorted(keys: _Integers, wanted: _Integers) -> NDArray[np.int64]:
    """Where each wanted key stands in sorted keys, each there once; -1 where it does not."""
    wanted = wanted.astype(np.int64, copy=False)
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    lowest, highest = int(keys[0]), int(keys[-1])
    if len(wanted) > highest - lowest < _WIDEST_TABLE:
        place = np.full(highest - lowest + 1, -1, dtype=np.int64)
        place[keys - lowest] = np.arange(len(keys))
        return np.where((wanted >= lowest) & (wanted <= highest), place[np.clip(wanted, lowest, highest) - lowest], -1)
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[found] == wanted, found, -1)
