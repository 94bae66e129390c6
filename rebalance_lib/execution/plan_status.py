"""Where each partition of a plan stands, read from the cluster each time.

A partition is done when its replicas equal the target in order, all of them are in the ISR, and none is being added or
removed. It is moving when the controller works towards the plan's target or the next stage on the way, pending when it
rests where the plan found it, at a stage, or where a cancel left it, missing when its topic is gone, recreated when the
topic was deleted and created again under the same name (its id tells), and drifted when it is anywhere else: somebody
else moved it.

The list of reassignments comes from the controller, replica lists from any broker, whose metadata may lag: right after
a move ended it still shows the replicas of old and new together. So a partition is drifted only if it looks so several
times in a row; until then it counts as moving.

Example, for ``foo-0`` planned from [1, 2] to [2, 3]: replicas [2, 3], ISR {2, 3} is done; replicas [2, 3, 1] with 3
adding and 1 removing is moving; [1, 2] and, after a cancel, [2, 1] are pending; [1, 4] is drifted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from rebalance_lib.cluster import Cluster, PartitionMetadata, Reassignment
from rebalance_lib.plan import Plan
from rebalance_lib.plan.stages import after_cancel, stages
from rebalance_lib.topology import TopicPartition

READS = 11  # five seconds: as long as the metadata of a broker may lag
READ_AGAIN_SECONDS = 0.5


class Status(StrEnum):
    """Where a planned partition stands."""

    DONE = "done"
    MOVING = "moving"
    PENDING = "pending"
    DRIFTED = "drifted"
    RECREATED = "recreated"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """The status of every planned partition, and what the cluster said: of their topics at least, or of all."""

    by_partition: dict[TopicPartition, Status]
    live: dict[TopicPartition, PartitionMetadata]
    reassignments: dict[TopicPartition, Reassignment]

    def having(self, *statuses: Status) -> list[TopicPartition]:
        """The partitions with one of these statuses, in order."""
        return [partition for partition, status in self.by_partition.items() if status in statuses]

    @property
    def foreign(self) -> list[TopicPartition]:
        """Reassignments under way that are not this plan's."""
        return sorted(tp for tp in self.reassignments if self.by_partition.get(tp) is not Status.MOVING)


class Ends(NamedTuple):
    """Both ends of every partition's way, and the ids that its topics had when the run began, where they are known."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    origins: Mapping[TopicPartition, tuple[int, ...]]
    topic_ids: Mapping[str, str] = MappingProxyType({})
    in_stages: bool = True  # whether partitions take their new replicas one at a time, or may

    def status(self, tp: TopicPartition, live: PartitionMetadata | None, reassignment: Reassignment | None) -> Status:
        """Where a partition stands, by what the cluster shows of it."""
        target, origin = self.targets[tp], self.origins.get(tp)
        if live is None:
            return Status.MISSING
        known = self.topic_ids.get(tp.topic)
        if known and live.topic_id and live.topic_id != known:
            return Status.RECREATED
        if reassignment is not None:
            way = stages(origin, target) if origin and self.in_stages else (target,)
            return Status.MOVING if _goes_on(reassignment, way) else Status.DRIFTED
        if live.replicas == target:
            return Status.DONE if live.in_sync.issuperset(target) else Status.MOVING
        return Status.PENDING if origin is not None and at_rest(live.replicas, origin, target) else Status.DRIFTED


def read_status(
    cluster: Cluster,
    plan: Plan | None = None,
    before: Plan | None = None,
    *,
    ends: Ends | None = None,
    doubted: Collection[Status] = (Status.DRIFTED,),
) -> PlanStatus:
    """Compare the plan with the cluster.

    Args:
        cluster: The cluster as it is now.
        plan: What is to be.
        before: The assignment that the plan was made for.
        ends: The same two, for who reads often.
        doubted: What to read again before it counts; once a plan was submitted, pending is doubtful too.
    """
    if ends is None:
        ends = Ends(plan.as_dict() if plan else {}, before.as_dict() if before else {})
    status = _read_once(cluster, ends)
    suspects = set(status.having(*doubted))
    for _ in range(READS - 1):
        if not suspects:
            break
        cluster.clock.sleep(READ_AGAIN_SECONDS)
        status = _read_once(cluster, ends)
        suspects &= set(status.having(*doubted))
    # What is listed as moving elsewhere is so; what only shows other replicas may be a moment behind.
    settling = {tp for tp in status.having(*doubted) if tp not in suspects and tp not in status.reassignments}
    return replace(status, by_partition={**status.by_partition, **dict.fromkeys(sorted(settling), Status.MOVING)})


def _read_once(cluster: Cluster, ends: Ends) -> PlanStatus:
    reassignments = cluster.reassignments()
    live = cluster.partitions({tp.topic for tp in ends.targets})
    by_partition = {tp: ends.status(tp, live.get(tp), reassignments.get(tp)) for tp in sorted(ends.targets)}
    return PlanStatus(by_partition, live, reassignments)


def _goes_on(reassignment: Reassignment, way: tuple[tuple[int, ...], ...]) -> bool:
    """Whether a reassignment is to the target, or to a stage from one before: the plan never asks for the way back.

    What replaces a move to the next stage by the stage where it began is such a way back, too.
    """
    if reassignment.target not in way or reassignment.target == way[-1]:
        return reassignment.target in way
    before = frozenset(reassignment.replicas) - set(reassignment.adding)
    return all(before != set(here) for here in way[way.index(reassignment.target) :])


def at_rest(replicas: tuple[int, ...], origin: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether replicas that do not move are a place on the way: its begin, a stage, or what a cancel leaves of one."""
    if replicas == origin:
        return True
    way = (origin, *stages(origin, target))
    return any(
        replicas in (here, after_cancel(here, following), after_cancel(here, target))
        for here, following in pairwise(way)
    )


def next_stage(replicas: tuple[int, ...], origin: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The list that follows for a partition that rests on its way, where it takes one new replica at a time."""
    way = (origin, *stages(origin, target))
    here = [place for place, passed in enumerate(way[:-1]) if set(passed) == set(replicas)]
    return way[here[-1] + 1] if here else target


def listing(partitions: Mapping[TopicPartition, object] | list[TopicPartition], most: int = 10) -> str:
    """The first few partitions, for a message."""
    names = [str(partition) for partition in list(partitions)[:most]]
    return ", ".join(names) + (f" and {len(partitions) - most} more" if len(partitions) > most else "")
