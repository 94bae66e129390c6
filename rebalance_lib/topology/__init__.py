"""Brokers, racks, log dirs and replicas, as Kafka names them."""

from rebalance_lib.topology.broker import Broker, TopicPartition

__all__ = ["Broker", "TopicPartition"]
