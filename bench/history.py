"""The loads of 50 million rows of history, beside the plainest aggregate that Spark can run over the same files.

    python -m bench.history [--rows 50000000] [--replication-factor 3]

A history is generated into a temporary directory, and removed at the end: snapshots an hour apart, partitions that are
written at rates of their own, retention, and now and then a leader that changes. Both sides then run in one Spark
session, in turn, and the best time of each counts: *plain* is ``groupBy(cluster, topic, partition)`` with the largest
and the mean size, *loads* is `partition_loads` with its rates and percentiles. Both must find the same number of
partitions before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import HISTORY, append_sample
from rebalance_lib.jobs.history import partition_loads

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

START = datetime(2026, 1, 1, tzinfo=UTC)
WITHOUT_GROUPS = HISTORY.remove(HISTORY.get_field_index("committed"))  # as the plain aggregate, which reads none
SNAPSHOT_ROWS = 100_000
PARTITIONS_OF_A_TOPIC = 50
BYTES_OF_A_ROW = 40  # on disk, more than is seen
RETAINED = 2_000_000  # records
SNAPSHOTS_APART = timedelta(hours=1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the loads of a history beside a plain Spark aggregate.")
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()

    snapshots = max(2, options.rows // SNAPSHOT_ROWS)
    needed, free = options.rows * BYTES_OF_A_ROW, shutil.disk_usage(tempfile.gettempdir()).free
    if free < needed:
        raise SystemExit(f"{tempfile.gettempdir()} has {free / 1e9:.1f} GB free, needed are {needed / 1e9:.1f} GB")
    with tempfile.TemporaryDirectory(prefix="kafka-rebalance-history-") as directory:
        history = Artifacts.at(Path(directory))
        print(f"generating {snapshots} snapshots", file=sys.stderr)
        rows = generate(history, snapshots, options.replication_factor)
        bytes_ = sum(file.stat().st_size for file in Path(directory).rglob("*.parquet"))
        measure(history, rows, bytes_, snapshots, options.repetitions)


def generate(history: Artifacts, snapshots: int, replication_factor: int) -> int:
    """Write the history; returns its number of rows."""
    chance = np.random.default_rng(1)
    partitions = SNAPSHOT_ROWS // replication_factor
    replicas = partitions * replication_factor
    number = np.arange(partitions)
    names = [f"topic-{n:05d}" for n in range(-(-partitions // PARTITIONS_OF_A_TOPIC))]
    topic = pa.array(names).take(pa.array(np.repeat(number // PARTITIONS_OF_A_TOPIC, replication_factor)))
    partition = np.repeat(number % PARTITIONS_OF_A_TOPIC, replication_factor).astype(np.int32)
    position = np.tile(np.arange(replication_factor), partitions).astype(np.int16)
    broker = chance.integers(1, 100, replicas).astype(np.int32)
    log_dir = pa.array([f"/data/{n}" for n in range(4)]).take(pa.array(chance.integers(0, 4, replicas)))
    record, rate = chance.integers(100, 2000, partitions), chance.gamma(1.0, 20_000.0, partitions)
    end = chance.integers(10**6, 10**9, partitions)
    start = end - RETAINED
    leads = np.zeros(partitions, dtype=np.int16)
    for n in range(snapshots):
        taken_at = START + n * SNAPSHOTS_APART
        end = end + chance.poisson(rate)
        start = np.maximum(start, end - RETAINED)
        size = (end - start) * record
        change = chance.integers(0, partitions, partitions // 1000)
        leads[change] = chance.integers(0, replication_factor, len(change))
        columns = {
            "taken_at": pa.repeat(pa.scalar(taken_at, HISTORY.field("taken_at").type), replicas),
            "topic": topic,
            "partition": partition,
            "position": position,
            "broker": broker,
            "leader": position == np.repeat(leads, replication_factor),
            "size_bytes": np.repeat(size, replication_factor),
            "start_offset": np.repeat(start, replication_factor),
            "end_offset": np.repeat(end, replication_factor),
            "log_dir": log_dir,
        }
        append_sample(history, "bench", pa.table(columns, schema=WITHOUT_GROUPS), taken_at)
    return replicas * snapshots


def measure(history: Artifacts, rows: int, bytes_: int, snapshots: int, repetitions: int) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "8")  # the plain side's best: only it shuffles
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    end = START + snapshots * SNAPSHOTS_APART

    def plain() -> DataFrame:
        replicas = spark.read.parquet(history.uri).groupBy("cluster", "topic", "partition")
        return replicas.agg(f.max("size_bytes"), f.avg("size_bytes"))

    def loads() -> DataFrame:
        return partition_loads(spark, history.uri, None, START, end)

    if (counted := loads().count()) != (expected := plain().count()):  # warms both up, too
        raise SystemExit(f"loads have {counted} partitions, the plain aggregate has {expected}")
    took: dict[Callable[[], DataFrame], list[float]] = {plain: [], loads: []}
    for _ in range(repetitions):
        for side, times in took.items():
            times.append(seconds(side))
            print(f"{side.__name__}: {times[-1]:.2f} s", file=sys.stderr)
    spark.stop()
    best = {side: min(times) for side, times in took.items()}
    print(
        f"{rows:,} rows of {counted:,} partitions in {snapshots} files, {bytes_ / 1e6:,.0f} MB, best of {repetitions}\n"
    )
    print("| | seconds | million rows/s | speed over plain |\n|---|---:|---:|---:|")
    for side, least in best.items():
        print(f"| {side.__name__} | {least:.2f} | {rows / least / 1e6:.1f} | {best[plain] / least:.2f} |")


def seconds(side: Callable[[], DataFrame]) -> float:
    begin = time.perf_counter()
    side().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
