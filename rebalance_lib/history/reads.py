"""What consumers read of each partition, from the offsets that their groups commit: no agent on any broker or client.

A *listing* of a partition is a sample of it (see `loads`) in a snapshot that listed the consumer groups. A read
interval is the time between two listings of a partition that follow each other, with no truncation and no new topic in
between. In the interval that ends with a listing, a group reads

    records      what it has committed, less what it had committed when it was listed last
    bytes        records x bytes per record, as of this listing: size / (end offset - start offset)

and the partition's bytes are the sum over groups. A group that commits for the first time counts 0: what it read
before is not known. One that is missing in a listing, because its coordinator did not answer, say, is taken to stand
still, and what it read meanwhile counts when it is seen again. A group whose committed offset went backwards was
reset: it counts 0 in this interval, and is named, since nobody can tell how far it had come before. An interval in
which records were read whose size is not known is left out.

A partition that no group reads is read at 0 bytes per second if groups were listed; otherwise nothing is known.

What this cannot see: consumers that commit nothing, or keep their offsets elsewhere; groups that the user of the
snapshots may not describe; that a group was set forward, which looks as if it had read what it skipped; and that a
consumer with a rack may fetch from a follower: all counts as read from the leader.

Example, one partition with 100 bytes per record, and what two groups have committed:

    at     billing   audit       bytes read
    0      10        -
    100    30        5           2000: audit's first commit counts 0
    200    40        25          1000 + 2000
    300    20        35          1000: billing was reset

gives (2000 + 3000 + 1000)/300 = 20 bytes per second, 29 at the 95th percentile (of 10, 20, 30: 20 + 0.9 x 10), 10 in
the last interval; billing's own are (2000 + 1000 + 0)/300 = 10, audit's (2000 + 1000)/200 = 15, over its own intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rebalance_lib.history.intervals import Columns, FlagGrid, Flags, Floats, Intervals, Ints, last_row, padded

GROUP_BITS = 32  # of a pair's key: the partition's column is above them


class Committed(NamedTuple):
    """What groups had committed for the partitions of one moment: an entry for each group and partition.

    Args:
        listed: By partition, whether groups were listed.
        row: By entry, as the next two: which of the partitions.
        group: The group's number.
        offset: What it had committed.
    """

    listed: Flags
    row: Ints
    group: Ints
    offset: Ints


class Reads:
    """What groups read of many partitions; a *pair* is a partition and a group that commits for it.

    Args:
        by_group: Whether the rates of each pair are kept, too.
    """

    def __init__(self, *, by_group: bool = False) -> None:
        self.of_partitions = Intervals()
        self.of_pairs = Intervals() if by_group else None
        self.resets: Ints = np.empty(0, np.int64)  # by pair
        self._pairs = Columns()
        self._offset: Ints = np.empty(0, np.int64)  # by pair
        self._committed_at: Floats = np.empty(0)  # by pair: when the offset was seen
        self._listed_at: Floats = np.empty(0)  # by partition
        self._begun: Floats = np.empty(0)  # by partition: the first sample after the last truncation

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """By pair: the column of the partition, and the number of the group."""
        keys = self._pairs.keys
        return keys >> GROUP_BITS, keys & (2**GROUP_BITS - 1)

    def begin(self, at: Floats, columns: Ints, kept: FlagGrid) -> None:
        """Note since when the logs of partitions are what they are, before groups of the last of some moments come.

        Args:
            at: The moments, in seconds.
            columns: The columns of the partitions that have samples at these moments.
            kept: By moment and partition, whether the log is that of the sample before, and was not truncated since.
        """
        count = max(len(self._begun), int(columns.max(initial=-1)) + 1)
        self._listed_at, self._begun = padded(self._listed_at, count, np.nan), padded(self._begun, count, np.nan)
        if len(at):
            row = last_row(~kept)
            self._begun[columns] = np.where(row >= 0, at[row], self._begun[columns])

    def add(self, at: float, columns: Ints, per_record: Floats, committed: Committed) -> None:
        """Take in the groups of one moment, of which `begin` has told.

        Args:
            at: The moment, in seconds.
            columns: The columns of the partitions that have a sample now.
            per_record: Bytes per record of each; NaN for unknown.
            committed: What groups had committed.
        """
        read = self._read(at, columns[committed.row], per_record[committed.row], committed)
        listed_at = self._listed_at[columns]
        known = committed.listed & (listed_at >= self._begun[columns])
        summed = np.bincount(committed.row, read, minlength=len(columns))
        amount, seconds = np.where(known, summed, np.nan), at - listed_at
        self.of_partitions.add(columns, len(self._begun), amount[None], seconds[None])
        self._listed_at[columns] = np.where(committed.listed, at, listed_at)

    def _read(self, at: float, columns: Ints, per_record: Floats, committed: Committed) -> Floats:
        """The bytes of each entry; NaN where the size of a record is not known."""
        pairs = self._pairs.of((columns << GROUP_BITS) | committed.group)
        count = len(self._pairs.keys)
        if new := count - len(self._offset):
            self._offset = np.concatenate([self._offset, np.zeros(new, np.int64)])
            self.resets = np.concatenate([self.resets, np.zeros(new, np.int64)])
            self._committed_at = np.concatenate([self._committed_at, np.full(new, np.nan)])
        before = self._committed_at[pairs]
        known = before >= self._begun[columns]
        records = np.where(known, committed.offset - self._offset[pairs], 0)
        self.resets[pairs] += records < 0
        read: Floats = np.where(records > 0, records * per_record, 0.0)
        if self.of_pairs is not None:
            self.of_pairs.add(pairs, count, np.where(known, read, np.nan)[None], (at - before)[None])
        self._offset[pairs], self._committed_at[pairs] = committed.offset, at
        return read
