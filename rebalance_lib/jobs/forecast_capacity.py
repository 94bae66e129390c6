"""Forecast on Spark when log dirs, brokers and clusters are full, from the history of their sizes.

    spark-submit forecast_capacity.py --history file:///.../history --run file:///.../RUN [--run ...] --out file:///...
    spark-submit forecast_capacity.py --history file:///.../history --run file:///.../RUN --out ... --more-brokers 2

`rebalance_lib.history.capacity` says how it is forecast, `rebalance_lib.history.usage` what is counted. Workers sum the
sizes in each file of the history, Spark adds them up by log dir, broker and cluster, and each of these places is
forecast in a task of its own. The driver holds a row for each place, and none for a partition.

Capacities are those in the newest snapshot of each cluster among the runs. Without one, the growth of a cluster is
forecast, and no day. A file of the history that cannot be read is named and left out. The job fails at the end if a
run's snapshot could not be read, or if a cluster has no forecast; where a worker dies over one, all others have theirs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from rebalance_lib.artifacts import SNAPSHOT, Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError, error_text
from rebalance_lib.history import clusters, files_between
from rebalance_lib.history.places import FORECASTS, Question, finish, forecast_place
from rebalance_lib.history.usage import LOG_DIRS, USAGE, read_log_dirs, read_usage
from rebalance_lib.jobs.command_line import JobLog, json_object, parser_for, run_program
from rebalance_lib.jobs.isolation import in_halves
from rebalance_lib.jobs.mapping import read_each
from rebalance_lib.jobs.session import session
from rebalance_lib.report.capacity import capacity_text
from rebalance_lib.topology import Capacities

log = JobLog("forecast_capacity")
DAYS_OF_A_TASK = 7
TABLE, TEXT, FACTS = "capacity.parquet", "capacity.txt", "capacity.json"
_ERROR = pa.field("error", pa.string())
_USAGE = pa.schema([pa.field("cluster", pa.string()), *(one.with_nullable(True) for one in USAGE), _ERROR])
_LOG_DIRS = pa.schema([*(one.with_nullable(True) for one in LOG_DIRS), _ERROR])
# Each place as a log dir, as part of its broker, and as part of its cluster.
_PLACES = "GROUPING SETS ((cluster, broker, log_dir{0}), (cluster, broker{0}), (cluster{0}))"
_SCOPE = "CASE WHEN grouping(broker) = 1 THEN 'cluster' WHEN grouping(log_dir) = 1 THEN 'broker' ELSE 'log_dir' END"
_SAMPLES = f"""
    SELECT cluster, {_SCOPE} AS scope, broker, log_dir, taken_at, sum(bytes) AS bytes, sum(replicas) AS replicas,
        sum(unknown) AS unknown
    FROM {{usage}} WHERE error IS NULL GROUP BY {_PLACES.format(", taken_at")}"""  # noqa: S608 - constants alone
# Runs may name the same snapshot twice, or have copies of it.
_CAPACITIES = f"""
    SELECT cluster, {_SCOPE} AS scope, broker, log_dir, count(DISTINCT broker) AS brokers,
        if(count(*) = count(total_bytes), sum(total_bytes), NULL) AS total_bytes, sum(other_bytes) AS other_bytes
    FROM (SELECT DISTINCT *, max(taken_at) OVER (PARTITION BY cluster) AS newest FROM {{log_dirs}} WHERE error IS NULL)
    WHERE taken_at = newest GROUP BY {_PLACES.format("")}"""  # noqa: S608 - constants alone
_JOINED = """
    SELECT s.*, c.total_bytes, c.other_bytes, c.brokers FROM {samples} AS s LEFT JOIN {capacities} AS c
    ON s.cluster = c.cluster AND s.scope = c.scope AND s.broker <=> c.broker AND s.log_dir <=> c.log_dir
    WHERE s.scope <> 'log_dir' OR s.log_dir IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class Found:
    """The forecasts in `FORECASTS`, a line for each file and snapshot that was not read, and why clusters failed."""

    forecasts: pa.Table
    unread_files: tuple[str, ...] = ()
    unread_runs: tuple[str, ...] = ()
    failed_clusters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the sizes and the capacities are, and which clusters and days count."""

    history: Artifacts
    cluster_ids: tuple[str, ...]
    start: datetime
    end: datetime
    runs: tuple[str, ...] = ()
    given: Capacities | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; errors are one clear line each and exit code 1, and wrong input costs no Spark session."""
    options = _parse(arguments)
    try:
        sources, question = _sources(options), Question(options.fill, options.more_brokers)
    except RebalanceError as error:
        return log.fail(str(error))
    try:
        with session("kafka-rebalance forecast_capacity") as spark:
            found = forecast_capacity(spark, sources, question)
        write(Artifacts(options.out), found, question)
    except RebalanceError as error:
        return log.fail(str(error))
    print(capacity_text(found.forecasts.to_pylist(), question.fill, question.more_brokers))
    log(*(f"left out: {line}" for line in found.unread_files))
    missing = sorted({*sources.cluster_ids} - {*found.forecasts["cluster"].to_pylist()} - found.failed_clusters.keys())
    failed = [f"cluster {one}: {reason}" for one, reason in found.failed_clusters.items()]
    lines = [*found.unread_runs, *failed, *(f"cluster {one} has no sizes in these days" for one in missing)]
    return log.fail(*lines) if lines else 0


