"""What can be begun next of a plan, and the requests that begin it.

A step is a move with what to ask for: a new replica list for a partition, or another log dir for a replica that is on
its broker already. A partition whose log dirs change too takes its replicas first, and its log dirs when they are
there. A new replica is given its log dir before it comes: the plan's, or else the one with the most room.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from rebalance_lib.cluster import Cluster, Replica
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
    steps = []
    for tp in status.having(Status.PENDING):
        live, target = status.live[tp], job.targets[tp]
        wanted = next_stage(live.replicas, job.origins[tp], target) if in_stages else target
        coming = tuple(broker for broker in wanted if broker not in live.replicas)
        named = [(replica, job.log_dirs[replica]) for b in coming if (replica := Replica(*tp, b)) in job.log_dirs]
        sender = live.leader if coming else None
        steps.append(Step(tp, sender, coming, size(tp), tp in at_risk, wanted, tuple(named)))
    return steps


def log_dir_steps(status: PlanStatus, moves: Iterable[LogDirMove], size: SizeOf) -> list[Step]:
    """A step for each replica that is on its broker, its partition at rest, and in another log dir than planned."""
    steps = []
    for move in moves:
        tp = TopicPartition(move.replica.topic, move.replica.partition)
        rests = status.by_partition.get(tp) is Status.DONE
        if rests and move.status is LogDirStatus.NOT_MOVING:  # one that goes elsewhere is somebody else's
            steps.append(Step(tp, None, (move.replica.broker,), size(tp), log_dirs=((move.replica, move.target),)))
    return steps


def under_way(status: PlanStatus, moves: Iterable[LogDirMove], size: SizeOf) -> list[Move]:
    """The moves that count against the caps already."""
    listed = [
        Move(tp, status.live[tp].leader, status.reassignments[tp].adding, size(tp))
        for tp in status.having(Status.MOVING)
        if tp in status.reassignments
    ]
    for move in moves:
        if move.status is LogDirStatus.MOVING:
            tp = TopicPartition(move.replica.topic, move.replica.partition)
            listed.append(Move(tp, None, (move.replica.broker,), size(tp)))
    return listed


def with_disk_space(
    cluster: Cluster, steps: Sequence[Step], moving: Sequence[Move], alive: Collection[int], reserve: float
) -> tuple[list[Step], list[str]]:
    """The steps that their receivers have room for, each new replica with a log dir; and why the others must wait."""
    if not steps:
        return [], []
    room, size = _look_at_disks(cluster, steps, moving, alive, reserve)
    chosen: list[Step] = []
    crowded: list[str] = []
    for step in steps:
        named = {replica.broker: path for replica, path in step.log_dirs}
        places = _places(step, room)
        lacking = room.lacking(places, size(step))
        if lacking is not None:
            crowded.append(f"{step.partition}: {lacking}")
            continue
        told = []
        for broker, path in places.items():
            room.take(broker, str(path), size(step))
            if broker in named or room.log_dirs(broker) > 1:
                told.append((Replica(*step.partition, broker), str(path)))
        chosen.append(replace(step, log_dirs=tuple(told)))
    return chosen, crowded


def that_fit_alone(
    cluster: Cluster, steps: Sequence[Step], moving: Sequence[Move], alive: Collection[int], reserve: float
) -> list[Step]:
    """The steps that would have room if no other began."""
    room, size = _look_at_disks(cluster, steps, moving, alive, reserve)
    return [step for step in steps if room.lacking(_places(step, room), size(step)) is None]


def _places(step: Step, room: DiskSpace) -> dict[int, str | None]:
    named = {replica.broker: path for replica, path in step.log_dirs}
    return {broker: named.get(broker) or room.roomiest(broker) for broker in step.receivers}


def _look_at_disks(
    cluster: Cluster, steps: Sequence[Step], moving: Sequence[Move], alive: Collection[int], reserve: float
) -> tuple[DiskSpace, Callable[[Move], int]]:
    """The room on the receivers of these steps now, and the bytes of a copy: the leader may have grown since."""
    receivers = {broker for step in steps for broker in step.receivers if broker in alive}
    busy = [move for move in moving if move.sender is not None and receivers.intersection(move.receivers)]
    senders = {step.sender for step in steps if step.sender in alive and step.sender is not None}
    found = read_sizes(cluster, {move.partition for move in (*steps, *busy)}, receivers | senders)

    def size(move: Move) -> int:
        holder = move.sender if move.sender is not None else next(iter(move.receivers), None)
        return max(move.size, found.bytes.get((move.partition, holder), 0)) if holder is not None else move.size

    copies = [
        Copy(move.partition, broker, found.bytes.get((move.partition, broker), 0), move.size)
        for move in busy
        for broker in move.receivers
        if broker in receivers
    ]
    log_dirs = {broker: listed for broker, listed in found.log_dirs.items() if broker in receivers}
    return DiskSpace(log_dirs, copies, reserve), size


def begin(cluster: Cluster, steps: Sequence[Step]) -> None:
    """Ask for these steps, once: brokers for log dirs, then the controller for replicas.

    Raises:
        ClusterError: Something was not accepted, or the answer was lost; look before you ask again.
    """
    cluster.alter_replica_log_dirs({replica: path for step in steps for replica, path in step.log_dirs})
    targets = {step.partition: step.replicas for step in steps if step.replicas is not None}
    if targets:
        cluster.reassign(targets, attempts=1)
