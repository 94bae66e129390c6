"""What was written, read in Spark's workers from wherever it is kept, and handed to Spark as rows.

Each function is for mapInArrow: places in a list come in, the rows of the files there go out, each with its run.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

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
BLOCK_BYTES = 16 << 20

Staged = Sequence[tuple[int, Artifacts]]
Parts = Sequence[tuple[int, Artifacts, int]]
Reader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def tables(parts: Parts, name: str, schema: str) -> Reader:
    """Some columns of a Parquet file: a run, a directory and a row group each; columns it does not have are null.

    The last row group that is listed of a file stands for all after it.
    """
    columns = arrow_schema(schema).names
    last: dict[str, int] = {}
    for _, directory, row_group in parts:
        last[directory.uri] = max(row_group, last.get(directory.uri, 0))

    def read(directory: Artifacts, row_group: int) -> Iterator[pa.Table]:
        groups = range(row_group, row_group + 1)
        if row_group == last[directory.uri]:
            with directory.open_parquet(name) as file:
                groups = range(row_group, max(row_group + 1, file.num_row_groups))
        for group in groups:
            yield from directory.read_row_group(name, group, columns, rows=BATCH_ROWS)

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
            digest = hashlib.sha256()
            with place.open_reader(PLAN_FILE) as file:
                blocks = _blocks(file, digest)
                for found in entries_of(blocks) if candidate is not None else ():
                    yield found.append_column("candidate", pa.repeat(pa.scalar(candidate), found.num_rows))
                deque(blocks, 0)  # what was not read for its entries counts in the digest, too
            yield pa.table({"candidate": pa.array([candidate], pa.string()), "digest": [digest.hexdigest()]})

    return _each(staged, read, ENTRIES)


def _blocks(file: IO[bytes], digest: Any) -> Iterator[bytes]:
    """A file in blocks of whole lines; the digest is of all but their ends."""
    while block := file.read(BLOCK_BYTES) + file.readline():
        digest.update(block.replace(b"\n", b""))
        yield block


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
