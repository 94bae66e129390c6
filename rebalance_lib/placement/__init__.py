"""Where Kafka puts replicas: of new topics, of added partitions, and when the replication factor changes."""

from rebalance_lib.placement.brokers import RackMode
from rebalance_lib.placement.kraft import place_replicas
from rebalance_lib.placement.striped import assign_replicas, assign_replicas_array

__all__ = ["RackMode", "assign_replicas", "assign_replicas_array", "place_replicas"]
