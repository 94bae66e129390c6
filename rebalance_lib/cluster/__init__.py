"""The only package that speaks to Kafka."""

from rebalance_lib.cluster.client import Cluster
from rebalance_lib.cluster.client_config import client_settings, read_properties, secrets
from rebalance_lib.cluster.groups import groups_or_none, take_groups
from rebalance_lib.cluster.offsets import Offsets
from rebalance_lib.cluster.snapshot import take_snapshot
from rebalance_lib.cluster.values import (
    ConfigValue,
    Entries,
    HeldReplica,
    LogDir,
    PartitionMetadata,
    Reassignment,
    RefusedConfigsError,
    RefusedError,
    Replica,
    ReplicaLogDir,
)

__all__ = [
    "Cluster",
    "ConfigValue",
    "Entries",
    "HeldReplica",
    "LogDir",
    "Offsets",
    "PartitionMetadata",
    "Reassignment",
    "RefusedConfigsError",
    "RefusedError",
    "Replica",
    "ReplicaLogDir",
    "client_settings",
    "groups_or_none",
    "read_properties",
    "secrets",
    "take_groups",
    "take_snapshot",
]
