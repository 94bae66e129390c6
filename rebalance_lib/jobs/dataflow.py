"""The data flow of the planning job: from the snapshots of runs to their published plans.

    prepared      a row for each run            how many partitions there are, in how many row groups
    replicas      a row for each replica        the snapshots
    loads         a row for each partition      the history, in the hours before each snapshot
    planned       a row for each run            the rows of each cluster meet in one task, which plans and stages files
    violations    a row for each broken rule    what was staged, beside the replicas, in SQL
    published     a row for each run            the staged files of those that break none

Executors read, plan, write and publish. The driver holds a row for each run, never one for each partition. What is
wrong with a run, such as a torn snapshot, is a row of it too. Where Spark itself gives up, because a worker was killed
for its memory, say, the runs are cut in half, and each half is tried again, until the one that is at fault is alone.

Runs are taken in batches, the smallest clusters first, so that plans appear while others are still worked out, and the
largest cluster delays nobody. While one batch is checked, the next is planned. Nothing is kept that Spark cannot work
out again from the snapshots when an executor is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.jobs import shards, tasks
from rebalance_lib.jobs.checks import Checks
from rebalance_lib.jobs.files import Staged
from rebalance_lib.jobs.isolation import in_halves
from rebalance_lib.jobs.mapping import map_rows
from rebalance_lib.jobs.rows import CHUNKS, PlanTask, read_loads, read_replicas
from rebalance_lib.jobs.session import another_session, close_session, parallelism, tune_spark
from rebalance_lib.jobs.shards import Assembled, Piece
from rebalance_lib.jobs.tasks import OUTCOMES, PREPARED
from rebalance_lib.planner import Request
from rebalance_lib.planner.shard_tables import KEYS, SUMS, TOTALS
from rebalance_lib.planner.shards import shard_count
from rebalance_lib.topology import TopicPartition

REPLICAS_OF_A_BATCH = 3_000_000  # a round of checks takes some 4 s, however little there is to check


@dataclass
class RunState:
    """A run on its way: what is known of it, and what went wrong, if anything did."""

    number: int
    task: PlanTask
    partitions: int = 0
    replicas: int = 0
    row_groups: int = 0
    broker_sets: bool = False
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what else there is to say
    published: bool = False


def plan_runs(
    spark: SparkSession, runs: Sequence[RunState], say: Callable[[str], object] = print, *, is_new: bool = False
) -> None:
    """Plan, check and publish all runs, in a session that may be tuned; what went wrong with a run is kept with it.

    Args:
        spark: The session.
        runs: Those to plan.
        say: Where progress is logged.
        is_new: Whether Spark has just started, and is slow to check the first plan unless it has done so before.
    """
    begun = time.perf_counter()
    with ExitStack() as afterwards:
        checker = another_session(spark)  # views of the batch that is checked are its own
        afterwards.callback(close_session, checker)
        aside = ThreadPoolExecutor(1)
        afterwards.callback(aside.shutdown, cancel_futures=True)  # a job that is ended publishes nothing more
        checking = [aside.submit(warm_up, spark, runs[0].task.request)] if is_new else []
        isolate(partial(prepare, spark), runs)
        say(f"{len(runs)} snapshots, {sum(run.partitions for run in runs)} partitions")
        for one in (spark, checker):
            tune_spark(one, sum(run.partitions for run in runs))
        for batch in batches(_good(runs)):
            planning = time.perf_counter()
            isolate(partial(plan, spark), batch)
            say(f"{len(_good(batch))} of {len(batch)} clusters planned in {time.perf_counter() - planning:.1f} s")
            checking.append(aside.submit(_finish, checker, batch, say))
        for one in checking:
            one.result()
    published = sum(run.published for run in runs)
    say(f"{published} of {len(runs)} runs have a plan, after {time.perf_counter() - begun:.1f} s")


def _finish(spark: SparkSession, batch: Sequence[RunState], say: Callable[[str], object]) -> None:
    """Check and publish a batch."""
    begun = time.perf_counter()
    planned = _good(batch)
    isolate(partial(check, spark), planned)
    isolate(partial(publish, spark), _good(planned))
    for note in (note for run in batch for note in run.notes):
        say(note)
    published = sum(run.published for run in batch)
    say(f"{published} of {len(planned)} plans checked and published in {time.perf_counter() - begun:.1f} s")


def prepare(spark: SparkSession, runs: Sequence[RunState]) -> None:
    """Learn how large the clusters are, and in how many shards each is planned."""
    for run, row in _each(spark, runs, partial(tasks.prepare, at_once=parallelism(spark)), PREPARED):
        run.row_groups, run.replicas, run.partitions = row.row_groups, row.replicas, row.partitions
        run.broker_sets = row.broker_sets
        count = shard_count(run.task.request, row.partitions, sets=row.broker_sets)
        request = run.task.request if row.broker_sets else replace(run.task.request, shards=count)
        cuts = tuple(TopicPartition(cut.topic, cut.partition) for cut in row.cuts)
        run.task = replace(run.task, request=request, cuts=cuts, shards=count)
        run.task = replace(run.task, cluster_id=row.cluster_id, taken_at=row.taken_at)


def plan(spark: SparkSession, runs: Sequence[RunState]) -> None:
    """Bring the rows of each cluster, or of each shard of a large one, to one task; the plans are staged then."""
    groups = 0
    for run in runs:
        run.task = replace(run.task, group=groups)
        groups += run.task.shards
    rows = replicas(spark, runs).unionByName(loads(spark, runs)).repartitionById(groups, "group")
    if groups > len(runs):
        planned = _plan_in_shards(spark, rows, runs)
    else:
        planned = _outcomes(map_rows(rows, tasks.plan(_tasks(runs)), OUTCOMES), runs)
    for run, row in planned:
        run.task = replace(run.task, staged=row.staged, digest=row.digest)
    answered = {run.number for run, _ in planned}
    for run in _good(runs):
        if run.number not in answered:
            run.errors.append("Spark gave no answer for it: run the job again")


def _plan_in_shards(spark: SparkSession, rows: DataFrame, runs: Sequence[RunState]) -> list[tuple[RunState, Row]]:
    """Tell each shard what the whole cluster adds up to, correct what shards leave uneven, and put files together."""
    rows.persist(StorageLevel.DISK_ONLY)
    try:
        sums = map_rows(rows, shards.add_up(_tasks(runs)), shards.RUN_TOTALS).groupBy("run", *KEYS).sum(*SUMS)
        totals = _by_run(sums.toDF(*shards.RUN_TOTALS.names).toArrow())  # a row for each log dir: no partition's
        planned = map_rows(rows, shards.plan_shard(_tasks(runs), totals), OUTCOMES)
        # A cluster that is cut up is alone in its batch, see `batches`.
        corrected = map_rows(planned.repartition(1), shards.join(_tasks(runs), totals), shards.JOINED)
        joined = _outcomes(corrected, runs)
    finally:
        rows.unpersist()
    pieces = [
        (run.number, Piece(row.staged, tuple(row.parts), piece.candidate, piece.source, tuple(piece.targets)))
        for run, row in joined
        for piece in row.pieces
    ]
    digests: dict[int, dict[str, str]] = {run.number: {} for run, _ in joined}
    for run, row in _of_each(spark, runs, pieces, shards.assemble, shards.ASSEMBLED):
        if row.digest is not None:
            digests[run.number][row.candidate] = row.digest
    plans = [(run.number, Assembled(row.staged, digests[run.number])) for run, row in joined if not run.errors]
    return _of_each(spark, runs, plans, shards.finish, OUTCOMES)


def _by_run(totals: pa.Table) -> dict[int, pa.Table]:
    runs = pc.unique(totals["run"]).to_pylist()
    return {run: totals.filter(pc.field("run") == run).select(TOTALS.names).cast(TOTALS) for run in runs}


def replicas(spark: SparkSession, runs: Sequence[RunState]) -> DataFrame:
    """The snapshots' rows, each with the group that it is planned in; a task for each row group of a file."""
    parts = [(run.number, part) for run in runs for part in range(max(1, run.row_groups))]
    return map_rows(_range(spark, len(parts)), read_replicas(_tasks(runs), parts), CHUNKS)