def forecast_capacity(spark: SparkSession, sources: Sources, question: Question) -> Found:
    """Forecast every place of these clusters; what goes wrong with a cluster or a run stops no other."""

    def read(runs: Sequence[str]) -> pa.Table:
        return read_each(spark, runs, _log_dirs(sources), _LOG_DIRS).toArrow().cast(_LOG_DIRS)

    tables, of_runs = in_halves(read, sources.runs)
    log_dirs = pa.concat_tables([_LOG_DIRS.empty_table(), *tables])  # a row for each log dir
    unread = [line for line in log_dirs["error"].to_pylist() if line is not None]
    unread += [f"{run}: {reason}" for run, reason in zip(sources.runs, of_runs, strict=True) if reason]

    def forecast(cluster_ids: Sequence[str]) -> tuple[pa.Table, list[str]]:
        return _forecast(spark, replace(sources, cluster_ids=tuple(cluster_ids)), log_dirs, question)

    answers, of_clusters = in_halves(forecast, sources.cluster_ids)
    return Found(
        finish(pa.concat_tables([FORECASTS.empty_table(), *(rows for rows, _ in answers)])),
        tuple(sorted(line for _, lines in answers for line in lines)),
        tuple(sorted(unread)),
        {one: reason for one, reason in zip(sources.cluster_ids, of_clusters, strict=True) if reason},
    )


def _forecast(
    spark: SparkSession, sources: Sources, log_dirs: pa.Table, question: Question
) -> tuple[pa.Table, list[str]]:
    """The rows of these clusters' places, and a line for each file that could not be read."""
    usage = read_each(spark, _usage_tasks(sources), _usage(sources), _USAGE)
    usage.persist(StorageLevel.MEMORY_AND_DISK)  # asked twice: for what went wrong, and for the rest
    try:
        errors = usage.where("error IS NOT NULL").select("error").collect()
        joined = spark.sql(
            _JOINED,
            samples=spark.sql(_SAMPLES, usage=usage),
            capacities=spark.sql(_CAPACITIES, log_dirs=spark.createDataFrame(log_dirs, from_arrow_schema(_LOG_DIRS))),
        )
        places = joined.groupBy("cluster", "scope", "broker", "log_dir")
        rows = places.applyInArrow(_forecasting(question), from_arrow_schema(FORECASTS)).toArrow()
    finally:
        usage.unpersist()
    return rows.cast(FORECASTS), [row.error for row in errors]


def write(out: Artifacts, found: Found, question: Question) -> None:
    """Leave the table for machines, the text for people, and what was asked and not read."""
    out.write_table(TABLE, found.forecasts)
    out.write_text(TEXT, capacity_text(found.forecasts.to_pylist(), question.fill, question.more_brokers) + "\n")
    facts = {"fill": question.fill, "more_brokers": question.more_brokers}
    unread = {"unread_files": found.unread_files, "unread_runs": found.unread_runs}
    out.write_json(FACTS, {**facts, **unread, "failed_clusters": found.failed_clusters})


def _usage_tasks(sources: Sources) -> list[tuple[str, datetime, datetime]]:
    """By cluster, the window in parts of some days: workers list the files themselves."""
    found = []
    for cluster_id in sources.cluster_ids:
        begin = sources.start
        while begin < sources.end:
            end = min(begin + timedelta(days=DAYS_OF_A_TASK), sources.end)
            found.append((cluster_id, begin, end))
            begin = end
    return found


