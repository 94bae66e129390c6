"""The history: every snapshot's replicas, appended to a Parquet data set partitioned by cluster and day.

    history/cluster=PwnVvJcCTeWGnoYIFvmhSQ/day=2026-11-16/2026-11-16T095807Z.parquet

A snapshot is appended as a file of its own, whose name is the moment, in UTC: a window is a listing of a few
directories, and no file outside it is opened. Directories are named as Hive and Spark name them, so that any tool that
reads Parquet sees the columns ``cluster`` and ``day`` too; what is no good in a path is percent-encoded, as Spark does.

Of a day that is over, `compaction` makes one file, ``day-0001-1a2b3c4d.parquet``, which says in its metadata which
moments it has. While it does, a moment may be in several files. `files_of_day` gives each once, from the day file that
is last by its name, and from its own file if it is in none.

Rows are sorted by topic, partition, moment and position, and a row group holds whole topics, or part of a single one,
so that a reader of some partitions skips the other groups by the statistics in the file. A file appears whole or not at
all, and a snapshot that is appended again changes nothing.

What consumer groups had committed stands in the leader's row of each partition, so that who reads a partition reads its
groups with it, and nothing is joined: an empty list where no group had committed anything, null where the groups were
not listed, in the rows of followers, and in files of older versions, which lack the column.

Example: the snapshot of 09:58:07 with partition 0 of ``orders`` on brokers 2 (leader) and 1, of which ``billing`` has
read one record, is the one file above, with the two rows ``orders 0 0 2 leader 10 bytes 0..2 [(billing, 1)]`` and
``orders 0 1 1 - 10 bytes 0..2 null``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import FileMissingError, InvalidInputError
from rebalance_lib.topology import REPLICAS, Groups, Snapshot

COMMITTED = pa.struct([pa.field("group", pa.string(), nullable=False), pa.field("offset", pa.int64(), nullable=False)])
HISTORY = pa.schema(
    [
        pa.field("taken_at", pa.timestamp("us", "UTC"), nullable=False),
        REPLICAS.field("topic"),
        REPLICAS.field("partition"),
        REPLICAS.field("position").with_nullable(True),  # null where the source does not know the replicas' order
        REPLICAS.field("broker"),
        REPLICAS.field("leader"),
        REPLICAS.field("size_bytes"),
        REPLICAS.field("start_offset"),
        REPLICAS.field("end_offset"),
        REPLICAS.field("log_dir"),
        pa.field("committed", pa.list_(pa.field("element", COMMITTED))),
    ]
)
ROW_GROUPS = 16  # of a file: a window is read in that many parts at most, unless the cluster is large
SMALLEST_GROUP, LARGEST_GROUP = 4_096, 16_384  # rows
REPEATED = [
    "taken_at",
    "topic",
    "log_dir",
    "committed.list.element.group",
]  # worth a dictionary; the other columns are nearly all different
PARQUET: dict[str, Any] = {"compression": "zstd", "use_dictionary": REPEATED}
MOMENT = "%Y-%m-%dT%H%M%SZ"
FILE = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z\.parquet")
DAY_FILE = re.compile(r"day-(\d{4,9})-[0-9a-f]{8}\.parquet")
MOMENTS = b"kafka_rebalance.moments"  # in a day file's metadata: its moments as JSON, named as files are
LISTINGS = 5  # of a directory in which files come and go
CLUSTER = "cluster="
DAY = re.compile(r"day=\d{4}-\d\d-\d\d")
LONGEST_NAME = 240  # bytes of a directory's name that every file system takes


class HistoryFile(NamedTuple):
    """One cluster at one moment: the name in the history of the file that has it, and the moment."""

    name: str
    taken_at: datetime


def append_snapshot(history: Artifacts, snapshot: Snapshot, groups: Groups | None = None) -> HistoryFile:
    """Append a snapshot, and its consumer groups where they were listed; appending it again changes nothing."""
    return append_sample(history, snapshot.cluster_id, sample_of(snapshot, groups), _moment(snapshot))


def append_sample(history: Artifacts, cluster_id: str, rows: pa.Table, taken_at: datetime) -> HistoryFile:
    """Append the rows of one cluster at one moment, from whichever source; the first of a second stays.

    Args:
        history: The directory of the history.
        cluster_id: Kafka's id of the cluster.
        rows: Its replicas, in the columns of `HISTORY`; ``committed`` may be left out.
        taken_at: The moment; the history counts in whole seconds.
    """
    file = _file(cluster_id, taken_at)
    if (there := located(history, file)) is not None:
        return there
    order = [(name, "ascending") for name in ("topic", "partition", "position", "broker")]
    rows = with_committed(rows).cast(HISTORY).sort_by(order).combine_chunks()
    size = min(max(-(-rows.num_rows // ROW_GROUPS), SMALLEST_GROUP), LARGEST_GROUP)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, HISTORY, **PARQUET) as writer:
        for begin, end in pairwise(row_groups(rows, size)):
            writer.write_table(rows.slice(begin, end - begin), row_group_size=end - begin)
    history.write_bytes(file.name, sink.getvalue().to_pybytes())
    return file


def with_committed(rows: pa.Table) -> pa.Table:
    """The rows in the order of `HISTORY`, with nulls for a column ``committed`` that they lack."""
    if "committed" not in rows.column_names:
        rows = rows.append_column("committed", pa.nulls(rows.num_rows, HISTORY.field("committed").type))
    return rows.select(HISTORY.names)


def sample_of(snapshot: Snapshot, groups: Groups | None = None) -> pa.Table:
    """The replicas of a snapshot, and what groups had committed for them, in the columns of `HISTORY`."""
    replicas = snapshot.replicas
    taken_at = pa.repeat(pa.scalar(_moment(snapshot), HISTORY.field("taken_at").type), replicas.num_rows)
    committed = _committed(replicas, groups)
    columns = [taken_at, *(replicas[name] for name in HISTORY.names[1:-1]), committed]
    return pa.Table.from_arrays(columns, schema=HISTORY)


def _committed(replicas: pa.Table, groups: Groups | None) -> pa.Array:
    """By replica: what groups had committed, if it leads; offsets of partitions without a leader are left out."""
    kind = HISTORY.field("committed").type
    leaders = replicas["leader"].to_numpy()
    if groups is None or not leaders.any():
        return pa.nulls(replicas.num_rows, kind)
    offsets = groups.offsets
    topics = pc.unique(replicas["topic"])
    places = np.flatnonzero(leaders)
    wanted, known = (_keys(table, topics) for table in (replicas.take(places), offsets))
    order = np.argsort(wanted)
    found = np.minimum(np.searchsorted(wanted, known, sorter=order), len(wanted) - 1)
    led = np.flatnonzero(wanted[order][found] == known)
    row = places[order[found[led]]]
    entries = offsets.take(led[np.argsort(row, kind="stable")])
    ends = np.r_[0, np.cumsum(np.bincount(row, minlength=replicas.num_rows))].astype(np.int32)
    values = pa.StructArray.from_arrays(
        [entries[name].combine_chunks() for name in ("group", "committed")], fields=list(COMMITTED)
    )
    return pa.ListArray.from_arrays(pa.array(ends), values, type=kind, mask=pa.array(~leaders))


def _keys(table: pa.Table, topics: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The partition of each row as one integer; one of a topic that is not among these is below zero."""
    topic = pc.fill_null(pc.index_in(table["topic"], value_set=topics), -1).to_numpy().astype(np.int64)
    keys: np.ndarray[tuple[int], np.dtype[np.int64]] = (topic << 32) + table["partition"].to_numpy()
    return keys


