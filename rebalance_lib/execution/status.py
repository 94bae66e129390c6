"""Where each partition of a plan stands, read from the cluster each time.

A partition is done when its replicas equal the target in order, all of them are in the ISR, and none is being added or
removed. It is moving when the controller works towards the plan's target, pending when it still is where the plan found
it, missing when its topic is gone, and drifted when it is anywhere else: somebody else moved it.

The list of reassignments comes from the controller, replica lists from any broker, which may be a moment behind: right
after a move ended it still shows the replicas of old and new together. So a partition is drifted only if it looks so
several times in a row; until then it counts as moving.

Example, for ``foo-0`` planned from [1, 2] to [2, 3]: replicas [2, 3], ISR {2, 3} is done; replicas [2, 3, 1] with 3
adding and 1 removing is moving; [1, 2] is pending; [1, 4] is drifted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from rebalance_lib.cluster import Cluster, PartitionState, Reassignment
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

LOOKS = 5
LOOK_AGAIN_SECONDS = 0.5


class Status(StrEnum):
    """Where a planned partition stands."""

    DONE = "done"
    MOVING = "moving"
    PENDING = "pending"
    DRIFTED = "drifted"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """The status of every planned partition, and what the cluster said of it."""

    by_partition: dict[TopicPartition, Status]
    live: dict[TopicPartition, PartitionState]
    reassignments: dict[TopicPartition, Reassignment]

    def having(self, *statuses: Status) -> list[TopicPartition]:
        """The partitions with one of these statuses, in order."""
        return [partition for partition, status in self.by_partition.items() if status in statuses]

    @property
    def foreign(self) -> list[TopicPartition]:
        """Reassignments under way that are not this plan's."""
        return sorted(tp for tp in self.reassignments if self.by_partition.get(tp) is not Status.MOVING)


def plan_status(
    cluster: Cluster, plan: Plan, before: Plan, *, doubted: Collection[Status] = (Status.DRIFTED,)
) -> PlanStatus:
    """Compare the plan with the cluster.

    Args:
        cluster: The cluster as it is now.
        plan: What is to be.
        before: The assignment that the plan was made for.
        doubted: What to look at again before it is believed; once a plan was submitted, pending is doubtful too.
    """
    targets = plan.as_dict()
    origins = before.as_dict()
    status = _look(cluster, targets, origins)
    suspects = set(status.having(*doubted))
    for _ in range(LOOKS - 1):
        if not suspects:
            break
        time.sleep(LOOK_AGAIN_SECONDS)
        status = _look(cluster, targets, origins)
        suspects &= set(status.having(*doubted))
    settling = set(status.having(*doubted)) - suspects
    return replace(status, by_partition={**status.by_partition, **dict.fromkeys(sorted(settling), Status.MOVING)})


def _look(
    cluster: Cluster,
    targets: Mapping[TopicPartition, tuple[int, ...]],
    origins: Mapping[TopicPartition, tuple[int, ...]],
) -> PlanStatus:
    reassignments = cluster.reassignments()
    live = cluster.partitions({tp.topic for tp in targets})
    by_partition = {
        tp: _status(target, origins.get(tp), live.get(tp), reassignments.get(tp))
        for tp, target in sorted(targets.items())
    }
    return PlanStatus(by_partition, {tp: live[tp] for tp in targets if tp in live}, reassignments)


def _status(
    target: tuple[int, ...],
    origin: tuple[int, ...] | None,
    live: PartitionState | None,
    reassignment: Reassignment | None,
) -> Status:
    if live is None:
        return Status.MISSING
    if reassignment is not None:
        return Status.MOVING if reassignment.target == target else Status.DRIFTED
    if live.replicas == target:
        return Status.DONE if live.in_sync.issuperset(target) else Status.MOVING
    return Status.PENDING if live.replicas == origin else Status.DRIFTED


def listing(partitions: Mapping[TopicPartition, object] | list[TopicPartition], most: int = 10) -> str:
    """The first few partitions, for a message."""
    names = [str(partition) for partition in list(partitions)[:most]]
    return ", ".join(names) + (f" and {len(partitions) - most} more" if len(partitions) > most else "")
