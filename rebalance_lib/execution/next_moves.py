"""What can be begun next of a plan.

A step is a move with what to ask for: a new replica list for a partition, or another log dir for a replica that is on
its broker already. A partition whose log dirs change too takes its replicas first, and its log dirs when they are
there. A new replica is given its log dir before it comes: the plan's, or else the one with the most space.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from rebalance_lib.cluster import Cluster, PartitionMetadata, Replica
from rebalance_lib.execution.disk_space import DiskSpace
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirMove, LogDirStatus
from rebalance_lib.execution.plan_status import PlanStatus, Status, next_stage
from rebalance_lib.execution.progress import Copy, read_sizes
from rebalance_lib.plan.waves import Move
from rebalance_lib.topology import TopicPartition

SizeOf = Callable[[TopicPartition], int]


@dataclass(frozen=True, slots=True)
class Step(Move):
    """A move that can begin.

    Args:
        replicas: the list to ask the controller for; None where only log dirs change.
        log_dirs: the log dirs to ask brokers for.
    """

    replicas: tuple[int, ...] | None = None
    log_dirs: tuple[tuple[Replica, str], ...] = ()


def partition_steps(
    job: Job, status: PlanStatus, size: SizeOf, at_risk: Collection[TopicPartition], *, in_stages: bool
) -> list[Step]:
    """The next step of each partition that rests on its way to its target."""
    return [
        partition_step(job, tp, status.live[tp], size(tp), in_stages=in_stages, at_risk=tp in at_risk)
        for tp in status.having(Status.PENDING)
        if tp in status.live
    ]


def partition_step(
    job: Job, tp: TopicPartition, live: PartitionMetadata, size: int, *, in_stages: bool, at_risk: bool = False
) -> Step:
    """The next step of a partition that rests on its way to its target."""
    target = job.targets[tp]
    wanted = next_stage(live.replicas, job.origins[tp], target) if in_stages else target
    coming = tuple(broker for broker in wanted if broker not in live.replicas)
    named = [(replica, job.log_dirs[replica]) for b in coming if (replica := Replica(*tp, b)) in job.log_dirs]
    return Step(tp, live.leader if coming else None, coming, size, at_risk, wanted, tuple(named))


def log_dir_steps(status: PlanStatus, moves: Iterable[LogDirMove], size: SizeOf) -> list[Step]:
    """A step for each replica that is on its broker, its partition at rest, and in another log dir than planned."""
    steps = []
    for move in moves:
        tp = TopicPartition(move.replica.topic, move.replica.partition)
        rests = status.by_partition.get(tp) is Status.DONE
        if rests and move.status is LogDirStatus.NOT_MOVING:  # one that goes elsewhere is somebody else's
            steps.append(Step(tp, None, (move.replica.broker,), size(tp), log_dirs=((move.replica, move.target),)))
    return steps


def reassigning(status: PlanStatus, size: SizeOf) -> list[Move]:
    """The moves between brokers that are under way."""
    return [
        Move(tp, status.live[tp].leader, status.reassignments[tp].adding, size(tp))
        for tp in status.having(Status.MOVING)
        if tp in status.reassignments and tp in status.live
    ]


def copying_within(moves: Iterable[LogDirMove], size: SizeOf) -> list[Move]:
    """The copies between the log dirs of a broker that are under way."""
    listed = []
    for move in moves:
        if move.status is LogDirStatus.MOVING:
            tp = TopicPartition(move.replica.topic, move.replica.partition)
            listed.append(Move(tp, None, (move.replica.broker,), size(tp)))
    return listed


def with_disk_space(
    cluster: Cluster, steps: Sequence[Step], moving: Sequence[Move], alive: Collection[int], reserve: float
) -> tuple[list[Step], dict[TopicPartition, str]]:
    """The steps that their receivers have space for, each new replica with a log dir; and why the others must wait.

    Args:
        cluster: The live cluster.
        steps: What is to begin.
        moving: The moves between brokers that are under way.
        alive: The brokers that are alive.
        reserve: The part of each log dir that is kept free.
    """
    if not steps:
        return [], {}
    space, size = _read_disks(cluster, steps, moving, alive, reserve)
    chosen: list[Step] = []
    crowded: dict[TopicPartition, str] = {}
    for step in steps:
        named = {replica.broker: path for replica, path in step.log_dirs}
        places = _places(step, space)
        lacking = space.lacking(places, size(step))
        if lacking is not None:
            crowded[step.partition] = lacking
            continue
        chosen_dirs = []
        for broker, path in places.items():
            space.take(broker, str(path), size(step))
            if broker in named or space.log_dirs(broker) > 1:
                chosen_dirs.append((Replica(*step.partition, broker), str(path)))
        chosen.append(replace(step, log_dirs=tuple(chosen_dirs)))
    return chosen, crowded


def that_fit_alone(
    cluster: Cluster, steps: Sequence[Step], moving: Sequence[Move], alive: Collection[int], reserve: float
) -> list[Step]:
    """The steps that would have disk space if no other began."""
    space, size = _read_disks(cluster, steps, moving, alive, reserve)
    return [step for step in steps if space.lacking(_places(step, space), size(step)) is None]


def _places(step: Step, space: DiskSpace) -> dict[int, str | None]:
    named = {replica.broker: path for replica, path in step.log_dirs}
    return {broker: named.get(broker) or space.emptiest(broker) for broker in step.receivers}


def _read_disks(
    cluster: Cluster, steps: Sequence[Step], moving: Sequence[Move], alive: Collection[int], reserve: float
) -> tuple[DiskSpace, Callable[[Move], int]]:
    """The disk space of the receivers of these steps now, and the bytes of a copy: the leader may have grown since."""
    receivers = {broker for step in steps for broker in step.receivers if broker in alive}
    busy = [move for move in moving if receivers.intersection(move.receivers)]
    senders = {move.sender for move in (*steps, *busy) if move.sender in alive and move.sender is not None}
    found = read_sizes(cluster, {move.partition for move in (*steps, *busy)}, receivers | senders)

    def size(move: Move) -> int:
        holder = move.sender if move.sender is not None else next(iter(move.receivers), None)
        return max(move.size, found.bytes.get((move.partition, holder), 0)) if holder is not None else move.size

    copies = [
        Copy(move.partition, broker, found.bytes.get((move.partition, broker), 0), size(move))
        for move in busy
        for broker in move.receivers
        if broker in receivers
    ]
    log_dirs = {broker: listed for broker, listed in found.log_dirs.items() if broker in receivers}
    return DiskSpace(log_dirs, copies, reserve), size
