"""Brokers, racks, log dirs and replicas, as Kafka names them."""

from rebalance_lib.topology.broker import Broker, TopicPartition, by_topic
from rebalance_lib.topology.snapshot import BROKERS, REPLICAS, Snapshot

__all__ = ["BROKERS", "REPLICAS", "Broker", "Snapshot", "TopicPartition", "by_topic"]
