"""What is to be executed: a plan, the assignment it was made for, and where its records are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Replica
from rebalance_lib.execution.log_dir_moves import planned_log_dirs
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition


@dataclass(frozen=True)
class Job:
    """A plan to be executed.

    Args:
        plan: what is to be.
        before: what was when it was planned; all partitions of the plan at least.
        cluster_id: the cluster that it was planned for.
        artifacts: where saved throttles, requests and the journal are.
        repair: whether the plan is there to repair partitions, so that it may move those that are under-replicated.
        adds: whether the plan is there to add partitions.
        write_rates: bytes per second written to partitions at their peak, where the history knows them.
        sizes: bytes of partitions when the plan was made, for those whose broker does not answer now.
    """

    plan: Plan
    before: Plan
    cluster_id: str
    artifacts: Artifacts
    repair: bool = False
    adds: bool = False
    write_rates: Mapping[TopicPartition, float] = field(default_factory=dict)
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)

    @cached_property
    def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of each partition in the end."""
        return self.plan.as_dict()

    @cached_property
    def origins(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of each partition before."""
        everything = self.before.as_dict()
        return {tp: everything[tp] for tp in self.targets if tp in everything}

    @cached_property
    def log_dirs(self) -> dict[Replica, str]:
        """The log dirs that the plan names."""
        return planned_log_dirs(self.plan)

    def coming(self, tp: TopicPartition) -> tuple[int, ...]:
        """The brokers that get a replica of this partition."""
        origin = self.origins.get(tp, ())
        return tuple(broker for broker in self.targets[tp] if broker not in origin)
