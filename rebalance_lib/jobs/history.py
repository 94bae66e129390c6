"""The load of every partition over a window, on Spark.

`rebalance_lib.history.loads` says what each column means, exactly and with an example. Here the work is only cut up:
each cluster's partitions into shares, each share a task. A task reads the columns and row groups it needs from the
history itself, so that rows never pass through the JVM, nothing is shuffled, and the result needs no merging. Clusters
and days outside the window are not even listed.

    loads = partition_loads(spark, "file:///shared/kafka-rebalance/history", None, yesterday, now)
    loads.where("write_rate_p95 > 1e6").show()

`group_reads` is the same for what each consumer group reads; `rebalance_lib.history.reads` says what its columns mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import (
    GROUP_READS,
    LOADS,
    Share,
    clusters,
    files_between,
    read_group_reads,
    read_loads,
    shares_of,
)
from rebalance_lib.jobs.mapping import read_each
from rebalance_lib.jobs.session import parallelism

WINDOW = pa.field("window", pa.int64(), nullable=False)
Read = Callable[[Artifacts, Share], pa.Table]


class Window(NamedTuple):
    """A cluster, and the time of interest: its start belongs to it, its end does not."""

    cluster_id: str
    start: datetime
    end: datetime


def partition_loads(
    spark: SparkSession,
    history_uri: str,
    cluster_ids: Sequence[str] | None,
    window_start: datetime,
    window_end: datetime,
) -> DataFrame:
    """One row per partition with a sample in the window, in the columns of `LOADS`; rates are null where unknown.

    Args:
        spark: The session.
        history_uri: The directory of the history; executors must reach it too.
        cluster_ids: The clusters of interest; None for all in the history.
        window_start: The window's start, with a time zone; it belongs to the window.
        window_end: The window's end, with a time zone; it does not.

    Raises:
        InvalidInputError: A cluster asked for is not in the history, or the window is empty.
    """
    windows = _windows(history_uri, cluster_ids, window_start, window_end)
    return window_loads(spark, history_uri, windows).drop("window")


def group_reads(
    spark: SparkSession,
    history_uri: str,
    cluster_ids: Sequence[str] | None,
    window_start: datetime,
    window_end: datetime,
) -> DataFrame:
    """One row per partition and consumer group that committed for it, in the columns of `GROUP_READS`.

    All else is as in `partition_loads`.
    """
    windows = _windows(history_uri, cluster_ids, window_start, window_end)
    return _by_share(spark, history_uri, windows, read_group_reads, GROUP_READS).drop("window")


def _windows(
    history_uri: str, cluster_ids: Sequence[str] | None, window_start: datetime, window_end: datetime
) -> list[Window]:
    """The same window of each of these clusters, or of all."""
    chosen = clusters(Artifacts(history_uri), cluster_ids)
    return [Window(cluster_id, window_start, window_end) for cluster_id in chosen]


def window_loads(spark: SparkSession, history_uri: str, windows: Sequence[Window]) -> DataFrame:
    """The loads of each window, as `partition_loads`, with the window's number in front; clusters must be known."""
    return _by_share(spark, history_uri, windows, read_loads, LOADS)


def _by_share(
    spark: SparkSession, history_uri: str, windows: Sequence[Window], read: Read, schema: pa.Schema
) -> DataFrame:
    """What is read of each share in a task of its own, with the window's number in front."""
    history = Artifacts(history_uri)
    tasks = parallelism(spark)
    shares = [
        (number, share)
        for number, (cluster_id, start, end) in enumerate(windows)
        for share in shares_of(history, cluster_id, files_between(history, cluster_id, start, end), tasks)
    ]

    def read_share(numbered: tuple[int, Share]) -> Iterator[pa.Table]:
        number, share = numbered
        found = read(history, share)
        yield found.add_column(0, WINDOW, pa.repeat(pa.scalar(number, WINDOW.type), found.num_rows))

    return read_each(spark, shares, read_share, pa.schema([WINDOW, *schema]))
