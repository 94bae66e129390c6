"""The rows that go from task to task of the planning job: replicas, loads and messages, each with its run and group.

A *group* is what one task plans: a whole cluster, or a shard of a large one. A row of `ROWS` is

    a replica         all columns of the snapshot
    a load            a topic and a partition without a position: its rates, and the size to expect
    a message         no topic: that there is such a run, that the history was read, or what is wrong with the run

Spark carries them in chunks, many rows of a group as Arrow's bytes in one row of `CHUNKS`: a JVM that takes a million
replicas apart, field by field, and puts them together again for the next task needs 12 s for it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import RATES, SNAPSHOT, Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import LoadOptions, planned_part
from rebalance_lib.history.planned import PLANNED_LOADS
from rebalance_lib.jobs.mapping import BATCH_ROWS, Batches, Mapper
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Request
from rebalance_lib.planner.shard_tables import ShardInput, shard_of
from rebalance_lib.topology import REPLICAS, Snapshot, TopicPartition, check_snapshot, replica_rows
from rebalance_lib.topology.load_facts import LoadFacts

RUN = pa.field("run", pa.int64(), nullable=False)
RATE_COLUMNS = ("write_rate", "read_rate", "write_rate_p95")
CHUNKS = pa.schema([RUN, pa.field("group", pa.int32(), nullable=False), ("rows", pa.binary())])
ROWS = pa.schema(
    [
        *(column.with_nullable(True) for column in REPLICAS),
        *(PLANNED_LOADS.field(name) for name in RATE_COLUMNS),
        pa.field("groups_reset", pa.list_(pa.string())),
        pa.field("error", pa.string()),
    ]
)


class Past(NamedTuple):
    """Where loads come from, and which of them count."""

    history: str
    options: LoadOptions


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A run as its tasks know it: its groups are ``shards`` many, from this one on.

    A task may be tried again, also while an earlier try of it goes on: each has a directory of its own in ``staging``.
    """

    uri: str
    request: Request
    staging: str
    pace: Pace = field(default_factory=Pace)
    past: Past | None = None
    cluster_id: str = ""
    taken_at: str = ""
    cuts: tuple[TopicPartition, ...] = ()  # between which tasks read the history
    shards: int = 1
    group: int = 0
    staged: str = ""  # where the try whose answer counts has staged the files, and the digest of their plan
    digest: str = ""

    @property
    def snapshot(self) -> Artifacts:
        """Where the run's snapshot is."""
        return Artifacts(self.uri) / SNAPSHOT


Tasks = Mapping[int, PlanTask]  # by the number of the run


def read_replicas(tasks: Tasks, parts: Sequence[tuple[int, int]]) -> Mapper:
    """For mapInArrow: places of parts come in, a run and one of its row groups each; the replicas go out."""

    def read(task: PlanTask, row_group: int) -> Iterator[pa.Table]:
        for table in task.snapshot.read_row_group("replicas.parquet", row_group, rows=BATCH_ROWS):
            try:
                yield replica_rows(table)
            except InvalidInputError as error:
                raise InvalidInputError(f"{task.snapshot.uri}/{error}") from error

    return _reading(tasks, parts, read)


def read_loads(tasks: Tasks, parts: Sequence[tuple[int, int]]) -> Mapper:
    """For mapInArrow: places of parts come in, a run and a part between two of its cuts each; the loads go out.

    They are those of the hours before the snapshot if a history is given, else what the cluster's own file said.
    """

    def read(task: PlanTask, part: int) -> Iterator[pa.Table]:
        if task.past is not None:
            history, options = task.past
            low, high = [None, *task.cuts, None][part : part + 2]
            loads = planned_part(Artifacts(history), task.cluster_id, task.taken_at, options, (low, high))
            if loads is not None:
                facts = LoadFacts.of(loads)
                yield pa.table({"groups_reset": [facts.groups_reset if facts else ()]})
                yield loads
        elif task.snapshot.exists(RATES):
            loads = task.snapshot.read_table(RATES)
            yield loads.select([name for name in PLANNED_LOADS.names if name in loads.column_names])

    return _reading(tasks, parts, read)


def _reading(
    tasks: Tasks, parts: Sequence[tuple[int, int]], read: Callable[[PlanTask, int], Iterator[pa.Table]]
) -> Mapper:
    """For mapInArrow: what is read of each part; what cannot be read is a message."""

    def rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        for place in (place for batch in batches for place in batch["id"].to_pylist()):
            number, part = parts[place]
            task = tasks[number]
            yield from chunks_of(message(None), ROWS, number, task.group)  # that there is such a run
            try:
                for table in read(task, part):
                    yield from chunks_of(table, ROWS, number, _groups(task, table))
            except Exception as error:
                yield from chunks_of(message(error), ROWS, number, task.group)

    return rows


