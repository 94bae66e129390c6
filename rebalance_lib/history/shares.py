"""What one task reads of the history: some partitions of a cluster through all files of the window.

Row groups of a file are in the order of partitions, and statistics say between which partitions each is. So shares are
cut between the row groups of the newest file, and a share reads no row group that cannot have partitions of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import FileMissingError, InvalidInputError
from rebalance_lib.history.dataset import HISTORY, HistoryFile, is_day_file, located, moments_in
from rebalance_lib.topology import TopicPartition

COLUMNS = ["topic", "partition", "leader", "size_bytes", "start_offset", "end_offset"]
TAKEN_AT = "taken_at"  # read of files with several moments alone
COMMITTED = "committed"  # a column that files of older versions lack
SAMPLES_OF_A_SHARE = 6_000_000  # some 150 MB in a task
SAMPLES_OF_A_FILE = 1_500_000  # of a share, some 100 MB more: a day file's are held until their moments are due
SAMPLES_WORTH_A_TASK = 200_000
AFTER_ALL = 2**31  # above every partition number


class Share(NamedTuple):
    """What one task aggregates: these moments of a cluster, and of them the partitions from ``low`` to before ``high``.

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
        files: Its moments in the window, by time.
        tasks: How many tasks run at once: if there is enough to do, there are as many shares, or a multiple.
    """
    if not files:
        return []
    try:
        newest = _newest(history, files[-1])
    except FileMissingError:  # since it was listed, it was compacted
        newest = _newest(history, located(history, files[-1]) or files[-1])
    samples = newest.leaders * len(files) // newest.moments
    at_once = min(newest.leaders, samples)
    rounds = max(-(-samples // (SAMPLES_OF_A_SHARE * tasks)), -(-at_once // (SAMPLES_OF_A_FILE * tasks)))
    count = rounds * tasks if samples > SAMPLES_WORTH_A_TASK else 1
    cuts: set[TopicPartition] = set()
    rows, all_rows = 0, sum(group.rows for group in newest.groups)
    for group in newest.groups:
        if rows * count // all_rows > len(cuts) and group.first:
            cuts.add(group.first)
        rows += group.rows
    whole = Share(cluster_id, tuple(files))
    return [whole._replace(low=low, high=high) for low, high in pairwise([None, *sorted(cuts), None])]


class _RowGroup(NamedTuple):
    """How many rows it has, and a partition that none of them is below; None where nothing tells."""

    rows: int
    first: TopicPartition | None


class _Newest(NamedTuple):
    """What the newest file says about all: rows of leaders, about, its moments and its row groups."""

    leaders: int
    moments: int
    groups: list[_RowGroup]


def _newest(history: Artifacts, file: HistoryFile) -> _Newest:
    name = f"{history.uri}/{file.name}"
    with history.open_parquet(file.name) as parquet:
        where, metadata = check_columns(parquet.schema_arrow, name), parquet.metadata
        moments = len(moments_in(parquet, name)) if is_day_file(file.name) else 1
        groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
        found = [_RowGroup(group.num_rows, (_range_of(group, where) or (None,))[0]) for group in groups]
        return _Newest(_leaders(parquet), moments, found)


def _leaders(parquet: pq.ParquetFile) -> int:
    """About how many rows are of leaders: as large a part of all as of the first row group."""
    if not parquet.num_row_groups:
        return 0
    first = parquet.read_row_group(0, columns=["leader"], use_threads=False)
    leaders = int(pc.sum(first["leader"]).as_py() or 0)
    return leaders * int(parquet.metadata.num_rows) // max(1, int(first.num_rows))


def row_groups_of(parquet: pq.ParquetFile, share: Share, name: str) -> list[int]:
    """The row groups of an open file that can have partitions of the share."""
    where, metadata = check_columns(parquet.schema_arrow, name), parquet.metadata
    return [n for n in range(metadata.num_row_groups) if _overlaps(metadata.row_group(n), where, share)]


def columns_of(parquet: pq.ParquetFile) -> list[str]:
    """The columns of an open file that loads come from: no others are read."""
    known = parquet.schema_arrow.names
    return [*COLUMNS, *([COMMITTED] if COMMITTED in known else [])]


def check_columns(schema: pa.Schema, name: str, columns: Sequence[str] = (*COLUMNS, COMMITTED)) -> tuple[int, int]:
    """Where the topic and the partition stand, in a file that has these columns; it may lack ``committed``."""
    if missing := [column for column in columns if column not in (*schema.names, COMMITTED)]:
        raise InvalidInputError(f"{name} has no column {missing[0]}: it is no file of a history; remove it")
    for column in (column for column in columns if column in schema.names):
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