def clusters(history: Artifacts, chosen: Sequence[str] | None = None) -> list[str]:
    """The ids of the clusters in the history, in order.

    Args:
        history: The history.
        chosen: Only these; None for all.

    Raises:
        InvalidInputError: A chosen one is not in the history.
    """
    names = [name.removeprefix(CLUSTER) for name in history.directories() if name.startswith(CLUSTER)]
    known = sorted(unquote(name) for name in names)
    if chosen is None:
        return known
    if unknown := sorted(set(chosen) - set(known)):
        raise InvalidInputError(f"clusters {unknown} are not in the history at {history.uri}; it has {known}")
    return sorted(set(chosen))


def files_between(history: Artifacts, cluster_id: str, start: datetime, end: datetime) -> list[HistoryFile]:
    """The moments of a cluster in the window, its start included and its end not, by time, each with its file."""
    start, end = utc(start, "the window's start"), utc(end, "the window's end")
    if start >= end:
        raise InvalidInputError(f"the window from {start.isoformat()} to {end.isoformat()} is empty: swap its ends?")
    cluster = cluster_directory(cluster_id)
    first_day, last_day = (f"day={moment.date().isoformat()}" for moment in (start, end))
    found = [
        file
        for day in (history / cluster).directories()
        if first_day <= day <= last_day
        for file in files_of_day(history, f"{cluster}/{day}")
    ]
    return sorted((file for file in found if start <= file.taken_at < end), key=lambda file: file.taken_at)


