"""What the history says about each partition: its size, how fast it grows, how fast it is written and read.

Terms. A *sample* of a partition is its leader's replica in one snapshot, where its size is known. An *interval* is
the time between two samples of a partition that follow each other. A snapshot in which it had no leader, or whose
leader did not answer, is no sample of it: the interval then is longer.

Of an interval, from sample 1 to sample 2:

    growth       (size 2 - size 1) / seconds                      below zero where retention deleted more than came
    write rate   (end offset 2 - end offset 1) / seconds x bytes per record
                 bytes per record = size 2 / (end offset 2 - start offset 2)

An interval over which the end or the start offset went backwards is left out of both: the log was truncated, or the
topic deleted and created again. The write rate also leaves out intervals with an unknown offset at either end, and
those over which records came but sample 2 has none left, so that a record's size is unknown. No record in an
interval is a rate of zero, whatever the size of a record.

Of the window:

    size_bytes   of the last sample
    growth       bytes grown in all kept intervals, over their seconds; write_rate likewise
    size_p95     the 95th percentile over the samples; growth_p95 and write_rate_p95 over the kept intervals, each
                 counting once, however long; between two ranks it is interpolated linearly, as numpy does
    write_rate_last    of the last kept interval

What consumers read, `read_rate` with its percentile and its last interval, and the groups that were reset, are computed
from committed offsets: `reads` says how, with an example of its own.

All of it is exact for these definitions, up to the rounding of 64-bit floats. What the definitions cannot see: a
write rate counts bytes as they are stored, after compression; in a compacted topic, offsets of removed records make a
record look smaller, so that the write rate is a lower bound; a topic created again that has outgrown the old one
between two snapshots looks like the old one. With one sample there is no interval, and rates are null.

Method. A task has a *share*: a cluster's moments in the window, and the partitions from one to another. It reads the
row groups of each file that can hold them (`reading`), takes the samples in the order of time, keeps the last one of
each partition in arrays, and notes the rates of each moment. Moments of a cluster mostly have the same partitions in
the same order, which one comparison of arrays tells: those of a day file are then taken in together, and only where it
fails are partitions looked up. Nothing is shuffled, and nothing is sorted but the samples of a day file by their
moments, and the rates of a single partition, for their percentile.

Example, one partition, seconds and bytes:

    at     size   offsets    growth           write rate
    0      1000   0..10
    100    2000   0..20      1000/100 = 10    10/100 x 2000/20 = 10
    200    1500   10..25     -500/100 = -5     5/100 x 1500/15 = 5
    300    100    0..1       created again: left out
    400    300    0..3        200/100 = 2      2/100 x 300/3 = 2

gives size_bytes 300, growth (1000 - 500 + 200)/300 = 2.333, growth_p95 9.2 (of -5, 2, 10: 2 + 0.9 x 8), write_rate
(1000 + 500 + 200)/300 = 5.667, write_rate_p95 9.5 (of 2, 5, 10: 5 + 0.9 x 5), write_rate_last 2, size_p95 1900,
samples 5. No groups were listed: the read rates are null.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history.intervals import Floats, Ints
from rebalance_lib.history.reading import ShareReader
from rebalance_lib.history.series import Series, statistics
from rebalance_lib.history.shares import Share

LOADS = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("size_p95", pa.float64(), nullable=False),
        pa.field("growth", pa.float64()),  # bytes per second, as all rates; null: unknown
        pa.field("growth_p95", pa.float64()),
        pa.field("write_rate", pa.float64()),
        pa.field("write_rate_p95", pa.float64()),
        pa.field("write_rate_last", pa.float64()),
        pa.field("read_rate", pa.float64()),
        pa.field("read_rate_p95", pa.float64()),
        pa.field("read_rate_last", pa.float64()),
        pa.field("groups_reset", pa.list_(pa.field("element", pa.string()))),  # null where none was
        pa.field("samples", pa.int32(), nullable=False),
    ]
)
GROUP_READS = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("read_rate", pa.float64()),  # null: the group was seen once
        pa.field("read_rate_p95", pa.float64()),
        pa.field("read_rate_last", pa.float64()),
        pa.field("resets", pa.int32(), nullable=False),
    ]
)


def read_loads(history: Artifacts, share: Share) -> pa.Table:
    """The loads of a share's partitions, in the columns of `LOADS`, sorted by topic and partition."""
    return _loads_table(_read(history, share, Series()))


def read_group_reads(history: Artifacts, share: Share) -> pa.Table:
    """What each group reads of each of a share's partitions, in the columns of `GROUP_READS`.

    Rows are sorted by topic, partition and group.
    """
    return _groups_table(_read(history, share, Series(by_group=True)))


class _Found(NamedTuple):
    """What a share's files said."""

    cluster_id: str
    reader: ShareReader
    series: Series


def _read(history: Artifacts, share: Share, series: Series) -> _Found:
    """Take a share's samples into a series, in the order of time."""
    reader = ShareReader(history, share)
    for samples in reader.samples():
        series.add(samples)
    return _Found(share.cluster_id, reader, series)


def _loads_table(found: _Found) -> pa.Table:
    series = found.series
    table = pa.table(
        {
            **_partition_columns(found, series.keys),
            "size_bytes": series.size,
            **_nullable(series.rates()),
            "groups_reset": _groups_reset(found),
            "samples": series.samples,
        }
    )
    return table.select(LOADS.names).cast(LOADS).sort_by([("topic", "ascending"), ("partition", "ascending")])


def _groups_table(found: _Found) -> pa.Table:
    reads = found.series.reads
    columns, groups = reads.pairs
    rates = {} if reads.of_pairs is None else statistics("read_rate", reads.of_pairs, len(columns))
    table = pa.table(
        {
            **_partition_columns(found, found.series.keys[columns]),
            "group": pc.take(pa.array(found.reader.groups.names, pa.string()), pa.array(groups)),
            **_nullable(rates),
            "resets": reads.resets,
        }
    )
    order = [(name, "ascending") for name in ("topic", "partition", "group")]
    return table.select(GROUP_READS.names).cast(GROUP_READS).sort_by(order)


def _partition_columns(found: _Found, keys: Ints) -> dict[str, pa.Array]:
    return {
        "cluster": pa.repeat(pa.scalar(found.cluster_id), len(keys)),
        "topic": pc.take(pa.array(found.reader.topics.names, pa.string()), pa.array(keys >> 32)),
        "partition": pa.array((keys & (2**32 - 1)).astype(np.int32)),
    }


def _nullable(rates: dict[str, Floats]) -> dict[str, pa.Array]:
    return {name: pa.array(values, from_pandas=True) for name, values in rates.items()}


def _groups_reset(found: _Found) -> pa.Array:
    """By partition: the groups that were set back, by name; few ever are."""
    reads = found.series.reads
    columns, groups = reads.pairs
    names: list[list[str] | None] = [None] * len(found.series.keys)
    for pair in np.flatnonzero(reads.resets).tolist():
        names[columns[pair]] = sorted([*(names[columns[pair]] or ()), found.reader.groups.names[groups[pair]]])
    return pa.array(names, LOADS.field("groups_reset").type)
