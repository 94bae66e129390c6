"""One file of a cluster's whole day: how it is written out of others, and what is checked before those are removed.

Rows are sorted by topic, partition, moment and position, so that all of a partition is in one row group: loads read
some partitions through all moments. It also makes the file small, since neighbours are alike. Memory is bounded: files
are merged a range of partitions at a time, so that some `ROWS_AT_A_TIME` rows are held, whatever the number of files.

Of 288 snapshots of 9,000 replicas (2.6 million rows), bytes of a row and million rows that loads read a second:

    one file, by partition, moment, replica         2.33     25.7
    one file, by partition, replica, moment         2.60     26.1
    one file, by 150 partitions, moment, replica    3.47     23.3

Delta encodings of sizes and offsets made each 6 to 12 % faster to read, and 22 to 80 % larger.

Example: of two files, ``10:00  orders 0, orders 1`` and ``10:05  orders 0, orders 1``, the day file has the rows
``orders 0 10:00, orders 0 10:05, orders 1 10:00, orders 1 10:05``, and says in its metadata that it has both moments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history.dataset import (
    HISTORY,
    MOMENT,
    MOMENTS,
    PARQUET,
    HistoryFile,
    is_day_file,
    moment_named,
    moments_in,
    row_groups,
    with_committed,
)
from rebalance_lib.history.intervals import Ints
from rebalance_lib.history.reading import Topics, places_of, second_of_day
from rebalance_lib.history.shares import Share, check_columns, row_groups_of
from rebalance_lib.topology import TopicPartition

ROWS_AT_A_TIME = 1_000_000
ROWS_OF_A_GROUP = 131_072
TEXTS = ["topic", "log_dir"]  # held as dictionaries: names are not copied for each row
NUMBERS = ["partition", "position", "broker", "leader", "size_bytes", "start_offset", "end_offset"]
HELD = pa.schema(
    [field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in TEXTS else field for field in HISTORY]
)
PARTITION_BITS = 32
Totals = dict[datetime, tuple[int | None, ...]]


def write_day(history: Artifacts, name: str, files: Sequence[HistoryFile], rows: Mapping[str, int]) -> None:
    """Merge moments into one new file, which appears whole or not at all.

    Args:
        history: The directory of the history.
        name: The new file.
        files: The moments, by time, each with the file to take it from.
        rows: How many rows each of these files has.
    """
    moments = json.dumps([file.taken_at.strftime(MOMENT) for file in files])
    with (
        history.open_writer(name) as sink,
        # The schema that Arrow would store says dictionaries, which is how rows are held here alone.
        pq.ParquetWriter(sink, HELD, store_schema=False, **PARQUET) as writer,
    ):
        writer.add_key_value_metadata({MOMENTS: moments.encode()})
        for share in _ranges(history, tuple(files), rows):
            merged = _merged(history, share)
            for begin, end in pairwise(row_groups(merged, ROWS_OF_A_GROUP)):
                writer.write_table(merged.slice(begin, end - begin), row_group_size=end - begin)


def totals_of(history: Artifacts, name: str) -> Totals:
    """Of each moment in a file: its number of rows, and of each column the number of values and their sum.

    Of texts, it is the sum of their lengths. A moment without rows has no totals.

    Raises:
        InvalidInputError: It is no file of a history, or it has rows of a moment that it should not have.
    """
    where = f"{history.uri}/{name}"
    with history.open_parquet(name, read_dictionary=TEXTS) as parquet:
        moments = moments_in(parquet, where) if is_day_file(name) else [moment_named(name.rpartition("/")[2])]
        check_columns(parquet.schema_arrow, where, HISTORY.names)
        parts = [
            _totals(_held(parquet.read_row_group(n, use_threads=False)))
            for n in range(parquet.num_row_groups)
            if parquet.metadata.row_group(n).num_rows
        ]
    found: Totals = dict.fromkeys(moments, ())
    for second, *totals in zip(*_summed(parts).to_pydict().values(), strict=True) if parts else []:
        moment = datetime.fromtimestamp(second, UTC)
        if moment not in found:
            raise InvalidInputError(f"{where} has rows of {moment.isoformat()}, which is no moment of this file")
        found[moment] = tuple(totals)
    return found


def _ranges(history: Artifacts, files: tuple[HistoryFile, ...], rows: Mapping[str, int]) -> Iterator[Share]:
    """The partitions in ranges, of which the files together have about as many rows as may be held."""
    names = {file.name for file in files}
    largest = max(names, key=lambda name: rows[name])
    size = ROWS_AT_A_TIME * rows[largest] // max(1, sum(rows[name] for name in names))
    cuts, count = set(), 0
    with history.open_parquet(largest, read_dictionary=TEXTS) as parquet:
        for number in range(parquet.num_row_groups):
            keys = parquet.read_row_group(number, columns=["topic", "partition"], use_threads=False)
            for begin, end in pairwise(row_groups(keys, max(1, size))):
                if count + end - begin > size and count:
                    cuts.add(TopicPartition(keys["topic"][begin].as_py(), keys["partition"][begin].as_py()))
                    count = 0
                count += end - begin
    for low, high in pairwise([None, *sorted(cuts), None]):
        yield Share("", files, low, high)


def _merged(history: Artifacts, share: Share) -> pa.Table:
    """The rows of some partitions, in the order of the file."""
    moments: dict[str, list[datetime]] = {}
    for file in share.files:
        moments.setdefault(file.name, []).append(file.taken_at)
    topics, tables, keys = Topics(), [HELD.empty_table()], [np.empty(0, np.int64)]
    for name, wanted in moments.items():
        with history.open_parquet(name, read_dictionary=TEXTS) as parquet:
            numbers = row_groups_of(parquet, share, f"{history.uri}/{name}")
            if not numbers:
                continue
            table = _held(parquet.read_row_groups(numbers, use_threads=False))
        rows = np.arange(table.num_rows)
        if is_day_file(name):
            rows = rows[places_of(wanted)[second_of_day(table["taken_at"], rows)] >= 0]
        found = topics.keys(table, rows)
        within = topics.within(found, share)
        keys.append(found[within])
        tables.append(table if within.all() and len(rows) == table.num_rows else table.take(pa.array(rows[within])))
    merged = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    taken_at = pc.cast(merged["taken_at"], pa.int64()).to_numpy()
    order = np.lexsort((taken_at, _by_name(topics, np.concatenate(keys))))  # stable: replicas stay in their order
    return merged.take(pa.array(order))


def _by_name(topics: Topics, keys: Ints) -> Ints:
    """Keys that are in order where the topics' names and the partitions are."""
    rank = np.empty(len(topics.names), np.int64)
    rank[sorted(range(len(topics.names)), key=topics.names.__getitem__)] = np.arange(len(rank))
    ordered: Ints = (rank[keys >> PARTITION_BITS] << PARTITION_BITS) | (keys & (2**PARTITION_BITS - 1))
    return ordered