def loads(spark: SparkSession, runs: Sequence[RunState]) -> DataFrame:
    """What is known of the partitions' loads; the history of a large cluster is read by several tasks."""
    parts = [(run.number, part) for run in runs for part in range(len(run.task.cuts) + 1)]
    return map_rows(_range(spark, len(parts)), read_loads(_tasks(runs), parts), CHUNKS)


def check(spark: SparkSession, runs: Sequence[RunState]) -> None:
    """Judge what was staged, in SQL; runs differ in nothing that the rules look at but their clusters."""
    sets = any(run.broker_sets for run in runs)
    with Checks(spark, runs[0].task.request, broker_sets=sets) as checks:
        found = checks.violations(
            [
                Staged(run.number, run.task.snapshot, Artifacts(run.task.staged), run.row_groups, run.task.shards)
                for run in runs
            ]
        )
    for run in runs:
        run.errors += [f"the plan breaks a rule: {line}" for line in found.get(run.number, [])]


def warm_up(spark: SparkSession, request: Request) -> None:
    """Check nothing, while workers start and Spark's driver has little to do: the first plan waits 3 s less."""
    other = another_session(spark)
    tune_spark(other, 0)
    with suppress(Exception), Checks(other, request, broker_sets=False) as checks:
        checks.warm_up()
    close_session(other)


