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

Method. A task has a *share*: a cluster's files in the window, and the partitions from one to another. It reads the
row groups of each file that can hold them, in the order of time, keeps the last sample of each partition in arrays,
and notes one array of rates per file. Files of a cluster mostly have the same partitions in the same order, which one
comparison of arrays tells; only where it fails are partitions looked up. Nothing is shuffled or sorted but the rates
of a single partition, for their percentile.

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

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history.dataset import HISTORY, HistoryFile
from rebalance_lib.history.intervals import Floats, Ints
from rebalance_lib.history.reads import Committed
from rebalance_lib.history.series import Samples, Series, statistics
from rebalance_lib.topology import TopicPartition

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
COLUMNS = ["topic", "partition", "leader", "size_bytes", "start_offset", "end_offset"]
COMMITTED = "committed"  # a column that files of older versions lack
SAMPLES_OF_A_SHARE = 6_000_000  # some 150 MB in a task
SAMPLES_WORTH_A_TASK = 200_000
AFTER_ALL = 2**31  # above every partition number
UNKNOWN = -1


class Share(NamedTuple):
    """What one task aggregates: these files of a cluster, and of them the partitions from ``low`` to before ``high``.

    None for either end is no limit.
    """

    cluster_id: str
    files: tuple[HistoryFile, ...]
    low: TopicPartition | None = None
    high: TopicPartition | None = None


def shares_of(history: Artifacts, cluster_id: str, files: Sequence[HistoryFile], tasks: int) -> list[Share]:
    """Cut the partitions of a cluster into shares of about the same number of rows, between its row groups.

    The newest file stands for all: where it does not, shares are uneven, and right all the same.

    Args:
        history: The directory of the history.
        cluster_id: Kafka's id of the cluster.
        files: Its files in the window, by time.
        tasks: How many tasks run at once: if there is enough to do, there are as many shares, or a multiple.
    """
    if not files:
        return []
    whole = Share(cluster_id, tuple(files))
    with history.open_parquet(files[-1].name) as newest:
        where = _check_columns(newest.schema_arrow, f"{history.uri}/{files[-1].name}")
        groups = [newest.metadata.row_group(n) for n in range(newest.num_row_groups)]
        leaders = pc.sum(newest.read(columns=["leader"], use_threads=False)["leader"]).as_py() or 0
    samples = leaders * len(files)
    rounds = -(-samples // (SAMPLES_OF_A_SHARE * tasks))
    count = rounds * tasks if samples > SAMPLES_WORTH_A_TASK else 1
    cuts: set[TopicPartition] = set()
    rows, all_rows = 0, sum(group.num_rows for group in groups)
    for group in groups:
        if rows * count // all_rows > len(cuts) and (found := _range_of(group, where)):
            cuts.add(found[0])
        rows += group.num_rows
    return [whole._replace(low=low, high=high) for low, high in pairwise([None, *sorted(cuts), None])]


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
    topics: _Topics
    groups: _Names
    series: Series


def _read(history: Artifacts, share: Share, series: Series) -> _Found:
    """Take a share's files into a series, in the order of time."""
    topics, groups = _Topics(), _Names()
    for file in share.files:
        with history.open_parquet(file.name, read_dictionary=["topic"]) as parquet:
            schema, metadata = parquet.schema_arrow, parquet.metadata
            where = _check_columns(schema, f"{history.uri}/{file.name}")
            numbers = [n for n in range(metadata.num_row_groups) if _overlaps(metadata.row_group(n), where, share)]
            if not numbers:
                continue
            columns = [*COLUMNS, COMMITTED] if COMMITTED in schema.names else COLUMNS
            table = parquet.read_row_groups(numbers, columns=columns, use_threads=False)
        keys, size = topics.keys(table), _ints(table["size_bytes"])
        leaders = np.flatnonzero(table["leader"].to_numpy() & (size >= 0))
        rows = leaders[topics.within(keys[leaders], share)]
        start, end = (_ints(table[name])[rows] for name in ("start_offset", "end_offset"))
        samples = Samples(keys[rows], size[rows], start, end, _committed(table, rows, groups))
        series.add(file.taken_at.timestamp(), samples)
    return _Found(share.cluster_id, topics, groups, series)


def _committed(table: pa.Table, rows: Ints, groups: _Names) -> Committed | None:
    """What groups had committed for these rows; None where no groups were listed."""
    if COMMITTED not in table.column_names or table[COMMITTED].null_count == table.num_rows:
        return None
    column = table[COMMITTED].combine_chunks().take(pa.array(rows))
    entries = pc.list_flatten(column)
    names = entries.field("group").dictionary_encode()
    return Committed(
        listed=pc.is_valid(column).to_numpy(zero_copy_only=False),
        row=pc.list_parent_indices(column).to_numpy().astype(np.int64),
        group=groups.numbers(names.dictionary.to_pylist())[names.indices.to_numpy()],
        offset=entries.field("offset").to_numpy(),
    )


class _Names:
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


class _Topics(_Names):
    """Topics as numbers, so that a partition is one 64-bit integer: the topic's number, then the partition's."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[pa.Array, Ints] | None = None

    def keys(self, table: pa.Table) -> Ints:
        """The partition of each row."""
        column = table["topic"].unify_dictionaries().combine_chunks()
        topics = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        if self._last is None or not self._last[0].equals(topics.dictionary):
            self._last = (topics.dictionary, self.numbers(topics.dictionary.to_pylist()))
        numbers = self._last[1][topics.indices.to_numpy()]
        keys: Ints = (numbers << 32) | table["partition"].to_numpy()
        return keys

    def within(self, keys: Ints, share: Share) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of these rows belong to the share."""
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
            "group": pc.take(pa.array(found.groups.names, pa.string()), pa.array(groups)),
            **_nullable(rates),
            "resets": reads.resets,
        }
    )
    order = [(name, "ascending") for name in ("topic", "partition", "group")]
    return table.select(GROUP_READS.names).cast(GROUP_READS).sort_by(order)


