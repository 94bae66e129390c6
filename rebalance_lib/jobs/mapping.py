"""Work that Spark's executors do for each entry of a list, in a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

BATCH_ROWS = 50_000  # that go from a worker to Spark at a time

Entry = TypeVar("Entry")


def read_each(
    spark: SparkSession, entries: Sequence[Entry], read: Callable[[Entry], Iterable[pa.Table]], schema: pa.Schema
) -> DataFrame:
    """The rows that are read for each entry.

    Args:
        spark: The session.
        entries: What to read; each goes to the task that has its number.
        read: Runs in Spark's workers: an entry comes in, tables in this schema go out.
        schema: The columns.
    """

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                for table in read(entries[number]):
                    yield from table.to_batches(max_chunksize=BATCH_ROWS)

    return spark.range(0, len(entries), 1, max(1, len(entries))).mapInArrow(rows, from_arrow_schema(schema))
