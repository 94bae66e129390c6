"""Where Kafka puts replicas: of new topics and of added partitions."""

from rebalance_lib.placement.brokers import RackMode
from rebalance_lib.placement.expansion import add_partitions
from rebalance_lib.placement.kraft import place_replicas
from rebalance_lib.placement.manual import (
    check_replica_assignment,
    format_replica_assignment,
    parse_replica_assignment,
)
from rebalance_lib.placement.proposal import brokers_to_place_on, propose
from rebalance_lib.placement.striped import assign_replicas, assign_replicas_array

__all__ = [
    "RackMode",
    "add_partitions",
    "assign_replicas",
    "assign_replicas_array",
    "brokers_to_place_on",
    "check_replica_assignment",
    "format_replica_assignment",
    "parse_replica_assignment",
    "place_replicas",
    "propose",
]
