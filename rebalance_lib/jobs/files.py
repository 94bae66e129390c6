"""What was written, read in Spark's workers from wherever it is kept, and handed to Spark as rows.

Each function is for mapInArrow: places in a list come in, the rows of the files there go out, each with its run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.jobs.entries import entries_of
from rebalance_lib.jobs.rows import BATCH_ROWS, batches_of

ENTRIES = (
    "run bigint, candidate string, topic string, partition int, replicas array<int>, log_dirs array<string>, "
    "line string, digest string"
)
SUMMARIES = "run bigint, text string"
PLAN_FILE = "plan.json"

Staged = Sequence[tuple[int, Artifacts]]
Parts = Sequence[tuple[int, Artifacts, int]]
Reader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def tables(parts: Parts, name: str, schema: str) -> Reader:
    """Some columns of a Parquet file: a run, a directory and a row group each; columns it does not have are null."""
    columns = arrow_schema(schema).names

    def read(directory: Artifacts, row_group: int) -> Iterator[pa.Table]:
        return directory.read_row_group(name, row_group, columns, rows=BATCH_ROWS)

    return _each(parts, read, schema)


def summaries(staged: Staged) -> Reader:
    """The text of each run's summary."""

    def read(directory: Artifacts) -> Iterator[pa.Table]:
        yield pa.table({"text": [directory.read_text("summary.json")]})

    return _each(staged, read, SUMMARIES)


def entries(staged: Staged) -> Reader:
    """The entries of all plans of a run, and a row with the digest of each, also of the plan at the top.

    The canonical form, of which a digest is made, is the text of the file without the ends of its lines.
    """

    def read(directory: Artifacts) -> Iterator[pa.Table]:
        for candidate in (None, *(directory / "candidates").directories()):
            place = directory if candidate is None else directory / "candidates" / candidate
            text = place.read_bytes(PLAN_FILE)
            digest = hashlib.sha256(text.replace(b"\n", b"")).hexdigest()
            yield pa.table({"candidate": pa.array([candidate], pa.string()), "digest": [digest]})
            if candidate is not None:
                found = entries_of(text.decode())
                label = pa.repeat(pa.scalar(candidate), found.num_rows)
                yield found.append_column("candidate", label)

    return _each(staged, read, ENTRIES)


def arrow_schema(schema: str) -> pa.Schema:
    """Spark's words for a schema as Arrow has it."""
    return to_arrow_schema(DataType.fromDDL(schema))


def _each(places: Sequence[tuple[Any, ...]], read: Callable[..., Iterator[pa.Table]], schema: str) -> Reader:
    columns = arrow_schema(schema)

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in (place for batch in batches for place in batch["id"].to_pylist()):
            run, *where = places[place]
            for table in read(*where):
                yield from batches_of(table, columns, run)

    return rows