def _partition_columns(found: _Found, keys: Ints) -> dict[str, pa.Array]:
    return {
        "cluster": pa.repeat(pa.scalar(found.cluster_id), len(keys)),
        "topic": pc.take(pa.array(found.topics.names, pa.string()), pa.array(keys >> 32)),
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
        names[columns[pair]] = sorted([*(names[columns[pair]] or ()), found.groups.names[groups[pair]]])
    return pa.array(names, LOADS.field("groups_reset").type)


def _ints(column: pa.ChunkedArray) -> Ints:
    values: Ints = pc.fill_null(column, UNKNOWN).to_numpy()
    return values


def _check_columns(schema: pa.Schema, name: str) -> tuple[int, int]:
    """Where the topic and the partition stand, in a file that has all columns."""
    if missing := [column for column in COLUMNS if column not in schema.names]:
        raise InvalidInputError(f"{name} has no column {missing[0]}: it is no file of a history; remove it")
    for column in [*COLUMNS, *({COMMITTED} & set(schema.names))]:
        found, wanted = schema.field(column).type, HISTORY.field(column).type
        if (found.value_type if pa.types.is_dictionary(found) else found) != wanted:
            raise InvalidInputError(f"{name}: {column} is {found}, not {wanted}: it is no file of a history; remove it")
    return schema.names.index("topic"), schema.names.index("partition")


def _overlaps(group: pq.RowGroupMetaData, where: tuple[int, int], share: Share) -> bool:
    """Whether a row group can hold partitions of the share, as far as its statistics tell."""
    if (share.low is None and share.high is None) or (found := _range_of(group, where)) is None:
        return True
    lowest, highest = found
    return (share.high is None or lowest < share.high) and (share.low is None or highest >= share.low)


def _range_of(group: pq.RowGroupMetaData, where: tuple[int, int]) -> tuple[TopicPartition, TopicPartition] | None:
    """Partitions between which all of a row group's are, both ends included; None where nothing tells."""
    topics, partitions = (group.column(n).statistics for n in where)
    if not (topics and topics.has_min_max and partitions and partitions.has_min_max):
        return None
    if topics.min == topics.max:
        return TopicPartition(topics.min, partitions.min), TopicPartition(topics.max, partitions.max)
    return TopicPartition(topics.min, 0), TopicPartition(topics.max, AFTER_ALL)