def _groups(task: PlanTask, table: pa.Table) -> Any:
    if task.shards == 1 or "topic" not in table.column_names:
        return task.group
    return shard_of(table["topic"], table["partition"].to_numpy(), task.shards) + task.group


def message(error: Exception | None) -> pa.Table:
    """A row that says what is wrong, or nothing."""
    return pa.table({"error": pa.array([None if error is None else worded(error)], pa.string())})


def worded(error: Exception) -> str:
    """An error as a sentence; where it is none of ours, the log of the worker says where it came from."""
    if isinstance(error, RebalanceError):
        return str(error)
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}; Spark's log of the workers says where"


def chunks_of(table: pa.Table, schema: pa.Schema, run: int, group: Any = 0) -> Iterator[pa.RecordBatch]:
    """A table in the columns of a schema, of which it may lack some, as rows of CHUNKS.

    Args:
        table: The rows.
        schema: What `rows_of` is to find.
        run: Their run.
        group: The group of all of them, or of each.
    """
    table = in_columns(table, schema)
    groups = [(group, table)]
    if not isinstance(group, int) and len(table):
        order = np.argsort(group, kind="stable")
        named, begins = np.unique(group[order], return_index=True)
        table = table.take(pa.array(order))
        ends = [*begins[1:].tolist(), len(table)]
        groups = [
            (number, table.slice(begin, end - begin))
            for number, begin, end in zip(named.tolist(), begins.tolist(), ends, strict=True)
        ]
    for number, rows in groups:
        for batch in rows.to_batches(BATCH_ROWS):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, schema) as writer:
                writer.write_batch(batch)
            columns = {"run": [run], "group": [number], "rows": [sink.getvalue().to_pybytes()]}
            yield pa.RecordBatch.from_pydict(columns, CHUNKS)


def rows_of(batches: Batches, schema: pa.Schema) -> tuple[int, int, pa.Table]:
    """The run and the group of rows of CHUNKS, which are all of one, and the table in them; -1 if there are none."""
    run = group = -1
    found: list[pa.RecordBatch] = []
    for batch in batches:
        for number, one, rows in zip(batch["run"].to_pylist(), batch["group"].to_pylist(), batch["rows"], strict=True):
            run, group = number, one
            found += pa.ipc.open_stream(rows.as_buffer())
    return run, group, pa.Table.from_batches(found, schema)


def in_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table in the columns of a schema; those that it lacks are null."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def labelled(table: pa.Table, schema: pa.Schema, run: int) -> list[pa.RecordBatch]:
    """A table in the columns of a schema, with its run."""
    label = pa.repeat(pa.scalar(run, RUN.type), len(table))
    found: list[pa.RecordBatch] = in_columns(table.append_column(RUN, label), schema).to_batches(BATCH_ROWS)
    return found


def refuse_errors(rows: pa.Table) -> None:
    """Raise what a message says is wrong."""
    if len(errors := rows["error"].drop_null()):
        raise RebalanceError(errors[0].as_py())


def cluster_of(task: PlanTask, rows: pa.Table) -> ShardInput:
    """The replicas and loads among these rows, checked, as one process would read them."""
    replicas = rows.filter(pc.is_valid(rows["position"])).select(REPLICAS.names)
    try:
        snapshot = check_snapshot(Snapshot.from_tables(task.snapshot.read_table("brokers.parquet"), replicas))
    except InvalidInputError as error:
        raise InvalidInputError(f"{task.snapshot.uri}/{error}") from error
    return ShardInput(snapshot, _loads(task, rows))


def _loads(task: PlanTask, rows: pa.Table) -> pa.Table | None:
    found = rows.filter(pc.and_(pc.is_valid(rows["topic"]), pc.is_null(rows["position"]))).select(PLANNED_LOADS.names)
    if not found.num_rows:
        return None
    loads = found.cast(PLANNED_LOADS).sort_by([("topic", "ascending"), ("partition", "ascending")])
    read = rows["groups_reset"].drop_null()
    if task.past is None or not len(read):
        return loads
    options = task.past.options
    reset = tuple(sorted({name for names in read.to_pylist() for name in names}))
    return LoadFacts(str(options.statistic), options.hours, options.horizon_days, reset).attach(loads)
