"""What Spark's workers do with the runs of the planning job.

    prepare        a run      its brokers and the footer of its replicas: how much there is to plan
    plan           a run      all rows of its cluster: the plans to choose from, written to the run's staging
    publish        a run      the staged files appear as the run's plan

Large clusters are planned in `shards`. `rows` says what goes from one to the next. Whatever goes wrong with a run is
told in a row, and is that run's affair.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import LAST, PLAN, Artifacts, read_groups
from rebalance_lib.compile import ensure_compiled
from rebalance_lib.history import cuts_of
from rebalance_lib.jobs.mapping import Batches, Mapper
from rebalance_lib.jobs.rows import (
    ROWS,
    RUN,
    PlanTask,
    Tasks,
    cluster_of,
    refuse_errors,
    rows_of,
    worded,
)
from rebalance_lib.planner import Choice, ClusterModel
from rebalance_lib.report import with_groups, write_choice
from rebalance_lib.topology import Groups

OUTCOMES = pa.schema(
    [
        RUN,
        ("seconds", pa.float64()),
        ("error", pa.string()),
        ("note", pa.string()),
        ("staged", pa.string()),
        ("digest", pa.string()),
    ]
)
PREPARED = pa.schema(
    [
        *OUTCOMES,
        ("cluster_id", pa.string()),
        ("taken_at", pa.string()),
        ("row_groups", pa.int32()),
        ("replicas", pa.int64()),
        ("partitions", pa.int64()),
        ("broker_sets", pa.bool_()),
        ("cuts", pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))),
    ]
)
MANY_PARTITIONS = 50_000  # of a cluster whose history is worth several tasks
Found = Mapping[str, object] | None
One = TypeVar("One")


def each(runs: Sequence[tuple[int, One]], work: Callable[[One], Found], schema: pa.Schema) -> Mapper:
    """For mapInArrow: places in the list come in; what was found out about each, or what was wrong with it, goes out.

    Args: `runs` has the number of a run, and what the work is done for: its task, or a part of it.
    """

    def answer(batches: Batches) -> Iterator[pa.RecordBatch]:
        for place in (place for batch in batches for place in batch["id"].to_pylist()):
            number, task = runs[place]
            yield outcome(number, partial(work, task), schema)

    return answer


def prepare(task: PlanTask, at_once: int) -> dict[str, object]:
    """How much there is to plan, and where to cut the history for so many tasks; one small column is read."""
    brokers = task.snapshot.read_table("brokers.parquet")
    named = {
        name: (brokers.schema.metadata or {}).get(name.encode(), b"").decode() for name in ("cluster_id", "taken_at")
    }
    sets = "broker_set" in brokers.column_names and brokers["broker_set"].null_count < len(brokers)
    with task.snapshot.open_parquet("replicas.parquet") as file:
        partitions = 0
        for batch in file.iter_batches(columns=["position"]) if "position" in file.schema_arrow.names else ():
            partitions += pc.sum(pc.equal(batch["position"], 0)).as_py() or 0
        sizes = {"row_groups": file.num_row_groups, "replicas": file.metadata.num_rows, "partitions": partitions}
    cuts = []
    if task.past is not None and partitions > MANY_PARTITIONS:
        history, options = task.past
        cuts = cuts_of(Artifacts(history), named["cluster_id"], named["taken_at"], options, at_once)
    return {**named, **sizes, "broker_sets": sets, "cuts": [cut._asdict() for cut in cuts]}


def publish(task: PlanTask) -> None:
    """Let the staged files appear, all of them at once; they are gone if a try whose answer was lost has done so."""
    place, staged = Artifacts(task.uri) / PLAN, Artifacts(task.staged)
    if staged.exists(LAST) or not place.exists(LAST) or place.read_json("summary.json")["digest"] != task.digest:
        place.publish(staged)


def plan(tasks: Tasks) -> Mapper:
    """For mapInArrow: all rows of a run come in, what became of it goes out; its plans are in its staging then."""

    def answer(batches: Batches) -> Iterator[pa.RecordBatch]:
        number, _, rows = rows_of(batches, ROWS)
        if rows.num_rows:
            yield outcome(number, lambda: _plan(tasks[number], rows), OUTCOMES)

    return answer


def _plan(task: PlanTask, rows: pa.Table) -> Found:
    """Plan a whole cluster, as one machine does."""
    refuse_errors(rows)
    ensure_compiled()
    cluster = cluster_of(task, rows)
    timings: dict[str, float] = {}
    choice = Choice.planned(ClusterModel.of(cluster.snapshot, cluster.loads), task.request, cluster.loads, timings)
    begun = time.perf_counter()
    groups, note = _groups(task)
    choice = with_groups(choice, groups)
    timings["groups"] = time.perf_counter() - begun
    return {"note": note, **_staged(task, choice)}


def _staged(task: PlanTask, choice: Choice) -> dict[str, str]:
    """Write the files of a choice to a directory of this try."""
    staged = Artifacts(task.staging) / uuid.uuid4().hex[:8]
    write_choice(staged, choice, task.pace)
    return {"staged": staged.uri, "digest": choice.recommended.plan.digest}


def _groups(task: PlanTask) -> tuple[Groups | None, str | None]:
    """The consumer groups beside a snapshot; a plan is never held up by those that cannot be read."""
    try:
        return read_groups(task.snapshot), None
    except Exception as error:
        why = f"they cannot be read: {' '.join(worded(error).split())}; take the snapshot again"
        return None, f"{task.uri} is planned without its consumer groups: {why}"


def outcome(number: int, work: Callable[[], Found], schema: pa.Schema) -> pa.RecordBatch:
    """What became of a run in a task."""
    begun = time.perf_counter()
    error: str | None = None
    found: Found = None
    try:
        found = work()
    except Exception as wrong:  # whatever it is, the other clusters go on
        error = worded(wrong)
    row = {"run": number, "seconds": time.perf_counter() - begun, "error": error, **(found or {})}
    return pa.RecordBatch.from_pylist([row], schema=schema)
