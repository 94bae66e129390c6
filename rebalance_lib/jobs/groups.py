"""What candidates do to consumer groups, worked out on Spark: a group at a time, each with its members and offsets.

Groups of all runs are spread over the tasks. A worker reads a run's snapshot and the placements of its candidates
once, and keeps them for the next group of the same run. Since they are read together, each run's files are looked
through first: one that is damaged costs its own run the groups, and no other run anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from rebalance_lib.artifacts import GROUP_FILES, GROUPS, SNAPSHOT, Artifacts, has_groups
from rebalance_lib.assignors.effects import Effects
from rebalance_lib.jobs.files import table, tables
from rebalance_lib.jobs.tasks import ANSWERS_DDL, RunTask, answering, candidates_of, prepared
from rebalance_lib.report.groups import CANDIDATE_IMPACTS, impacts_of_group
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS

FILES = tuple(zip(GROUP_FILES, (GROUP_MEMBERS, GROUP_OFFSETS), strict=True))
KEYS = ("run", "group")
RUN = pa.field("run", pa.int64(), nullable=False)
ANSWERS = pa.schema([RUN, *CANDIDATE_IMPACTS])


def write_impacts(spark: SparkSession, runs: Mapping[int, RunTask]) -> None:
    """Leave each run's tasks what its candidates do to its groups; nothing where groups are not known."""
    known = _readable(spark, {number: run for number, run in runs.items() if has_groups(Artifacts(run.uri) / SNAPSHOT)})
    populated = {number: run for number, run in known.items() if _members(run)}
    found = _found(spark, populated) if populated else ANSWERS.empty_table()
    for number, run in known.items():
        own = found.filter(pc.field("run") == number).drop_columns(["run"])
        Artifacts(run.scratch).write_table(GROUPS, own.cast(CANDIDATE_IMPACTS))


@dataclass(frozen=True, slots=True)
class LookThrough:
    """The groups of one run, read only to see whether they can be."""

    run: RunTask

    def __call__(self) -> None:
        """Fail where they cannot."""
        for name, columns in FILES:
            table((Artifacts(self.run.uri) / SNAPSHOT).uri, name, columns)


def _readable(spark: SparkSession, runs: Mapping[int, RunTask]) -> dict[int, RunTask]:
    """The runs whose groups can be read; why the others go without is told."""
    if not runs:
        return {}
    numbers, found = list(runs), dict(runs)
    work = spark.range(0, len(numbers), 1, len(numbers))
    for row in work.mapInArrow(answering([LookThrough(run) for run in runs.values()]), ANSWERS_DDL).collect():
        if row.error is not None:
            run = found.pop(numbers[row.task])
            why = f"they cannot be read: {' '.join(row.error.split())}; take the snapshot again"
            print(f"compute_placement: {run.uri} is planned without its consumer groups: {why}", file=sys.stderr)
    return found


def _members(run: RunTask) -> int:
    """How many rows there are to look at: for a cluster without groups, Spark need not be asked."""
    with (Artifacts(run.uri) / SNAPSHOT).open_parquet(GROUP_FILES[0]) as file:
        return int(file.metadata.num_rows)


def _found(spark: SparkSession, runs: Mapping[int, RunTask]) -> pa.Table:
    members, offsets = (_read(spark, runs, name, columns).groupBy(*KEYS) for name, columns in FILES)
    return members.cogroup(offsets).applyInArrow(_answering(runs), from_arrow_schema(ANSWERS)).toArrow()


def _read(spark: SparkSession, runs: Mapping[int, RunTask], name: str, columns: pa.Schema) -> DataFrame:
    directories = [(number, (Artifacts(run.uri) / SNAPSHOT).uri) for number, run in runs.items()]
    labelled = from_arrow_schema(pa.schema([RUN, *columns]))
    files = spark.range(0, len(directories), 1, len(directories))
    return files.mapInArrow(tables(directories, name, columns), labelled).repartition(
        spark.sparkContext.defaultParallelism, *KEYS
    )


def _answering(runs: Mapping[int, RunTask]) -> Callable[[tuple[pa.Scalar, ...], pa.Table, pa.Table], pa.Table]:
    """For cogrouped applyInArrow: the members and the offsets of a group come in, a row per candidate goes out."""

    def answer(key: tuple[pa.Scalar, ...], members: pa.Table, offsets: pa.Table) -> pa.Table:
        run = key[0].as_py()
        if not members.num_rows:
            return ANSWERS.empty_table()
        rows = impacts_of_group(members, offsets, effects(runs[run]))
        return pa.Table.from_pylist([{"run": run, **row} for row in rows], schema=ANSWERS)

    return answer


@lru_cache(maxsize=1)
def effects(run: RunTask) -> dict[str, Effects]:
    """What each candidate of a run changes for those who read."""
    model, _ = prepared(run)
    return {one.name: Effects(model.snapshot, one.plan.entries) for one in candidates_of(run)}
