"""The loads of a long history, beside the plainest aggregates that Spark can run over the same files.

    python -m bench.history [--rows 50000000] [--replication-factor 3] [--snapshots] [--directory DIR]

A history is generated into a temporary directory, and removed at the end: partitions that are written at rates of their
own, retention, and now and then a leader that changes. By default it is a history that was compacted: a file a day, of
snapshots five minutes apart and 10,000 partitions, so that 500 million rows are two months. With ``--snapshots`` it is
a file for each snapshot, an hour apart. All sides run in one Spark session, in turn, and the best time of each counts:

    plain           groupBy(cluster, topic, partition), with the largest and the mean size
    plain, columns  the same, and the largest of each column that loads read as well: taken_at, leader, the offsets
    loads           `partition_loads`, with its rates and percentiles

Before anything is timed, all must find the same partitions and samples in the first day, which warms them up, too. CPU
is that of all processes: on a machine with other work it says more than seconds do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import HISTORY, append_sample
from rebalance_lib.history.dataset import MOMENT, MOMENTS, PARQUET
from rebalance_lib.history.day_file import HELD, ROWS_OF_A_GROUP
from rebalance_lib.jobs.history import partition_loads

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

Grid = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
START = datetime(2026, 1, 1, tzinfo=UTC)
WITHOUT_GROUPS = HISTORY.remove(HISTORY.get_field_index("committed"))  # as the plain aggregate, which reads none
SNAPSHOT_ROWS = 100_000
PARTITIONS_OF_A_TOPIC = 50
BYTES_OF_A_ROW = {"day": 8, "snapshot": 40}  # on disk, more than is seen
RETAINED = 2_000_000  # records
SNAPSHOTS_APART = timedelta(hours=1)
COMPACTED_PARTITIONS = 10_000
COMPACTED_APART = timedelta(minutes=5)
DAY = timedelta(days=1)


class Generated(NamedTuple):
    """A history: its rows, its files and their bytes, and the end of its last day."""

    rows: int
    files: int
    bytes: int
    end: datetime

    @classmethod
    def found(cls, directory: Path) -> Generated:
        """What is in a directory."""
        files = sorted(directory.rglob("*.parquet"))
        last = datetime.fromisoformat(files[-1].parent.name.removeprefix("day=")).replace(tzinfo=UTC)
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        return cls(rows, len(files), sum(file.stat().st_size for file in files), last + DAY)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the loads of a history beside a plain Spark aggregate.")
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--snapshots", action="store_true", help="a file for each snapshot, as before a compaction")
    parser.add_argument("--directory", type=Path, help="keep the history here; if there is one, it is measured")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="kafka-rebalance-history-") as temporary:
        directory = options.directory or Path(temporary)
        history = Artifacts.at(directory)
        if not (directory / "cluster=bench").exists():
            needed = options.rows * BYTES_OF_A_ROW["snapshot" if options.snapshots else "day"]
            free = shutil.disk_usage(directory.parent).free
            if free < needed:
                raise SystemExit(f"{directory} has {free / 1e9:.1f} GB free, needed are {needed / 1e9:.1f} GB")
            if options.snapshots:
                generate(history, max(2, options.rows // SNAPSHOT_ROWS), options.replication_factor)
            else:
                generate_days(history, options.rows, options.replication_factor)
        generated = Generated.found(directory)
        print(f"{generated.rows:,} rows in {generated.files} files, {generated.bytes / 1e6:,.0f} MB", flush=True)
        measure(history, generated, options.repetitions)


def generate(history: Artifacts, snapshots: int, replication_factor: int) -> None:
    """Write a history of single snapshots."""
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


def generate_days(history: Artifacts, rows: int, replication_factor: int) -> None:
    """Write a history as compaction leaves it, a file a day, without the single snapshots that it was made of."""
    chance = np.random.default_rng(1)
    moments = DAY // COMPACTED_APART
    days = max(1, round(rows / (COMPACTED_PARTITIONS * replication_factor * moments)))
    rate, record = chance.gamma(1.0, 1_600.0, COMPACTED_PARTITIONS), chance.integers(100, 2000, COMPACTED_PARTITIONS)
    end = chance.integers(10**6, 10**9, COMPACTED_PARTITIONS)
    topics = max(1, ROWS_OF_A_GROUP // (moments * replication_factor * PARTITIONS_OF_A_TOPIC))
    ends_of_groups = np.arange(0, COMPACTED_PARTITIONS, topics * PARTITIONS_OF_A_TOPIC)[1:]
    groups = np.split(np.arange(COMPACTED_PARTITIONS), ends_of_groups)
    for day in range(days):
        begin = START + day * DAY
        taken = [begin + n * COMPACTED_APART for n in range(moments)]
        name = f"cluster=bench/day={begin:%Y-%m-%d}/day-0001-00000000.parquet"
        with (
            history.open_writer(name) as sink,
            pq.ParquetWriter(sink, HELD, store_schema=False, **PARQUET) as writer,
        ):
            writer.add_key_value_metadata({MOMENTS: json.dumps([one.strftime(MOMENT) for one in taken]).encode()})
            for some in groups:
                ends = end[some, None] + np.cumsum(chance.poisson(rate[some, None], (len(some), moments)), axis=1)
                end[some] = ends[:, -1]
                table = _day_rows(taken, some, ends, record[some, None], replication_factor)
                writer.write_table(table, row_group_size=table.num_rows)


def _day_rows(taken: list[datetime], numbers: Grid, ends: Grid, record: Grid, replication_factor: int) -> pa.Table:
    """The rows of some partitions through a day, by partition, moment and replica, as `day_file` has them.

    ``ends`` are the end offsets by partition and moment; one partition in nine has another leader from some moment on.
    """
    moments = len(taken)
    starts = ends[:, np.arange(moments) // 12 * 12] - RETAINED  # segments go each hour
    leads = (numbers[:, None] + (np.arange(moments) > numbers[:, None] * 7919 % (9 * moments))) % replication_factor
    shape = (len(numbers), moments, replication_factor)
    place, moment, replica = (one.ravel() for one in np.indices(shape, dtype=np.int32))
    number = numbers.astype(np.int32)[place]
    start, end, size, lead = (
        np.repeat(one, replication_factor) for one in (starts, ends, (ends - starts) * record, leads)
    )
    topics = pa.array([f"topic-{n:05d}" for n in range(COMPACTED_PARTITIONS // PARTITIONS_OF_A_TOPIC + 1)])
    columns = {
        "taken_at": pa.array(taken, HISTORY.field("taken_at").type).take(pa.array(moment)),
        "topic": pa.DictionaryArray.from_arrays(pa.array(number // PARTITIONS_OF_A_TOPIC), topics),
        "partition": number % PARTITIONS_OF_A_TOPIC,
        "position": replica.astype(np.int16),
        "broker": (number * 31 + replica * 7) % 100,
        "leader": replica == lead,
        "size_bytes": size,
        "start_offset": start,
        "end_offset": end,
        "log_dir": pa.DictionaryArray.from_arrays(
            pa.array((number + replica) % 4), pa.array([f"/data/{n}" for n in range(4)])
        ),
        "committed": pa.nulls(len(number), HISTORY.field("committed").type),
    }
    return pa.table(columns, schema=HELD)


def measure(history: Artifacts, generated: Generated, repetitions: int) -> None:
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

    def by_partition(end: datetime) -> DataFrame:
        # Days are pruned by their directories, as for loads.
        replicas = spark.read.parquet(history.uri).where(f.col("day") < end.date())
        return replicas.groupBy("cluster", "topic", "partition")

    def plain(end: datetime) -> DataFrame:
        return by_partition(end).agg(f.max("size_bytes"), f.avg("size_bytes"))

    def plain_columns(end: datetime) -> DataFrame:
        others = [f.max(name) for name in ("taken_at", "start_offset", "end_offset")]
        return by_partition(end).agg(
            f.max("size_bytes"), f.avg("size_bytes"), f.sum(f.col("leader").cast("int")).alias("samples"), *others
        )

    def loads(end: datetime) -> DataFrame:
        return partition_loads(spark, history.uri, None, START, end)

    sides = {"plain": plain, "plain, columns": plain_columns, "loads": loads}
    expected, counted = (
        frame(START + DAY).agg(f.count("*"), f.sum("samples")).first() for frame in (plain_columns, loads)
    )
    if counted != expected or plain(START + DAY).count() != counted[0]:
        raise SystemExit(f"loads have {counted} partitions and samples, the plain aggregate has {expected}")
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(repetitions):
        for name, side in sides.items():
            took[name].append(seconds(lambda side=side: side(generated.end)))
            print(f"{name}: {took[name][-1][0]:.2f} s, CPU {took[name][-1][1]:.2f} s", file=sys.stderr, flush=True)
    spark.stop()
    best = {name: [min(one[n] for one in times) for n in range(2)] for name, times in took.items()}
    print(f"{counted[0]:,} partitions, best of {repetitions}\n")
    print("| | seconds | million rows/s | speed over plain | CPU s | CPU of plain over its own |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (least, cpu) in best.items():
        rate, speed = generated.rows / least / 1e6, best["plain"][0] / least
        print(f"| {name} | {least:.2f} | {rate:.1f} | {speed:.2f} | {cpu:.1f} | {best['plain'][1] / cpu:.2f} |")


def seconds(frame: Callable[[], DataFrame]) -> tuple[float, float]:
    """From the listing of files to the last row; and the seconds of all processors meanwhile."""
    begin, cpu = time.perf_counter(), cpu_seconds()
    frame().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin, cpu_seconds() - cpu


def cpu_seconds() -> float:
    """What this process and all that it started have used, as far as they are still there."""
    parents, used = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            values = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(process.name)] = int(values[1])
        used[int(process.name)] = sum(map(int, values[11:15]))
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(used.get(pid, 0) for pid in own) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
