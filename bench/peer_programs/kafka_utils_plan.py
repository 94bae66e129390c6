"""Plans with kafka-utils' own cluster model and balancers, from a file instead of a live cluster.

    python kafka_utils_plan.py count|genetic cluster.json directory

Runs in a virtual environment of its own that holds kafka-utils, and imports nothing of this project. It does what
``kafka-cluster-manager rebalance --replication-groups --brokers --leaders`` and ``decommission`` do between reading
the cluster and submitting: racks are replication groups, and a partition weighs its size. The tool then submits a
small part of the result at a time; what is written here is all of it. The genetic balancer makes one move a
generation, so its default of 100 generations bounds what it can change.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from kafka_utils.kafka_cluster_manager.cluster_info.cluster_topology import ClusterTopology
from kafka_utils.kafka_cluster_manager.cluster_info.genetic_balancer import DEFAULT_NUM_GENS, GeneticBalancer
from kafka_utils.kafka_cluster_manager.cluster_info.partition_count_balancer import PartitionCountBalancer
from kafka_utils.kafka_cluster_manager.cluster_info.partition_measurer import PartitionMeasurer

BALANCERS = {"count": PartitionCountBalancer, "genetic": GeneticBalancer}


class Sizes(PartitionMeasurer):
    """Weight and size of a partition are its bytes."""

    def __init__(self, sizes: dict[tuple[str, int], int]) -> None:
        self.sizes = sizes

    def get_weight(self, partition_name: tuple[str, int]) -> float:
        return self.sizes[partition_name]

    def get_size(self, partition_name: tuple[str, int]) -> float:
        return self.sizes[partition_name]


def main(kind: str, cluster_file: str, directory: str) -> None:
    document = json.loads(Path(cluster_file).read_text())
    partitions = document["partitions"]
    names = [(entry["topic"], entry["partition"]) for entry in partitions]
    begin = time.perf_counter()
    topology = ClusterTopology(
        assignment={name: entry["replicas"] for name, entry in zip(names, partitions, strict=True)},
        brokers={broker["id"]: {"host": "", "rack": broker["rack"]} for broker in document["brokers"]},
        partition_measurer=Sizes({name: entry["size"] for name, entry in zip(names, partitions, strict=True)}),
        extract_group=lambda broker: broker.metadata["rack"],
    )
    balancer = BALANCERS[kind](topology, arguments(kind))
    if document["remove"]:
        balancer.decommission_brokers(document["remove"])
    else:
        balancer.rebalance()
    proposed = topology.assignment
    seconds = time.perf_counter() - begin

    entries = [{"topic": topic, "partition": number, "replicas": at} for (topic, number), at in proposed.items()]
    (Path(directory) / "plan.json").write_text(json.dumps({"version": 1, "partitions": entries}))
    (Path(directory) / "summary.json").write_text(json.dumps({"timings": {"plan": seconds}}))


def arguments(kind: str) -> argparse.Namespace:
    """The options of the command line, with no limit below what the balancer can do at all."""
    limits = {"max_partition_movements": DEFAULT_NUM_GENS, "max_leader_changes": DEFAULT_NUM_GENS}
    return argparse.Namespace(
        replication_groups=True, brokers=True, leaders=True, balancer_args=[], **(limits if kind == "genetic" else {})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
