"""The only package that speaks to Kafka."""

from rebalance_lib.cluster.client import Cluster, ConfigValue, PartitionState, Reassignment
from rebalance_lib.cluster.snapshot import take_snapshot

__all__ = ["Cluster", "ConfigValue", "PartitionState", "Reassignment", "take_snapshot"]