def _usage(sources: Sources) -> Callable[[tuple[str, datetime, datetime]], Iterator[pa.Table]]:
    history = sources.history

    def read(task: tuple[str, datetime, datetime]) -> Iterator[pa.Table]:
        cluster_id, start, end = task
        moments: dict[str, list[datetime]] = {}  # by file: that of a day is listed once for each of its moments
        try:
            for file in files_between(history, cluster_id, start, end):
                moments.setdefault(file.name, []).append(file.taken_at)
        except Exception as error:  # as below
            yield _failed(_USAGE, error, f"{history.uri}, cluster {cluster_id}")
            return
        for name, wanted in moments.items():
            try:
                table = read_usage(history, name, wanted)
                labels = pa.repeat(pa.scalar(cluster_id), table.num_rows)
                table = table.add_column(0, "cluster", labels).append_column(
                    _ERROR, pa.nulls(table.num_rows, pa.string())
                )
            except Exception as error:  # whatever it is, the other files and clusters go on
                table = _failed(_USAGE, error, f"{history.uri}/{name}")
            yield table.cast(_USAGE)

    return read


def _log_dirs(sources: Sources) -> Callable[[str], Iterator[pa.Table]]:
    given = sources.given

    def read(run: str) -> Iterator[pa.Table]:
        try:
            table = read_log_dirs(Artifacts(run) / SNAPSHOT, given)
            table = table.append_column(_ERROR, pa.nulls(table.num_rows, pa.string()))
        except Exception as error:  # whatever it is, the other clusters go on
            table = _failed(_LOG_DIRS, error, run)
        yield table.cast(_LOG_DIRS)

    return read


def _forecasting(question: Question) -> Callable[[pa.Table], pa.Table]:
    def row(samples: pa.Table) -> pa.Table:
        try:
            return forecast_place(samples, question)
        except Exception as error:  # whatever it is, the other places go on
            first = samples.slice(0, 1).select(["cluster", "scope", "broker", "log_dir", "taken_at"]).to_pylist()[0]
            note = error_text(error)
            return pa.Table.from_pylist([{**first, "last_sample": first["taken_at"], "note": note}], schema=FORECASTS)

    return row


def _failed(schema: pa.Schema, error: Exception, where: str) -> pa.Table:
    line = str(error) if isinstance(error, RebalanceError) else f"{where}: {error_text(error)}"
    return pa.Table.from_pylist([{"error": line}], schema=schema)


def _sources(options: argparse.Namespace) -> Sources:
    history = Artifacts(options.history)
    cluster_ids = clusters(history, options.cluster)
    if not cluster_ids:
        raise InvalidInputError(f"the history at {history.uri} has no cluster: is it the right directory?")
    if not 0 < options.days <= 3650:
        raise InvalidInputError(f"--days is {options.days}: give more than 0, up to 3650")
    end = options.until or datetime.now(UTC)
    return Sources(
        history=history,
        cluster_ids=tuple(cluster_ids),
        start=end - timedelta(days=options.days),
        end=end,
        runs=tuple(dict.fromkeys(options.run)),
        given=None if options.capacities is None else Capacities.from_dict(options.capacities),
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("--history", required=True, help="URI of the history of snapshots")
    add("--out", required=True, help="URI of the directory for the forecast")
    add(
        "--run", action="append", default=[], help="URI of a run's artifacts, for its snapshot's capacities; repeatable"
    )
    add("--cluster", action="append", help="id of a cluster; repeatable; default all in the history")
    add("--days", type=float, default=60.0, help="days of history to look at; default 60")
    add("--until", type=_moment, help="the end of these days, such as 2026-11-16T00:00:00+00:00; default now")
    add("--fill", type=float, default=0.9, help="the part of a disk that may be used; default 0.9")
    add("--more-brokers", type=int, default=0, help="also say what so many more brokers would postpone; default 0")
    add("--capacities", type=json_object, help='what brokers can hold, as JSON: {"default": {"disk": 16000000000000}}')
    return parser.parse_args(arguments)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: give one such as 2026-11-16T00:00:00+00:00") from error
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is without a time zone: add one, such as +00:00")
    return moment


if __name__ == "__main__":
    run_program(main)
