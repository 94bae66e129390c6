"""Brokers, racks, log dirs and replicas, as Kafka names them."""

from rebalance_lib.topology.broker import Broker, TopicPartition, by_topic
from rebalance_lib.topology.capacities import BrokerSets, Capacities
from rebalance_lib.topology.cluster_json import ClusterFile, parse_cluster
from rebalance_lib.topology.groups import GROUP_MEMBERS, GROUP_OFFSETS, Groups
from rebalance_lib.topology.loads import LOADS
from rebalance_lib.topology.snapshot import BROKERS, REPLICAS, Snapshot, replica_rows
from rebalance_lib.topology.snapshot_check import check_snapshot

__all__ = [
    "BROKERS",
    "GROUP_MEMBERS",
    "GROUP_OFFSETS",
    "LOADS",
    "REPLICAS",
    "Broker",
    "BrokerSets",
    "Capacities",
    "ClusterFile",
    "Groups",
    "Snapshot",
    "TopicPartition",
    "by_topic",
    "check_snapshot",
    "parse_cluster",
    "replica_rows",
]
