"""The last word before a plan appears: what was written, judged by Spark SQL against the snapshot.

The files are read as any program would read them, for all runs of the job at once, and every statement of `invariants`
is asked of them. What answers is a violation, and its run is not published.

    with Checks(spark, request) as checks:
        checks.violations({0: run / "snapshot", 1: ...}, {0: staged, 1: ...})
    {1: ["full: rack-spread: orders-0: ..."]}

What several views are built on is persisted meanwhile; Spark works it out again should an executor be lost.
"""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from rebalance_lib.jobs.files import ENTRIES, SUMMARIES, Parts, Reader, Staged, entries, summaries, tables
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
_MOVES = "from_broker int, to_broker int, bytes bigint"
_FIGURES = "struct<partitions_changed: bigint, replicas_moved: bigint, bytes_moved: bigint, leaders_moved: bigint>"
_LOADS = "struct<bytes: bigint, replicas: bigint, leaders: bigint>"
_SUMMARY = (
    f"digest string, recommended string, candidates map<string, struct<digest: string, figures: {_FIGURES}>>, "
    f"brokers array<struct<broker: int, after: {_LOADS}>>"
)
_PATTERNS = pa.schema([("run", pa.int64()), ("broker_set", pa.string()), ("pattern", pa.string())])


class Checks:
    """The rules of one request over the clusters of a batch; the views are temporary ones of the session."""

    def __init__(self, spark: SparkSession, request: Request) -> None:
        self._spark = spark
        self._request = request
        self._persisted: list[DataFrame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in reversed(self._persisted):
            frame.unpersist()

    def violations(self, snapshots: Parts, staged: Staged) -> dict[int, list[str]]:
        """By run, a line for each invariant that a candidate breaks, with the first place where it does.

        Args: `snapshots` has a run, the directory of its snapshot and a row group for each part of its replicas;
        `staged` has each run and the directory where its files wait to be published.
        """
        self._load_snapshots(snapshots)
        self._load_results(staged)
        self._create(OF_CHANGES)
        broken = {row.view for row in self._sql(broken_views()).collect()}
        found = self._sql(messages(broken)).collect() if broken else []
        listed = defaultdict(list)
        for row in found:
            more = f" and {row.places - 1} more" if row.places > 1 else ""
            listed[row.run].append(f"{row.candidate}: {row.name}: {row.first}{more}")
        return dict(listed)

    def _load_snapshots(self, snapshots: Parts) -> None:
        """Make views of the clusters as they are, each row with the number of its run."""
        self._persist(self._read(snapshots, "replicas.parquet", _REPLICAS)).createOrReplaceTempView("replicas")
        first = [part for part in snapshots if not part[-1]]
        self._persist(self._read(first, "brokers.parquet", _BROKERS)).createOrReplaceTempView("registered")
        odd = self._sql(ODD).collect()
        gaps = any(row.broker_set is None for row in odd)
        sets = {(row.run, row.broker_set): row.patterns or [] for row in odd if row.broker_set is not None}
        named = [(run, name, _regex(pattern)) for (run, name), patterns in sets.items() for pattern in patterns]
        columns = {name: [row[at] for row in named] for at, name in enumerate(_PATTERNS.names)}
        self._spark.createDataFrame(pa.table(columns, _PATTERNS)).createOrReplaceTempView("set_patterns")
        self._create({"placed": PLACED_WITH_GAPS if gaps else PLACED, "homes": HOMES if sets else NO_HOMES})
        self._create(OF_SNAPSHOTS)

    def _load_results(self, staged: Staged) -> None:
        """Make views of all files that were written, each row with the number of its run."""
        files = [(run, directory, 0) for run, directory in staged]
        moves = self._read(files, "moves.parquet", _MOVES)
        moves.where("NOT from_broker <=> to_broker").createOrReplaceTempView("moves")
        self._load_summaries(staged)
        loads = [f"{name}_after" for name in ("bytes", "replicas", "leaders")]
        schema = ", ".join(["broker int", *(f"{name} bigint" for name in loads)])
        after = self._read(files, "brokers_before_after.parquet", schema).join(self._spark.table("recommended"), "run")
        after = after.selectExpr("run", "candidate", "broker", *(f"{name} AS {name[:-6]}" for name in loads))
        self._spark.table("summary_brokers").unionByName(after).createOrReplaceTempView("told_brokers")
        self._load_plans(staged)

    def _load_summaries(self, staged: Staged) -> None:
        texts = self._each(staged, summaries(staged), SUMMARIES)
        read = texts.withColumn("summary", f.from_json("text", DataType.fromDDL(_SUMMARY)))
        found = self._persist(read.selectExpr("run", "summary.*"))
        told = found.selectExpr("run", "explode(candidates) AS (candidate, told)")
        told.selectExpr("run", "candidate", "told.digest", "told.figures.*").createOrReplaceTempView("told")
        found.selectExpr("run", "recommended AS candidate", "digest").createOrReplaceTempView("recommended")
        brokers = found.selectExpr("run", "recommended AS candidate", "inline(brokers)")
        brokers.selectExpr("run", "candidate", "broker", "after.*").createOrReplaceTempView("summary_brokers")

    def _load_plans(self, staged: Staged) -> None:
        """The entries of all plans; what is not one is a violation."""
        rows = self._each(staged, entries(staged), ENTRIES)
        listed = self._persist(rows.selectExpr("monotonically_increasing_id() AS entry", "*"))
        listed.where("line IS NULL AND digest IS NULL").createOrReplaceTempView("entries")
        listed.where("line IS NOT NULL").select("run", "candidate", "line").createOrReplaceTempView("unreadable")
        listed.where("digest IS NOT NULL").select("run", "candidate", "digest").createOrReplaceTempView("found")
        # The plan at the top has no candidate's name: it must be the one that is recommended.
        self._sql(
            "SELECT run, coalesce(found.candidate, recommended.candidate) AS candidate, found.digest AS found "
            "FROM found LEFT JOIN recommended USING (run)"
        ).createOrReplaceTempView("files")

    def _create(self, views: Mapping[str, str]) -> None:
        """Make views, in their order; what is persisted is a table to those that build on it, not planned again."""
        for name, text in views.items():
            frame = self._sql(text)
            (self._persist(frame) if name in KEPT else frame).createOrReplaceTempView(name)

    def _sql(self, text: str) -> DataFrame:
        return self._spark.sql(_statement(text, self._request))

    def _persist(self, frame: DataFrame) -> DataFrame:
        """The rows, worked out once; few of them in one piece, so that nothing built on them has to be shuffled."""
        self._persisted.append(frame.coalesce(int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1)).persist())
        return self._persisted[-1]

    def _read(self, parts: Parts, name: str, columns: str) -> DataFrame:
        """Some columns of a Parquet file that all runs have; workers read it, who know all storages."""
        schema = f"run bigint, {columns}"
        return self._each(parts, tables(parts, name, schema), schema)

    def _each(self, places: Sequence[object], read: Reader, schema: str) -> DataFrame:
        """What the workers read, each place in a task of its own."""
        return self._spark.range(0, len(places), 1, max(1, len(places))).mapInArrow(read, schema)


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
