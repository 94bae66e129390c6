"""What Spark's Python workers do: with the rows of a data frame, or with each entry of a list in a task of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

BATCH_ROWS = 100_000  # that go from a worker to Spark at a time
FEW_OBJECTS = 20_000  # are collected in 10 ms

Batches = Iterable[pa.RecordBatch]
Mapper = Callable[[Batches], Iterator[pa.RecordBatch]]
Entry = TypeVar("Entry")


def map_rows(frame: DataFrame, work: Mapper, schema: pa.Schema) -> DataFrame:
    """What workers make of the rows of a data frame, in the columns of a schema; see `mapInArrow`."""

    def rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        yield from work(batches)

    return frame.mapInArrow(rows, from_arrow_schema(schema))


def freeze_imports() -> None:
    """Let the garbage collector leave alone what this worker has imported since it did so last.

    pyspark's workers collect after each task. With numba, pyarrow and the planner that takes 0.07 s, which was 40 % of
    the time of workers that plan clusters of 10,000 partitions (``python -m bench.fleet --clusters 60``).
    """
    if len(gc.get_objects()) > FEW_OBJECTS:
        gc.freeze()


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

    def rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                for table in read(entries[number]):
                    yield from table.to_batches(max_chunksize=BATCH_ROWS)

    return map_rows(spark.range(0, len(entries), 1, max(1, len(entries))), rows, schema)
