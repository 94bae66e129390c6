"""Compact the history on Spark: of each cluster and day that is over, one file instead of one for each snapshot.

    spark-submit compact_history.py --history file:///.../history
    spark-submit compact_history.py --history file:///.../history --cluster PwnVvJcCTeWGnoYIFvmhSQ --margin 6

`rebalance_lib.history.compaction` says how, and why nothing is lost, whatever happens meanwhile: it can be killed, run
again, and run twice at once, while snapshots are appended and loads are read. Here the work is only cut up: each day of
a cluster is compacted by a task, in which some 400 MB are held, however large the cluster is. The driver lists clusters
and days, and counts.

What is wrong with a file or a day is one line, and exit code 1 at the end; all others are compacted, also where
a worker dies over a day.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import RebalanceError, error_text
from rebalance_lib.history import Compacted, clusters, compact_day, days_over
from rebalance_lib.history.compaction import MARGIN
from rebalance_lib.jobs.command_line import JobLog, parser_for, run_program
from rebalance_lib.jobs.isolation import in_halves
from rebalance_lib.jobs.mapping import Batches, Mapper, map_rows
from rebalance_lib.jobs.session import session

log = JobLog("compact_history")
MOST_TASKS = 5_000  # of more days each task has several: most were compacted before, and starting a task takes longer
MOST_HOURS = 24 * 365.0
COMPACTED = pa.schema(
    [
        pa.field("snapshots", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("removed", pa.int64(), nullable=False),
        pa.field("problems", pa.list_(pa.string()), nullable=False),
    ]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; errors are one clear line each and exit code 1, and wrong input costs no Spark session."""
    options = _parse(arguments)
    history = Artifacts.named(options.history)
    try:
        days = find_days(history, options.cluster, timedelta(hours=options.margin))
    except RebalanceError as error:
        return log.fail(str(error))
    if not days:
        known = clusters(history, options.cluster)
        why = "no day is over yet" if known else f"the history at {history.uri} has no cluster yet"
        print(f"compact_history: {why}")
        return 0
    with session("kafka-rebalance compact_history") as spark:
        found = compact(spark, history, days)
    print(
        f"compact_history: {len(days)} days; {found.snapshots} snapshots with {found.rows} rows are in one file a day "
        f"now, and {found.removed} files went"
    )
    return log.fail(*found.problems) if found.problems else 0


def find_days(history: Artifacts, cluster_ids: Sequence[str] | None, margin: timedelta) -> list[str]:
    """The directories of the days that are over, of these clusters or of all."""
    now = datetime.now(UTC)
    return [day for one in clusters(history, cluster_ids) for day in days_over(history, one, now, margin)]


def compact(spark: SparkSession, history: Artifacts, days: Sequence[str]) -> Compacted:
    """Compact each of these days in a task, or few of them; what is wrong with one is said with the others' counts.

    Where Spark gave up on a day, others that were compacted in the same go are not in the counts.
    """

    def work(some: Sequence[str]) -> list[Row]:
        numbers = spark.range(0, len(some), 1, min(len(some), MOST_TASKS))
        return list(map_rows(numbers, _compacting(history, some), COMPACTED).collect())

    answers, reasons = in_halves(work, days)
    rows = [row for answer in answers for row in answer]
    snapshots, count, removed = (sum(row[n] for row in rows) for n in range(3))
    failed = [f"{day} is not compacted: {reason}" for day, reason in zip(days, reasons, strict=True) if reason]
    return Compacted(snapshots, count, removed, (*(line for row in rows for line in row.problems or ()), *failed))


def _compacting(history: Artifacts, days: Sequence[str]) -> Mapper:
    """Runs in Spark's workers: numbers of days come in, for each task one row of counts goes out."""

    def answer(batches: Batches) -> Iterator[pa.RecordBatch]:
        found = [_compacted(history, days[number]) for batch in batches for number in batch["id"].to_pylist()]
        counts = {name: sum(getattr(one, name) for one in found) for name in COMPACTED.names[:3]}
        problems = [line for one in found for line in one.problems]
        yield pa.RecordBatch.from_pylist([{**counts, "problems": problems}], schema=COMPACTED)

    return answer


def _compacted(history: Artifacts, directory: str) -> Compacted:
    """What became of one day; whatever goes wrong, others go on."""
    try:
        return compact_day(history, directory)
    except Exception as error:
        return Compacted(problems=(f"{directory} is not compacted: {error_text(error)}",))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("--history", required=True, help="URI of the history of snapshots; executors must reach it too")
    add("--cluster", action="append", help="id of a cluster; repeatable; default all in the history")
    add(
        "--margin",
        type=_hours,
        default=MARGIN / timedelta(hours=1),
        help="hours after midnight UTC from which on a day counts as over; default %(default)g",
    )
    return parser.parse_args(arguments)


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours <= MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of hours from 0 to {MOST_HOURS:g}")
    return hours


if __name__ == "__main__":
    run_program(main)
