"""The synthetic clusters are what their scenario says, placed as Kafka would have placed them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bench.cluster_json import read_cluster
from bench.clusters import SCENARIOS, Parameters, generate, striped, write_snapshot
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.placement import assign_replicas_array
from rebalance_lib.topology import Broker, Snapshot, parse_cluster

SMALL = Parameters(scenario="steady", partitions=600, brokers=9, topic_max=40)


def small(scenario, **changes):
    return generate(replace(SMALL, scenario=scenario, **changes))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_partition_has_its_replicas_on_distinct_brokers_in_distinct_racks(scenario):
    cluster = small(scenario)
    rack = {broker.id: broker.rack for broker in cluster.brokers}
    assert len(cluster) == 600
    for replicas in cluster.replicas.tolist():
        assert len({rack[broker] for broker in replicas}) == 3


def test_topics_are_striped_as_kafka_does():
    cluster = small("steady")
    for topic in np.unique(cluster.topic):
        rows = np.flatnonzero(cluster.topic == topic)
        assert cluster.partition[rows].tolist() == list(range(len(rows)))
        assert any(
            np.array_equal(
                cluster.replicas[rows],
                assign_replicas_array(cluster.brokers, len(rows), 3, start_index=start, replica_shift=shift),
            )
            for start in range(9)
            for shift in range(9)
        )


def test_expansion_adds_empty_brokers_and_keeps_the_data():
    cluster = small("expand")
    assert cluster.add == [10, 11, 12, 13]
    assert cluster.targets == list(range(1, 14))
    assert not np.isin(cluster.replicas, cluster.add).any()
    assert np.array_equal(cluster.replicas, small("steady").replicas)


def test_decommissioned_brokers_hold_data_and_are_no_targets():
    cluster = small("decommission", remove=2)
    assert cluster.remove == [8, 9]
    assert cluster.targets == list(range(1, 8))
    assert np.isin(cluster.replicas, cluster.remove).any()


def test_skew_loads_some_brokers_as_many_times_as_asked():
    cluster = small("skew", partitions=30_000, brokers=30, skew_factor=3.0)
    held = np.bincount(cluster.replicas.ravel(), minlength=31)[1:]
    heavy, light = held[:6], held[6:]
    assert heavy.mean() / light.mean() == pytest.approx(3.0, rel=0.05)


def test_sizes_have_the_median_and_the_spread_asked_for():
    logarithms = np.log(small("steady", partitions=20_000, sigma=1.2, median_bytes=1e6).size)
    assert np.median(logarithms) == pytest.approx(np.log(1e6), abs=0.05)
    assert logarithms.std() == pytest.approx(1.2, rel=0.05)


def test_the_same_arguments_give_the_same_cluster_and_another_seed_another():
    again, other = small("skew"), small("skew", seed=2)
    assert np.array_equal(small("skew").replicas, again.replicas)
    assert np.array_equal(small("skew").size, again.size)
    assert not np.array_equal(again.replicas, other.replicas)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_file_reads_back_as_it_was(scenario, tmp_path):
    cluster = small(scenario)
    cluster.write(tmp_path / "cluster.json")
    read = read_cluster(tmp_path / "cluster.json")
    for name in ("scenario", "seed", "rf", "brokers", "targets", "add", "remove"):
        assert getattr(read, name) == getattr(cluster, name)
    for name in ("partition", "replicas", "size"):
        assert np.array_equal(getattr(read, name), getattr(cluster, name))
    assert read.topics.take(read.topic).equals(cluster.topics.take(cluster.topic))


def test_rates_and_capacities_read_back_as_they_were(tmp_path):
    cluster = small("skew", rates=True, capacities=True)
    cluster.write(tmp_path / "cluster.json")
    read = read_cluster(tmp_path / "cluster.json")
    assert read.capacities == cluster.capacities
    assert np.array_equal(read.rates.write, cluster.rates.write)
    assert np.array_equal(read.rates.read, cluster.rates.read)


def test_rates_and_capacities_are_what_the_planner_reads_of_the_same_cluster(tmp_path):
    plain, cluster = small("expand"), small("expand", rates=True, capacities=True)
    assert np.array_equal(plain.replicas, cluster.replicas)
    assert np.array_equal(plain.size, cluster.size)
    cluster.write(tmp_path / "cluster.json")
    read = parse_cluster((tmp_path / "cluster.json").read_bytes())
    assert read.loads.equals(cluster.loads())
    capacities = cluster.snapshot().brokers["capacity"].to_pylist()
    assert read.snapshot.brokers["capacity"].to_pylist() == capacities
    assert len({capacity["disk"] for capacity in capacities}) == len({c["network_in"] for c in capacities}) == 2
    assert plain.loads() is None


def test_a_file_is_plain_json(tmp_path):
    cluster = small("expand")
    cluster.write(tmp_path / "cluster.json")
    document = json.loads((tmp_path / "cluster.json").read_text())
    assert list(document) == ["scenario", "seed", "rf", "brokers", "targets", "add", "remove", "partitions"]
    assert document["brokers"][0] == {"id": 1, "rack": "r0"}
    assert document["partitions"][0] == {
        "topic": "t00000",
        "partition": 0,
        "replicas": cluster.replicas[0].tolist(),
        "size": int(cluster.size[0]),
    }


def test_a_snapshot_holds_every_replica_in_order(tmp_path):
    cluster = small("expand")
    write_snapshot(cluster, tmp_path)
    tables = (Artifacts.at(tmp_path).read_table(f"{name}.parquet") for name in ("brokers", "replicas"))
    snapshot = Snapshot.from_tables(*tables)
    keys = snapshot.replicas.select(["topic", "partition", "position"]).to_pylist()
    assert keys == sorted(keys, key=lambda row: tuple(row.values()))
    assert np.array_equal(snapshot.replicas["broker"].to_numpy().reshape(-1, 3), cluster.replicas)
    load = {row["broker"]: row["bytes"] for row in snapshot.load_per_broker().to_pylist()}
    assert sum(load.values()) == 3 * cluster.size.sum()
    assert all(load[broker] == 0 for broker in cluster.add)


@pytest.mark.parametrize(
    "wrong", [{"scenario": "shrink"}, {"brokers": 2}, {"scenario": "skew", "racks": 2}, {"remove": 7}]
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=r"."):
        replace(SMALL, **{"scenario": "decommission", **wrong})


class Drawn:
    """A generator whose draws are given."""

    def __init__(self, *draws):
        self.draws = np.array(draws)

    def integers(self, high, size):
        return self.draws.reshape(size)


def test_the_example_of_the_module():
    brokers = [Broker(1, "a"), Broker(2, "b"), Broker(3, "c")]
    first = np.zeros(1, np.int32)
    placed = striped(Drawn(1, 0), brokers, first, first, replace(SMALL, brokers=3))
    assert placed.tolist() == [[2, 3, 1]]