def _held(table: pa.Table) -> pa.Table:
    return with_committed(table).cast(HELD)


def _totals(table: pa.Table) -> pa.Table:
    """Of some rows: by second, what `totals_of` gives."""
    table = table.unify_dictionaries().combine_chunks()
    columns = {name: table[name].cast(pa.int64()) for name in NUMBERS}
    for name in TEXTS:
        column = table[name].combine_chunks()
        columns[name] = pc.take(pc.binary_length(column.dictionary), column.indices)
    committed = table["committed"].combine_chunks()
    entries, row = pc.list_flatten(committed), pc.list_parent_indices(committed).to_numpy()
    columns["listed"] = pc.list_value_length(committed)
    for name, values in (
        ("group", pc.binary_length(entries.field("group"))),
        ("offset", entries.field("offset")),
    ):
        added = np.zeros(table.num_rows, np.int64)
        np.add.at(added, row, values.to_numpy())
        columns[name] = pa.array(added)
    second = pc.cast(table["taken_at"], pa.int64()).to_numpy() // 1_000_000
    wanted = [(name, function) for name in columns for function in ("count", "sum")]
    return pa.table({"second": second, **columns}).group_by("second").aggregate([([], "count_all"), *wanted])


def _summed(parts: list[pa.Table]) -> pa.Table:
    """The totals of several parts, put together; the second comes first."""
    together = pa.concat_tables(parts)
    names = [name for name in together.column_names if name != "second"]
    summed = together.group_by("second").aggregate([(name, "sum") for name in names])
    return summed.select(["second", *(f"{name}_sum" for name in names)])
