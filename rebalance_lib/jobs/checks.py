"""The last word before a plan appears: what was written, judged by Spark SQL against the snapshot.

The files are read as any program would read them, for all runs of a batch at once, and every statement of `invariants`
is asked of them. What answers is a violation, and its run is not published.

    with Checks(spark, request) as checks:
        checks.violations([Staged(0, run / "snapshot", staged), ...])
    {1: ["full: rack-spread: orders-0: ..."]}

What several views are built on is persisted meanwhile; Spark works it out again should an executor be lost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from rebalance_lib.jobs import files
from rebalance_lib.jobs.files import CHECKED, KINDS, Staged
from rebalance_lib.jobs.invariants import broken_views, messages, rules_for
from rebalance_lib.jobs.mapping import Mapper, map_rows
from rebalance_lib.jobs.patterns import regex
from rebalance_lib.jobs.rows import CHUNKS
from rebalance_lib.jobs.views import BROKER_SETS, OF_CHANGES, OF_CLUSTERS, ONE_SET, PERSISTED
from rebalance_lib.planner import Request


class Checks:
    """The rules of one request over the clusters of a batch; the views are temporary ones of the session."""

    def __init__(self, spark: SparkSession, request: Request, *, broker_sets: bool = True) -> None:
        self._spark = spark
        self._request = request
        self._homes = BROKER_SETS if broker_sets else ONE_SET
        self._pieces = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        self._persisted: list[DataFrame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in reversed(self._persisted):
            frame.unpersist()

    def warm_up(self) -> None:
        """Ask everything of no run at all: Spark has loaded and compiled what it needs when there are some."""
        self._violations(map_rows(self._spark.range(0, 0, 1, 1), files.whole_clusters([], self._request), CHECKED))

    def violations(self, staged: Sequence[Staged]) -> dict[int, list[str]]:
        """By run, a line for each invariant that a candidate breaks, with the first place where it does."""
        return self._violations(self._read(staged))

    def _violations(self, rows: DataFrame) -> dict[int, list[str]]:
        # By a shuffle: to coalesce them would make one task of all that read.
        checked = self._persist(rows.repartition(self._pieces))
        for name in KINDS:
            checked.where(f"{name} IS NOT NULL").select("run", f"{name}.*").createOrReplaceTempView(name)
        for views in (self._homes, OF_CLUSTERS, OF_CHANGES):
            self._create(views)
        rules = rules_for(self._request)
        broken = {row.view for row in self._sql(broken_views(rules)).collect()}
        found = self._sql(messages(rules, sorted(broken))).collect() if broken else []
        listed = defaultdict(list)
        for row in found:
            more = f" and {row.places - 1} more" if row.places > 1 else ""
            listed[row.run].append(f"{row.candidate}: {row.name}: {row.first}{more}")
        return dict(listed)

    def _read(self, staged: Sequence[Staged]) -> DataFrame:
        """Everything that is asked of these runs, as rows of CHECKED."""
        small = [one for one in staged if one.shards == 1]
        large = [one for one in staged if one.shards > 1]
        frames = []
        if small:
            frames.append(self._each(len(small), files.whole_clusters(small, self._request)))
        if large:
            frames.append(self._each(len(large), files.documents(large)))
        for one in large:
            places = [*range(one.row_groups), *one.candidates]
            rows = map_rows(self._spark.range(0, len(places), 1, len(places)), files.parts(one, places), CHUNKS)
            rows = rows.repartitionById(one.shards, "group")
            frames.append(map_rows(rows, files.shards(one, self._request), CHECKED))
        all_rows = frames[0]
        for frame in frames[1:]:
            all_rows = all_rows.unionAll(frame)
        return all_rows

    def _each(self, count: int, read: Mapper) -> DataFrame:
        """What the workers read, each place in a task of its own."""
        return map_rows(self._spark.range(0, count, 1, count), read, CHECKED)

    def _create(self, views: Mapping[str, str]) -> None:
        """Make views, in their order; what is persisted is a table to those that build on it, not planned again."""
        for name, text in views.items():
            frame = self._sql(text)
            (self._persist(frame) if name in PERSISTED else frame).createOrReplaceTempView(name)

    def _sql(self, text: str) -> DataFrame:
        return self._spark.sql(_statement(text, self._request))

    def _persist(self, frame: DataFrame) -> DataFrame:
        """The rows, worked out once; few of them in one piece, so that nothing built on them has to be shuffled."""
        self._persisted.append(frame.coalesce(self._pieces).persist())
        return self._persisted[-1]


def _statement(text: str, request: Request) -> str:
    """A text with what the request says in place of ``:mode``, ``:brokers`` and so on.

    Spark's own parameters know neither empty lists nor what type a null has.
    """
    return re.sub(r":([a-z_]+)", lambda found: _literal(found[1], getattr(request, found[1])), text)


def _literal(name: str, value: Any) -> str:
    if name in {"topics", "excluded_topics", "log_dirs"}:
        # As bytes, so that nothing in a pattern can be taken for SQL.
        texts = value if name == "log_dirs" else map(regex, value)
        listed = ", ".join(f"CAST(X'{one.encode().hex()}' AS STRING)" for one in texts)
        return f"CAST(array({listed}) AS ARRAY<STRING>)"
    if isinstance(value, tuple):
        return f"CAST(array({', '.join(map(str, map(int, value)))}) AS ARRAY<INT>)"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, float):
        return f"{value!r}D"
    return f"CAST({'NULL' if value is None else int(value)} AS {'BOOLEAN' if isinstance(value, bool) else 'BIGINT'})"
