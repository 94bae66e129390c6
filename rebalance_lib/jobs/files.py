"""What was written, read in Spark's workers from wherever it is kept, and handed to Spark as rows.

Each function is for mapInArrow: numbers of files come in, their rows go out. A plan is told as its run, its candidate
and the directory of its ``plan.json``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.jobs.entries import entries_of

ENTRIES_DDL = (
    "run bigint, candidate string, topic string, partition int, replicas array<int>, log_dirs array<string>, "
    "line string"
)
DIGESTS_DDL = "run bigint, candidate string, found string"
PLAN_FILE = "plan.json"
_ROWS = 100_000

Plan = tuple[int, str | None, str]
Reader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def entries(plans: Sequence[Plan]) -> Reader:
    """The entries of plans."""

    def read(number: int) -> pa.Table:
        run, candidate, directory = plans[number]
        return _labelled(entries_of(Artifacts(directory).read_text(PLAN_FILE)), run=run, candidate=candidate)

    return _each(read)


def digests(plans: Sequence[Plan]) -> Reader:
    """The canonical form, of which a plan's digest is made, is the text of its file without the ends of its lines."""

    def read(number: int) -> pa.Table:
        run, candidate, directory = plans[number]
        canonical = Artifacts(directory).read_bytes(PLAN_FILE).replace(b"\n", b"")
        return _labelled(pa.table({"found": [hashlib.sha256(canonical).hexdigest()]}), run=run, candidate=candidate)

    return _each(read)


def tables(directories: Sequence[tuple[int, str]], name: str, columns: pa.Schema) -> Reader:
    """Some columns of a Parquet file that each run has."""

    def read(number: int) -> pa.Table:
        run, directory = directories[number]
        return _labelled(table(directory, name, columns), run=run)

    return _each(read)


def table(directory: str, name: str, columns: pa.Schema) -> pa.Table:
    """Some columns of a Parquet file; those that it does not have are null, as Spark reads it."""
    with Artifacts(directory).open_parquet(name) as file:
        found = file.read([column for column in columns.names if column in file.schema_arrow.names])
    for column in columns:
        if column.name not in found.column_names:
            found = found.append_column(column, pa.nulls(found.num_rows, column.type))
    return found.select(columns.names).cast(columns)


def _each(read: Callable[[int], pa.Table]) -> Reader:
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from read(number).to_batches(max_chunksize=_ROWS)

    return rows


def _labelled(table: pa.Table, **labels: int | str | None) -> pa.Table:
    """The table with these values in front of each row."""
    for name, value in reversed(labels.items()):
        kind = pa.int64() if name == "run" else pa.string()
        table = table.add_column(0, name, pa.repeat(pa.scalar(value, kind), table.num_rows))
    return table
