"""What Spark's workers do: each task reads a run's snapshot itself, and leaves its answer beside it as a file.

Rows of data never pass through the JVM: a task is told which run, which candidate and which shard, and answers with how
long it took, or with what was wrong. Files are written whole and are the same whenever a task runs again.

    shard        candidates times shards, of clusters that are cut up    NAME.SHARD.parquet in the run's scratch
    candidate    candidates                                              NAME.parquet
    group        consumer groups                                         groups.parquet, see `groups`
    write        runs                                                    all files of a choice, in the run's staging

What is wrong with one cluster's request is that cluster's affair: the others go on.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from rebalance_lib.artifacts import GROUPS, RATES, SNAPSHOT, Artifacts, read_checked_snapshot
from rebalance_lib.compile import ensure_compiled
from rebalance_lib.errors import RebalanceError
from rebalance_lib.jobs.placements import layout_table, placement_table, read_layout, read_placement
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Candidate, Choice, ClusterModel, Request, Scope
from rebalance_lib.planner.candidates import LEADERS, at_present, candidate, names, request_for, undominated
from rebalance_lib.planner.outcome import Outcome
from rebalance_lib.planner.shards import SHARDED, Shard, join, plan_shard
from rebalance_lib.report import write_choice
from rebalance_lib.report.groups import in_order

ANSWERS_DDL = "task bigint not null, seconds double not null, error string"
_ANSWERS = pa.schema(
    [
        pa.field("task", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("error", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class RunTask:
    """A run, the request for its cluster, and where its tasks leave what."""

    uri: str
    request: Request
    scratch: str
    staging: str
    pace: Pace = field(default_factory=Pace)
    by_set: bool = False  # sets of brokers are planned one by one, each cut up by itself

    @property
    def candidates(self) -> tuple[str, ...]:
        """The names of the plans that are worked out, to choose from."""
        return names(self.request)

    @property
    def shards(self) -> list[tuple[str, int]]:
        """The candidates that are worked out in shards, once for each shard; not where some topics come first."""
        whole = self.by_set or bool(self.request.min_topic_leaders)
        if whole or self.request.shards == 1 or self.request.mode not in SHARDED:
            return []
        return [(name, n) for name in self.candidates if name != LEADERS for n in range(self.request.shards)]


Task = Callable[[], object]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One shard of one candidate."""

    run: RunTask
    name: str
    number: int

    def __call__(self) -> None:
        """Leave where the shard's replicas shall be."""
        model, scope = prepared(self.run)
        expected = model.at_horizon()
        request = request_for(expected, scope, self.run.request, self.name)
        layout = plan_shard(expected, scope, request, self.number)
        Artifacts(self.run.scratch).write_table(f"{self.name}.{self.number}.parquet", layout_table(layout))


@dataclass(frozen=True, slots=True)
class CandidateTask:
    """One candidate, from what its shards left if there are any."""

    run: RunTask
    name: str

    def __call__(self) -> None:
        """Leave the placement."""
        model, scope = prepared(self.run)
        scratch, request = Artifacts(self.run.scratch), self.run.request
        parts = [number for name, number in self.run.shards if name == self.name]
        if parts:
            layouts = [
                read_layout(
                    Shard.of(model, scope, number, len(parts)).model.offsets,
                    scratch.read_table(f"{self.name}.{number}.parquet"),
                )
                for number in parts
            ]
            expected = model.at_horizon()
            placement = at_present(
                model, join(expected, scope, request_for(expected, scope, request, self.name), layouts)
            )
        else:
            placement = candidate(model, scope, request, self.name).outcome.placement
        scratch.write_table(f"{self.name}.parquet", placement_table(model, placement))


@dataclass(frozen=True, slots=True)
class WriteTask:
    """All candidates of a run put together; ``timings`` are the seconds that planning took."""

    run: RunTask
    timings: tuple[tuple[str, float], ...]

    def __call__(self) -> None:
        """Write the files of the choice."""
        model, _ = prepared(self.run)
        scratch = Artifacts(self.run.scratch)
        kept = candidates_of(self.run)
        impacts = scratch.read_table(GROUPS) if scratch.exists(GROUPS) else None
        if impacts is not None:
            impacts = in_order(impacts, [one.name for one in kept])
        choice = Choice(model, self.run.request, kept, dict(self.timings), impacts, read_loads(self.run))
        write_choice(Artifacts(self.run.staging), choice, self.run.pace)


def candidates_of(run: RunTask) -> list[Candidate]:
    """The plans to choose from, of those that the tasks of a run left."""
    model, scope = prepared(run)
    placements = {name: Artifacts(run.scratch).read_table(f"{name}.parquet") for name in run.candidates}
    listed = [
        Candidate(name, Outcome(model, scope, read_placement(model, table))) for name, table in placements.items()
    ]
    return undominated(listed, run.request)


def read_model(run: Artifacts) -> ClusterModel:
    """The cluster as the run's snapshot saw it, rates aside."""
    return ClusterModel.of(read_checked_snapshot(run / SNAPSHOT))


@lru_cache(maxsize=1)
def prepared(run: RunTask) -> tuple[ClusterModel, Scope]:
    """A run's cluster with the rates that are known, kept for the next task of the same worker on the same run."""
    model = read_model(Artifacts(run.uri))
    if (loads := read_loads(run)) is not None:
        model = model.with_loads(loads)
    return model, Scope.of(model, run.request)


def read_loads(run: RunTask) -> pa.Table | None:
    """What the history says of a run's partitions, else what the cluster's own file said; None for nothing."""
    for place in (Artifacts(run.scratch), Artifacts(run.uri) / SNAPSHOT):
        if place.exists(RATES):
            return place.read_table(RATES)
    return None


def answering(tasks: Sequence[Task]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow: numbers of tasks come in, their answers go out."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ensure_compiled()
        for batch in batches:
            rows = [_done(number, tasks[number]) for number in batch["id"].to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema=_ANSWERS)

    return answer


def _done(number: int, task: Task) -> dict[str, object]:
    begun = time.perf_counter()
    error = None
    try:
        task()
    except RebalanceError as wrong:
        error = str(wrong)
    except Exception as wrong:  # whatever it is, the other clusters go on
        traceback.print_exc()
        error = f"{type(wrong).__name__}: {wrong}; Spark's log of the workers says where"
    return {"task": number, "seconds": time.perf_counter() - begun, "error": error}
