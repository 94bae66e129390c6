"""How the members of a consumer group share partitions: Kafka's assignors, and what a plan does to each group."""

from rebalance_lib.assignors.assign import STRATEGIES, assign
from rebalance_lib.assignors.subscription import Assignment, Subscription

__all__ = ["STRATEGIES", "Assignment", "Subscription", "assign"]
