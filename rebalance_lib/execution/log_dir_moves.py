"""Replicas between the log dirs of their broker: start, follow and cancel.

A plan may name the log dir of a replica. The broker copies the replica there beside the one it has (a *future* replica)
and then swaps the two. A replica that is only coming to the broker is put into the log dir at once, if the broker was
asked before it came; so it is asked twice: before the reassignment, and again until the replica is there.

Example: ``foo-0`` on broker 1 is in ``/a`` and planned for ``/b``. In ``/a`` without a copy it is *not moving*, with a
copy in ``/b`` it is *moving*, with one in ``/c`` it goes *elsewhere*, in ``/b`` it is *done*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rebalance_lib.cluster import Cluster, Replica
from rebalance_lib.errors import ClusterError, InvalidInputError
from rebalance_lib.plan import Plan
from rebalance_lib.plan.faults import ANY_LOG_DIR
from rebalance_lib.topology import TopicPartition

ASK_AGAIN_SECONDS = 0.1


class LogDirStatus(StrEnum):
    """Where a replica stands whose log dir the plan names."""

    DONE = "done"
    MOVING = "moving"
    NOT_MOVING = "not moving"
    ELSEWHERE = "elsewhere"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LogDirMove:
    """A replica with the log dir that the plan names, the one it is in and the one it is copied to."""

    replica: Replica
    target: str
    current: str | None
    future: str | None
    silent: bool = False  # its broker is alive, but does not answer

    @property
    def status(self) -> LogDirStatus:
        """Where it stands."""
        if self.silent:
            return LogDirStatus.UNKNOWN
        if self.current is None and self.future is None:
            return LogDirStatus.MISSING
        if self.future is not None:
            return LogDirStatus.MOVING if self.future == self.target else LogDirStatus.ELSEWHERE
        return LogDirStatus.DONE if self.current == self.target else LogDirStatus.NOT_MOVING

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: it is in its log dir, or not on the broker."""
        return self.status in (LogDirStatus.DONE, LogDirStatus.MISSING)


def planned_log_dirs(plan: Plan) -> dict[Replica, str]:
    """The log dirs that a plan names, by replica."""
    return {
        Replica(entry.topic, entry.partition, broker): log_dir
        for entry in plan
        if entry.log_dirs is not None
        for broker, log_dir in zip(entry.replicas, entry.log_dirs, strict=True)
        if log_dir != ANY_LOG_DIR
    }


def log_dir_moves(cluster: Cluster, targets: Mapping[Replica, str]) -> list[LogDirMove]:
    """Where each replica stands that is to be in one of these log dirs.

    Those of dead brokers are missing; of those of brokers that do not answer nothing is known.
    """
    if not targets:
        return []
    alive = set(cluster.alive_brokers())
    partitions = {TopicPartition(replica.topic, replica.partition) for replica in targets}
    silent: set[int] = set()
    found = cluster.replica_log_dirs({replica.broker for replica in targets} & alive, partitions, silent=silent)
    moves = []
    for replica, target in sorted(targets.items()):
        place = found.get(replica)
        current, future = (place.current, place.future) if place else (None, None)
        moves.append(LogDirMove(replica, target, current, future, replica.broker in silent))
    return moves


def check_log_dirs(cluster: Cluster, plan: Plan) -> None:
    """Refuse a log dir that its broker does not have, before anything is changed."""
    targets = planned_log_dirs(plan)
    for broker in sorted({replica.broker for replica in targets}):
        paths = {log_dir.path for log_dir in cluster.log_dirs(broker, ())}
        for replica, log_dir in sorted(targets.items()):
            if replica.broker == broker and log_dir not in paths:
                raise InvalidInputError(f"{replica}: broker {broker} has no log dir {log_dir}; it has {sorted(paths)}")


def start_log_dir_moves(cluster: Cluster, targets: Mapping[Replica, str], timeout_seconds: float) -> None:
    """Ask the brokers until each holds its replica and has begun to move it, at most that long.

    Raises:
        ClusterError: Some replicas had not come to their brokers in time.
    """
    deadline = cluster.clock.monotonic() + timeout_seconds
    pending = dict(targets)
    while pending:
        missing = cluster.alter_replica_log_dirs(pending)
        pending = {replica: pending[replica] for replica in missing}
        if pending and cluster.clock.monotonic() >= deadline:
            plural = "" if len(pending) == 1 else "s"
            raise ClusterError(
                f"Timed out before log directory move{plural} could be started for: "
                f"{','.join(map(str, sorted(pending)))}; run the command again with --additional, or a longer --timeout"
            )
        if pending:
            cluster.clock.sleep(ASK_AGAIN_SECONDS)


def cancel_log_dir_moves(
    cluster: Cluster, plan: Plan, timeout_seconds: float, *, only_own: bool = False
) -> list[Replica]:
    """Stop the copies under way of the plan's replicas: each stays in the log dir that it is in.

    With ``only_own``, those that go to another log dir than the plan's are left alone: somebody else began them.
    """
    moves = log_dir_moves(cluster, planned_log_dirs(plan))
    if silent := sorted({move.replica.broker for move in moves if move.silent}):
        raise ClusterError(f"brokers {silent} do not answer, and may copy replicas between log dirs: look at them")
    under_way = {
        move.replica: move.current
        for move in moves
        if move.future and move.current is not None and (move.status is LogDirStatus.MOVING or not only_own)
    }
    start_log_dir_moves(cluster, under_way, timeout_seconds)
    return sorted(under_way)
