"""How many bytes partitions and replicas have, looked up for many at once.

Sizes are given by partition, or by replica where the table has a ``broker`` column. Replicas of one
partition differ in size (a follower behind, a log cleaned at another time), so where replicas are given,
each question gets the replica that will be read: the leader's for a new replica, its own for a move between
log dirs.

Example: with ``foo-0`` of 10 bytes on broker 1 and 8 on broker 2, a replica added to ``[1, 2]`` copies 10
bytes, and the one of broker 2 going to another log dir copies 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.columns import Lists, few_chunks, find_sorted, one_chunk, partition_at, partition_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.topology import TopicPartition

_TYPES = {"topic": pa.string(), "partition": pa.int32(), "size_bytes": pa.int64(), "broker": pa.int32()}
_REQUIRED = ("topic", "partition", "size_bytes")


@dataclass(frozen=True, eq=False)
class Sizes:
    """Bytes by partition, or by replica if the table has a column ``broker``."""

    table: pa.Table

    @classmethod
    def from_source(cls, source: Mapping[TopicPartition, int] | pa.Table) -> Sizes:
        """Sizes from a mapping or a table; raises InvalidInputError for missing columns, types or values."""
        if isinstance(source, Mapping):
            source = _table_of(source)
        names = [name for name in _TYPES if name in source.column_names or name in _REQUIRED]
        missing = [name for name in names if name not in source.column_names]
        if missing:
            message = f"sizes need the columns {', '.join(_REQUIRED)}"
            raise InvalidInputError(f"{message}, this table lacks {', '.join(missing)}; add them")
        try:
            table = pa.table({name: few_chunks(source[name].cast(_TYPES[name])) for name in names})
        except pa.ArrowException as error:
            raise InvalidInputError(f"sizes are not of the right type: {error}; convert the column") from error
        for name in names:
            if table[name].null_count:
                raise InvalidInputError(f"sizes have no {name} in {table[name].null_count} rows; leave those rows out")
        sizes = cls(table)
        negative = np.flatnonzero(sizes._size_bytes < 0)
        if len(negative):
            row = negative[0]
            size = sizes._size_bytes[row]
            raise InvalidInputError(f"the size of {partition_at(table, row)} is {size}; give 0 or more bytes")
        return sizes

    @property
    def by_replica(self) -> bool:
        """Whether there is one size for each replica."""
        return "broker" in self.table.column_names

    def bytes_added(self, prior: pa.Table, adding: Lists) -> NDArray[np.int64]:
        """For each row, the bytes that its added replicas copy from the leader of the prior assignment."""
        counts = adding.lengths
        rows = np.flatnonzero(counts)
        partitions = prior.take(rows)
        size = self._of_partitions(partitions)
        if self.by_replica:
            replicas = Lists.from_column(partitions["replicas"])
            of_leader = self._find_replicas(partitions, replicas.values[replicas.offsets[:-1]])
            size = np.where(of_leader >= 0, self._size_bytes[of_leader], size)
        total = np.zeros(len(counts), dtype=np.int64)
        total[rows] = size * counts[rows]
        return total

    def bytes_within_brokers(self, target: pa.Table, moving: Lists) -> NDArray[np.int64]:
        """For each row, the bytes of the replicas that move between log dirs of their broker."""
        partitions = target.take(moving.rows)
        if self.by_replica:
            place = self._find_replicas(partitions, moving.values)
            _refuse_missing(partitions, place)
            size = self._size_bytes[place]
        else:
            size = self._of_partitions(partitions)
        total = np.zeros(len(moving.lengths), dtype=np.int64)
        np.add.at(total, moving.rows, size)
        return total

    def _of_partitions(self, partitions: pa.Table) -> NDArray[np.int64]:
        """The size of each of these partitions: its largest replica, where replicas are given."""
        keys, known = partition_keys(partitions, self.table)
        order = _order(known, self._size_bytes)
        known = known[order]
        last = np.flatnonzero(np.append(known[1:] != known[:-1], [True] * min(1, len(known))))
        place = find_sorted(known[last], keys)
        _refuse_missing(partitions, place)
        return self._size_bytes[order[last[place]]]

    @property
    def _size_bytes(self) -> NDArray[np.int64]:
        size_bytes: NDArray[np.int64] = one_chunk(self.table["size_bytes"]).to_numpy()
        return size_bytes

    def _find_replicas(self, partitions: pa.Table, brokers: NDArray[np.int32]) -> NDArray[np.int64]:
        """The row of the size of each of these partitions on the broker beside it; -1 where there is none."""
        keys, known = partition_keys(partitions, self.table)
        unique = np.unique(known)
        replicas = (find_sorted(unique, known) << 32) + one_chunk(self.table["broker"]).to_numpy()
        order = np.argsort(replicas, kind="stable")
        place = find_sorted(replicas[order], (find_sorted(unique, keys) << 32) + brokers)
        rows = np.full(len(place), -1, dtype=np.int64)
        rows[place >= 0] = order[place[place >= 0]]
        return rows


def _order(keys: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order by key and size; that of a table which has each key once, in order, is the one it has."""
    if np.all(keys[1:] > keys[:-1]):
        return np.arange(len(keys), dtype=np.int64)
    return np.lexsort((sizes, keys))


def _table_of(sizes: Mapping[TopicPartition, int]) -> pa.Table:
    try:
        columns = {
            "topic": pa.array([topic for topic, _ in sizes], pa.string()),
            "partition": pa.array([partition for _, partition in sizes], pa.int32()),
            "size_bytes": pa.array(sizes.values(), pa.int64()),
        }
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        message = f"sizes are not bytes by partition: {error}; give whole numbers of bytes"
        raise InvalidInputError(message) from error
    return pa.table(columns)


def _refuse_missing(partitions: pa.Table, place: NDArray[np.int64]) -> None:
    missing = np.flatnonzero(place < 0)
    if len(missing):
        message = f"{partition_at(partitions, missing[0])} moves data but has no size"
        others = f", nor have {len(missing) - 1} others" if len(missing) > 1 else ""
        raise InvalidInputError(f"{message}{others}; give its size, 0 if it is empty, or give no sizes at all")
