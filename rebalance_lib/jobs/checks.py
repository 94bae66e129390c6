"""The last word before a plan appears: what was written, judged by Spark SQL against the snapshot.

The files are read as any program would read them, for all runs of the job at once, and every statement of `invariants`
is asked of them. What answers is a violation, and its run is not published.

    load_snapshots(spark, {0: run, 1: other}, request)
    violations(spark, {0: Written(...), 1: Written(...)}, request)   ->   {1: ["full: rack-spread: orders-0: ..."]}

The snapshots are read apart, since that can be done before anything is written.
"""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType

from rebalance_lib.artifacts import SNAPSHOT, Artifacts
from rebalance_lib.jobs.files import DIGESTS_DDL, ENTRIES_DDL, Reader, digests, entries, tables
from rebalance_lib.jobs.invariants import broken_views, messages
from rebalance_lib.jobs.views import (
    HOMES,
    KEPT,
    NO_HOMES,
    ODD,
    OF_CHANGES,
    OF_SNAPSHOTS,
    PLACED,
    PLACED_WITH_GAPS,
)
from rebalance_lib.planner import Request

_REPLICAS = (
    "topic string, partition int, position smallint, broker int, leader boolean, adding boolean, internal boolean, "
    "size_bytes bigint, log_dir string"
)
_BROKERS = (
    "broker int, rack string, alive boolean, cordoned boolean, broker_set string, broker_set_topics array<string>, "
    "log_dirs array<struct<path: string, total_bytes: bigint, usable_bytes: bigint>>"
)
_FIGURES = "struct<partitions_changed: bigint, replicas_moved: bigint, bytes_moved: bigint, leaders_moved: bigint>"
_LOADS = "struct<bytes: bigint, replicas: bigint, leaders: bigint>"
_SUMMARY = (
    f"digest string, recommended string, candidates map<string, struct<digest: string, figures: {_FIGURES}>>, "
    f"brokers array<struct<broker: int, after: {_LOADS}>>"
)


@dataclass(frozen=True, slots=True)
class Written:
    """The directory where the files of a run wait to be published."""

    staging: Artifacts

    @property
    def candidates(self) -> list[str]:
        """The names of the plans that were written."""
        return (self.staging / "candidates").directories()

    def plan(self, candidate: str) -> Artifacts:
        """The directory of a candidate's plan."""
        return self.staging / "candidates" / candidate


def violations(spark: SparkSession, written: Mapping[int, Written], request: Request) -> dict[int, list[str]]:
    """By run, a line for each invariant that a candidate breaks, with the first place where it does."""
    _load_results(spark, written)
    _create(spark, OF_CHANGES, request)
    broken = {row.view for row in spark.sql(_statement(broken_views(), request)).collect()}
    found = spark.sql(_statement(messages(broken), request)).collect() if broken else []
    listed = defaultdict(list)
    for row in found:
        more = f" and {row.places - 1} more" if row.places > 1 else ""
        listed[row.run].append(f"{row.candidate}: {row.name}: {row.first}{more}")
    return dict(listed)


def _kept(frame: DataFrame) -> DataFrame:
    """The rows, worked out once; few of them in one piece, so that nothing built on them has to be shuffled."""
    spark = frame.sparkSession
    return frame.coalesce(int(spark.conf.get("spark.sql.shuffle.partitions") or 1)).localCheckpoint()


def _create(spark: SparkSession, views: Mapping[str, str], request: Request) -> None:
    """Make views, in their order."""
    for name, text in views.items():
        frame = spark.sql(_statement(text, request))
        # A checkpoint also cuts off how a view came about: Spark would plan all of it again for each that builds on it.
        (_kept(frame) if name in KEPT else frame).createOrReplaceTempView(name)


def load_snapshots(spark: SparkSession, runs: Mapping[int, Artifacts], request: Request) -> None:
    """Make views of the clusters as they are, each row with the number of its run."""
    snapshots = {number: run / SNAPSHOT for number, run in runs.items()}
    _parquet(spark, _REPLICAS, snapshots, "replicas.parquet").createOrReplaceTempView("replicas")
    _parquet(spark, _BROKERS, snapshots, "brokers.parquet").createOrReplaceTempView("registered")
    odd = spark.sql(ODD).collect()
    gaps = any(row.broker_set is None for row in odd)
    sets = {(row.run, row.broker_set): row.patterns or [] for row in odd if row.broker_set is not None}
    named = [(run, name, _regex(pattern)) for (run, name), patterns in sets.items() for pattern in patterns]
    columns = {name: [row[at] for row in named] for at, name in enumerate(("run", "broker_set", "pattern"))}
    patterns = pa.table(
        columns, pa.schema([("run", pa.int64()), ("broker_set", pa.string()), ("pattern", pa.string())])
    )
    spark.createDataFrame(patterns).createOrReplaceTempView("set_patterns")
    views = {"placed": PLACED_WITH_GAPS if gaps else PLACED, "homes": HOMES if sets else NO_HOMES, **OF_SNAPSHOTS}
    _create(spark, views, request)


