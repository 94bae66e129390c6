"""The only package that speaks to Kafka."""

from rebalance_lib.cluster.client import (
    Cluster,
    ConfigValue,
    PartitionState,
    Reassignment,
    Replica,
    ReplicaLogDir,
)
from rebalance_lib.cluster.settings import client_settings, read_properties
from rebalance_lib.cluster.snapshot import take_snapshot

__all__ = [
    "Cluster",
    "ConfigValue",
    "PartitionState",
    "Reassignment",
    "Replica",
    "ReplicaLogDir",
    "client_settings",
    "read_properties",
    "take_snapshot",
]
