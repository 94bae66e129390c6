"""Loads on Spark: those of every cluster asked for, from the files of the window and no others."""

from __future__ import annotations

import random

import pyarrow.compute as pc
import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history import GROUP_READS, LOADS, dataset, shares
from rebalance_lib.jobs.history import group_reads, partition_loads
from tests.history.recomputed import recomputed
from tests.history.samples import EXAMPLE, READ_EXAMPLE, Row, window, write

DAY = 24 * 3600


@pytest.fixture
def history(tmp_path):
    return Artifacts.at(tmp_path / "a dir with ü and %20")


def test_every_cluster_of_the_history_has_its_loads(spark, history, monkeypatch):
    monkeypatch.setattr(dataset, "SMALLEST_GROUP", 20)
    monkeypatch.setattr(shares, "SAMPLES_WORTH_A_TASK", 120)
    chance = random.Random(5)
    written = {
        cluster_id: {
            at: [
                Row(topic, p, chance.randrange(3), chance.random() < 0.9, chance.randrange(9999), 0, at + p)
                for topic in topics
                for p in range(20)
            ]
            for at in range(0, 300, 60)
        }
        for cluster_id, topics in {"c/1": ["a", "b"], "c2": ["a"]}.items()
    }
    for cluster_id, by_second in written.items():
        write(history, cluster_id, by_second)
    frame = partition_loads(spark, history.uri, None, *window(DAY))
    assert frame.rdd.getNumPartitions() == 3
    found = frame.toArrow().cast(LOADS)
    for cluster_id, by_second in written.items():
        rows = found.filter(pc.equal(found["cluster"], cluster_id)).to_pylist()
        expected = recomputed(by_second)
        assert {(row["topic"], row["partition"]) for row in rows} == set(expected)
        for row in rows:
            for name, value in expected[row["topic"], row["partition"]].items():
                assert row[name] == (value if value is None else pytest.approx(value))


def test_loads_are_read_through_a_session_without_a_spark_context(spark, history):
    class Connected:
        """As a session of Spark Connect."""

        __module__ = "pyspark.sql.connect.session"
        range = spark.range

    write(history, "c", EXAMPLE)
    assert partition_loads(Connected(), history.uri, None, *window(DAY)).count() == 1


def test_what_each_group_reads_of_each_partition(spark, history):
    write(history, "c", READ_EXAMPLE)
    found = group_reads(spark, history.uri, None, *window(DAY)).toArrow().cast(GROUP_READS)
    assert [(row["group"], row["read_rate"], row["resets"]) for row in found.sort_by("group").to_pylist()] == [
        ("audit", 15, 0),
        ("billing", 10, 1),
    ]


def test_clusters_and_days_outside_the_window_are_not_read(spark, history):
    write(history, "c", EXAMPLE)
    write(history, "broken", EXAMPLE)
    write(history, "c", {DAY: EXAMPLE[0]})
    for name in ("cluster=broken/day=2026-01-01/2026-01-01T000000Z", "cluster=c/day=2026-01-02/2026-01-02T000000Z"):
        history.write_text(f"{name}.parquet", "no Parquet")
    (row,) = partition_loads(spark, history.uri, ["c"], *window(DAY)).collect()
    assert (row.cluster, row.samples) == ("c", 5)


def test_a_window_without_snapshots_has_no_loads(spark, history):
    write(history, "c", EXAMPLE)
    frame = partition_loads(spark, history.uri, ["c"], *window(DAY, start=DAY - 5))
    assert frame.columns == LOADS.names
    assert frame.collect() == []


def test_one_snapshot_has_sizes_and_unknown_rates(spark, history):
    write(history, "c", {0: EXAMPLE[0]})
    (row,) = partition_loads(spark, history.uri, None, *window(DAY)).collect()
    assert (row.size_bytes, row.samples, row.growth, row.write_rate_p95) == (1000, 1, None, None)


def test_unknown_clusters_are_named(spark, history):
    write(history, "c", EXAMPLE)
    with pytest.raises(InvalidInputError, match=r"clusters \['d'\] are not in the history at .*; it has \['c'\]"):
        partition_loads(spark, history.uri, ["c", "d"], *window(DAY))
