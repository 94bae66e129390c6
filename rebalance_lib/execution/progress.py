"""How far a plan has come, in partitions and in bytes.

The bytes of a move are those of the new replica against its leader, from the sizes in the brokers' log dirs: Kafka's
own lag figure stays 0 for a replica that is being added.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.status import PlanStatus, Status
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition, by_topic


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of partitions by status, and bytes copied of the bytes to copy, for what is not finished."""

    done: int
    moving: int
    pending: int
    missing: int
    drifted: tuple[TopicPartition, ...]
    bytes_copied: int
    bytes_to_copy: int

    @property
    def stopped(self) -> bool:
        """Something is left to do, but nothing is under way: the moves were cancelled, or never submitted."""
        return self.pending > 0 and self.moving == 0

    @property
    def finished(self) -> bool:
        """Nothing of the plan is left to do."""
        return not (self.moving or self.pending)

    def __str__(self) -> str:
        partitions = self.done + self.moving + self.pending
        text = f"{self.done} of {partitions} partitions done, {self.moving} moving, {self.pending} not started"
        if self.bytes_to_copy:
            share = self.bytes_copied / self.bytes_to_copy
            text += f"; {share:.0%} of {self.bytes_to_copy / 1e6:.1f} MB under way is copied"
        if self.missing:
            text += f"; {self.missing} belong to topics that were deleted"
        return text


def measure_progress(cluster: Cluster, plan: Plan, before: Plan, status: PlanStatus) -> Progress:
    """Measure the moves under way; a broker that does not answer counts as having copied nothing yet."""
    moving = status.having(Status.MOVING)
    origins = before.as_dict()
    targets = plan.as_dict()
    sizes = _sizes(cluster, moving, {b for tp in moving for b in (*targets[tp], *status.live[tp].replicas)})
    copied = to_copy = 0
    for tp in moving:
        leader = status.live[tp].leader
        whole = sizes.get((tp, leader), 0) if leader is not None else 0
        for broker in set(targets[tp]) - set(origins.get(tp, ())):
            to_copy += whole
            copied += min(whole, sizes.get((tp, broker), 0))
    return Progress(
        done=len(status.having(Status.DONE)),
        moving=len(moving),
        pending=len(status.having(Status.PENDING)),
        missing=len(status.having(Status.MISSING)),
        drifted=tuple(status.having(Status.DRIFTED)),
        bytes_copied=copied,
        bytes_to_copy=to_copy,
    )


def _sizes(
    cluster: Cluster, partitions: list[TopicPartition], brokers: set[int]
) -> dict[tuple[TopicPartition, int], int]:
    wanted = by_topic(partitions)
    sizes = {}
    for broker in sorted(brokers & set(cluster.alive_brokers())) if brokers else ():
        try:
            log_dirs = cluster.log_dirs(broker, wanted)
        except ClusterError:
            continue
        for log_dir in log_dirs:
            for topic_entry in log_dir["topics"]:
                for part in topic_entry["partitions"]:
                    if not part["is_future_key"]:
                        tp = TopicPartition(topic_entry["name"], part["partition_index"])
                        sizes[tp, broker] = part["partition_size"]
    return sizes