def publish(spark: SparkSession, runs: Sequence[RunState]) -> None:
    """Let the staged files appear."""
    for run, _ in _each(spark, runs, tasks.publish, OUTCOMES):
        run.published = True


def isolate(work: Callable[[Sequence[RunState]], None], runs: Sequence[RunState]) -> None:
    """Do the work for all runs at once; where Spark gives up, down to the run at fault, see `isolation`."""

    def of_good(some: Sequence[RunState]) -> None:
        if good := _good(some):
            work(good)

    _, reasons = in_halves(of_good, runs)
    for run, reason in zip(runs, reasons, strict=True):
        run.errors += [] if reason is None else [reason]


def batches(runs: Iterable[RunState]) -> Iterator[list[RunState]]:
    """The runs, the smallest first, as many at a time as are worth a round of Spark's jobs; a sharded one alone."""
    batch: list[RunState] = []
    for run in sorted(runs, key=lambda run: (run.task.shards, run.replicas)):
        if batch and (run.task.shards > 1 or sum(one.replicas for one in batch) + run.replicas > REPLICAS_OF_A_BATCH):
            yield batch
            batch = []
        batch.append(run)
    if batch:
        yield batch


def _each(
    spark: SparkSession, runs: Sequence[RunState], work: Callable[[PlanTask], tasks.Found], schema: pa.Schema
) -> list[tuple[RunState, Row]]:
    """Do a piece of work for each run, in a task of its own: the runs with which nothing went wrong, and their rows."""
    return _of_each(spark, runs, list(_tasks(_good(runs)).items()), work, schema)


def _of_each(
    spark: SparkSession,
    runs: Sequence[RunState],
    numbered: Sequence[tuple[int, tasks.One]],
    work: Callable[[tasks.One], tasks.Found],
    schema: pa.Schema,
) -> list[tuple[RunState, Row]]:
    """The same for parts of runs, each with the number of its run."""
    if not numbered:
        return []
    return _outcomes(map_rows(_range(spark, len(numbered)), tasks.each(numbered, work, schema), schema), runs)


def _outcomes(done: DataFrame, runs: Sequence[RunState]) -> list[tuple[RunState, Row]]:
    """Keep with each run what became of it."""
    by_number = {run.number: run for run in runs}
    rows = [(by_number[row.run], row) for row in done.collect()]
    for run, row in rows:
        run.seconds += row.seconds
        run.notes += [row.note] if row.note is not None else []
        run.errors += [row.error] if row.error is not None else []
    return [(run, row) for run, row in rows if row.error is None]


def _range(spark: SparkSession, count: int) -> DataFrame:
    """Numbers, each in a task of its own."""
    return spark.range(0, count, 1, count)


def _tasks(runs: Iterable[RunState]) -> dict[int, PlanTask]:
    return {run.number: run.task for run in runs}


def _good(runs: Iterable[RunState]) -> list[RunState]:
    return [run for run in runs if not run.errors]