def _load_results(spark: SparkSession, written: Mapping[int, Written]) -> None:
    """Make views of all files that were written, each row with the number of its run."""
    staged = {number: one.staging for number, one in written.items()}
    moves = "from_broker int, to_broker int, bytes bigint"
    copied = _parquet(spark, moves, staged, "moves.parquet").where("NOT from_broker <=> to_broker")
    copied.createOrReplaceTempView("moves")
    _load_summaries(spark, staged)
    loads = [f"{name}_after" for name in ("bytes", "replicas", "leaders")]
    schema = ", ".join(["broker int", *(f"{name} bigint" for name in loads)])
    after = _parquet(spark, schema, staged, "brokers_before_after.parquet").join(spark.table("recommended"), "run")
    after = after.selectExpr("run", "candidate", "broker", *(f"{name} AS {name[:-6]}" for name in loads))
    spark.table("summary_brokers").unionByName(after).createOrReplaceTempView("told_brokers")
    _load_plans(spark, written)


def _parquet(spark: SparkSession, schema: str, directories: Mapping[int, Artifacts], name: str) -> DataFrame:
    """A file that all runs have: by Spark's own reader, which knows files, or by the workers, who know all storages."""
    if not all(directory.is_local for directory in directories.values()):
        columns = to_arrow_schema(DataType.fromDDL(schema))
        found = [(number, directory.uri) for number, directory in directories.items()]
        # Read once: several views ask for it, and Spark would go to the storage again for each.
        return _of_each(spark, len(found), tables(found, name, columns), f"run bigint, {schema}").localCheckpoint()
    runs = {_path(f"{directory.uri}/{name}"): number for number, directory in directories.items()}
    frame = spark.read.schema(schema).parquet(*(f"{directory.uri}/{name}" for directory in directories.values()))
    files = frame.inputFiles()
    labels = pa.table({"file": files, "run": [runs[_path(unquote(file))] for file in files]})
    labelled = frame.withColumn("file", f.input_file_name())
    return labelled.join(f.broadcast(spark.createDataFrame(labels)), "file").drop("file")


def _of_each(spark: SparkSession, count: int, read: Reader, schema: str) -> DataFrame:
    """What the workers read, each file in a task of its own."""
    return spark.range(0, count, 1, max(1, count)).mapInArrow(read, schema)


def _load_summaries(spark: SparkSession, staged: Mapping[int, Artifacts]) -> None:
    texts = pa.table({"run": list(staged), "text": [one.read_text("summary.json") for one in staged.values()]})
    read = spark.createDataFrame(texts).withColumn("summary", f.from_json("text", DataType.fromDDL(_SUMMARY)))
    summaries = _kept(read.selectExpr("run", "summary.*"))
    told = summaries.selectExpr("run", "explode(candidates) AS (candidate, told)")
    told.selectExpr("run", "candidate", "told.digest", "told.figures.*").createOrReplaceTempView("told")
    summaries.selectExpr("run", "recommended AS candidate", "digest").createOrReplaceTempView("recommended")
    brokers = summaries.selectExpr("run", "recommended AS candidate", "inline(brokers)")
    brokers.selectExpr("run", "candidate", "broker", "after.*").createOrReplaceTempView("summary_brokers")


def _load_plans(spark: SparkSession, written: Mapping[int, Written]) -> None:
    """The entries of all plans; what is not one is a violation."""
    plans = [(number, name, one.plan(name).uri) for number, one in written.items() for name in one.candidates]
    rows = _of_each(spark, len(plans), entries(plans), ENTRIES_DDL)
    listed = _kept(rows.selectExpr("monotonically_increasing_id() AS entry", "*"))
    listed.where("line IS NULL").drop("line").createOrReplaceTempView("entries")
    listed.where("line IS NOT NULL").select("run", "candidate", "line").createOrReplaceTempView("unreadable")
    chosen = [(number, None, one.staging.uri) for number, one in written.items()]
    found = _kept(_of_each(spark, len(plans) + len(chosen), digests([*plans, *chosen]), DIGESTS_DDL))
    found.createOrReplaceTempView("found")
    # The plan at the top has no candidate's name: it must be the one that is recommended.
    spark.sql(
        "SELECT run, coalesce(found.candidate, recommended.candidate) AS candidate, found.found "
        "FROM found LEFT JOIN recommended USING (run)"
    ).createOrReplaceTempView("files")


def _path(uri: str) -> str:
    """A URI without its scheme: Spark and fsspec write it in different ways."""
    return re.sub(r"^[a-z0-9]+:/*", "", uri)


def _statement(text: str, request: Request) -> str:
    """A text with what the request says in place of ``:mode``, ``:brokers`` and so on.

    Spark's own parameters know neither empty lists nor what type a null has.
    """
    return re.sub(r":([a-z_]+)", lambda found: _literal(found[1], getattr(request, found[1])), text)


def _literal(name: str, value: Any) -> str:
    if name in {"topics", "excluded_topics", "log_dirs"}:
        # As bytes, so that nothing in a pattern can be taken for SQL.
        texts = value if name == "log_dirs" else map(_regex, value)
        listed = ", ".join(f"CAST(X'{one.encode().hex()}' AS STRING)" for one in texts)
        return f"CAST(array({listed}) AS ARRAY<STRING>)"
    if isinstance(value, tuple):
        return f"CAST(array({', '.join(map(str, map(int, value)))}) AS ARRAY<INT>)"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, float):
        return f"{value!r}D"
    return f"CAST({'NULL' if value is None else int(value)} AS {'BOOLEAN' if isinstance(value, bool) else 'BIGINT'})"


def _regex(pattern: str) -> str:
    """A name, or a pattern such as ``orders-*``, for RLIKE, which looks for it anywhere."""
    if any(sign in pattern for sign in "*?["):
        return f"^{fnmatch.translate(pattern)}"
    return f"^{re.escape(pattern)}$"