def files_of_day(history: Artifacts, directory: str) -> list[HistoryFile]:
    """The moments in a directory of the history, each once, by time; what else is there is none of them."""
    for _ in range(LISTINGS - 1):
        try:
            return _files_of_day(history, directory)
        except FileMissingError:
            continue  # it was listed, and a newer one is in its place by now
    return _files_of_day(history, directory)


def _files_of_day(history: Artifacts, directory: str) -> list[HistoryFile]:
    names = (history / directory).files()
    found = {moment_named(name): name for name in names if FILE.fullmatch(name)}
    for name in sorted(filter(DAY_FILE.fullmatch, names), key=day_file_order):
        with history.open_parquet(f"{directory}/{name}") as parquet:
            found |= dict.fromkeys(moments_in(parquet, f"{history.uri}/{directory}/{name}"), name)
    return [HistoryFile(f"{directory}/{name}", moment) for moment, name in sorted(found.items())]


def located(history: Artifacts, file: HistoryFile) -> HistoryFile | None:
    """The same moment in the file that it is in by now; None where it is gone."""
    directory = file.name.rpartition("/")[0]
    return next((one for one in files_of_day(history, directory) if one.taken_at == file.taken_at), None)


def is_day_file(name: str) -> bool:
    """Whether a file of the history has more than one moment, by its name."""
    return DAY_FILE.fullmatch(name.rpartition("/")[2]) is not None


def day_file_order(name: str) -> tuple[int, str]:
    """By what files of a day are in order: files of one moment, then day files by their numbers."""
    found = DAY_FILE.fullmatch(name.rpartition("/")[2])
    return (int(found[1]) if found else 0, name)


def moment_named(name: str) -> datetime:
    """The moment of a file that has one."""
    return datetime.strptime(name, f"{MOMENT}.parquet").replace(tzinfo=UTC)


def moments_in(day_file: pq.ParquetFile, name: str) -> list[datetime]:
    """The moments that an open day file has, by time; ``name`` it for whoever reads that it has none."""
    try:
        found = json.loads((day_file.metadata.metadata or {})[MOMENTS])
        return [datetime.fromisoformat(one) for one in found]  # some ten times as fast as by a format
    except (KeyError, ValueError) as error:
        raise InvalidInputError(f"{name} does not say which moments it has: it is no file of a history") from error


def row_groups(rows: pa.Table, size: int) -> list[int]:
    """Where row groups of about this size begin, and the end: at topics, and within larger ones at partitions."""
    topics = rows["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
    partitions = rows["partition"].to_numpy()
    new_topic = topics[1:] != topics[:-1]
    new_partition = new_topic | (partitions[1:] != partitions[:-1])
    starts = [0]
    for begin, end in pairwise([0, *(np.flatnonzero(new_topic) + 1).tolist(), rows.num_rows]):
        if end - starts[-1] > size:
            starts.append(begin)
        if end - begin > size:
            inside = np.flatnonzero(new_partition[begin : end - 1]) + begin + 1
            cuts = np.searchsorted(inside, np.arange(begin + size, end, size))
            starts += [*inside[cuts[cuts < len(inside)]].tolist(), end]
    return sorted({*starts, rows.num_rows})


def _file(cluster_id: str, taken_at: datetime) -> HistoryFile:
    moment = utc(taken_at, "the time of a snapshot").replace(microsecond=0)
    return HistoryFile(
        f"{cluster_directory(cluster_id)}/day={moment:%Y-%m-%d}/{moment.strftime(MOMENT)}.parquet", moment
    )


def cluster_directory(cluster_id: str) -> str:
    """The name of a cluster's directory."""
    name = f"{CLUSTER}{quote(cluster_id, safe='')}"
    if not cluster_id or len(name) > LONGEST_NAME:
        raise InvalidInputError(f"{cluster_id[:60]!r} cannot be the id of a cluster: give 1 to some 200 characters")
    return name


def _moment(snapshot: Snapshot) -> datetime:
    try:
        return datetime.fromisoformat(snapshot.taken_at)
    except ValueError as error:
        raise InvalidInputError(f"the snapshot says it was taken at {snapshot.taken_at!r}, which is no time") from error


def utc(moment: datetime, what: str) -> datetime:
    """A moment in UTC; ``what`` it is, for whoever gave one without a time zone."""
    if moment.tzinfo is None:
        raise InvalidInputError(f"{what} is {moment.isoformat()}, without a time zone: add one, such as +00:00")
    return moment.astimezone(UTC)
