"""Refuse, before anything is changed, a plan that must not be executed as things are; all reasons at once.

    cluster        it is another one than the plan was made for
    cancelled      somebody asked to end the run
    unknown        partitions are not there and were not there before, and the plan is not there to add them; or the
                   topic has got other partitions since
    foreign        reassignments of somebody else are under way; they are never touched. Where the plan was not begun
                   here before, everything under way is somebody else's, whatever its target
    drift          partitions are no longer where the plan found them; those at their target count as done
    health         all partitions to be moved are offline, or short of a replica that stays, unless the plan is there to
                   repair them: a move of such a partition may never end. Where only some are, these wait
    brokers        target brokers are not alive
    privileges     this user may not do what it takes
    throttle       as much is written to the moving partitions as the throttle lets through, so that their moves
                   would never end; the rate that it would take is named
    log dirs       a log dir that the plan names is not there
    disks          a log dir would overflow while old and new copies are side by side

Once a plan was begun, only what is unknown and what this user may not do is refused: the executor sets aside what
cannot be moved, waits for what will be repaired, and cleans up what was cancelled.

What is written is measured on the spot, over some seconds, from the growth of leaders; where the history knows a higher
peak, that counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rebalance_lib.cluster import Cluster, Replica
from rebalance_lib.errors import ClusterError, DriftError
from rebalance_lib.execution.commands.plan_state import tried
from rebalance_lib.execution.disk_space import Change, DiskSpace, first_without_space
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import log_dir_moves
from rebalance_lib.execution.new_partitions import not_next
from rebalance_lib.execution.plan_status import PlanStatus, Status, listing, read_status
from rebalance_lib.execution.progress import Copy, read_sizes
from rebalance_lib.execution.records.execution import planned_ends
from rebalance_lib.execution.requests import Controls, read_requests
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.stalls import MARGIN
from rebalance_lib.plan.stages import stages
from rebalance_lib.plan.waves import SLOT, slots
from rebalance_lib.topology import TopicPartition

SAMPLE_SECONDS, SHORT_SAMPLE_SECONDS = 2.0, 0.5
LITTLE = 20  # what is written so many times over is below the throttle


@dataclass(frozen=True, slots=True)
class Preflight:
    """A plan that may be executed: the status of its partitions, and what is worth knowing."""

    status: PlanStatus
    remarks: tuple[str, ...] = ()


def preflight(cluster: Cluster, job: Job, settings: Settings | None = None) -> Preflight:
    """Check that a plan may be executed now.

    Raises:
        DriftError: The cluster is not what the plan was made for; other reasons may be listed too.
        ClusterError: It is refused for another reason.
    """
    chosen = settings or Settings()
    live_id = cluster.cluster_id()
    if live_id != job.cluster_id:
        raise DriftError(f"the plan is for cluster {job.cluster_id}, this is {live_id}: check the connection")
    begun = tried(job.artifacts, job.plan, job.cluster_id)
    status = read_status(cluster, ends=planned_ends(job))
    problems = [*_unknown(job, status), *_privileges(cluster, job)]
    if begun and not problems:
        return Preflight(status, (*_remarks(job, status, chosen), *_brokers(cluster, job, status)))
    drift = list(_drift(status))
    problems += [*_cancelled(job), *_foreign(cluster, job, status), *drift, *_health(job, status)]
    problems += _brokers(cluster, job, status)
    if not problems:
        problems += [*_throttle(cluster, job, status, chosen), *_disks(cluster, job, status, chosen)]
    if problems:
        text = "; ".join(problems)
        raise DriftError(text) if drift else ClusterError(text)
    return Preflight(status, tuple(_remarks(job, status, chosen)))


def _remarks(job: Job, status: PlanStatus, settings: Settings) -> Iterator[str]:
    """What is worth knowing, though it is no reason to refuse the plan."""
    yield from _drift(status)
    if late := _unhealthy(job, status):
        yield f"{len(late)} partitions are not in sync and wait until they are: {listing(late)}"
    if missing := status.having(Status.MISSING):
        yield f"{len(missing)} partitions belong to deleted topics and are left out: {listing(missing)}"
    factors = [tp for tp, target in job.targets.items() if len(target) != len(job.origins.get(tp, target))]
    if factors:
        yield f"{len(factors)} partitions get another replication factor: {listing(factors)}"
    for request in read_requests(job.artifacts):
        yield f"{request}, since the run began"
    if settings.pace.throttle is None and any(job.coming(tp) for tp in status.having(Status.PENDING)):
        yield "replicas are copied without a throttle"


def _cancelled(job: Job) -> Iterator[str]:
    if cancelled := Controls.of(Settings(), read_requests(job.artifacts)).cancelled:
        yield f"{cancelled}: clean the run up first, then it can begin again"


def _unknown(job: Job, status: PlanStatus) -> Iterator[str]:
    new = [tp for tp in status.having(Status.MISSING) if tp not in job.origins]
    if new and not job.adds:
        yield (
            f"{len(new)} partitions are not there and never were ({listing(new)}): a plan that adds partitions is "
            "executed with add-partitions"
        )
    elif strange := not_next(new, status.live):
        yield f"{listing(strange)} cannot be added: the topic is gone, or has got other partitions since; plan again"


def _foreign(cluster: Cluster, job: Job, status: PlanStatus) -> Iterator[str]:
    """What is under way: of a plan that is tried for the first time, nothing is its own."""
    foreign = sorted(status.reassignments)
    copies = [move for move in log_dir_moves(cluster, job.log_dirs) if move.future is not None]
    if foreign:
        yield (
            f"{len(foreign)} reassignments of somebody else are under way ({listing(foreign)}): "
            "wait until they end, or cancel them with the tool that started them"
        )
    if copies:
        named = ", ".join(str(move.replica) for move in copies[:5])
        yield f"somebody else copies {len(copies)} replicas between log dirs ({named}): wait until that ends"


def _drift(status: PlanStatus) -> Iterator[str]:
    if drifted := status.having(Status.DRIFTED, Status.RECREATED):
        yield f"{len(drifted)} partitions are no longer where the snapshot saw them ({listing(drifted)}): plan again"


def _health(job: Job, status: PlanStatus) -> Iterator[str]:
    unhealthy = _unhealthy(job, status)
    if unhealthy and len(unhealthy) == len(status.having(Status.PENDING, Status.MOVING)):
        brokers = sorted({broker for late in unhealthy.values() for broker in late})
        yield (
            f"{len(unhealthy)} partitions to be moved are offline or under-replicated ({listing(unhealthy)}), replicas "
            f"on brokers {brokers} are not in sync: repair these brokers first, or plan with mode repair"
        )


def _unhealthy(job: Job, status: PlanStatus) -> dict[TopicPartition, list[int]]:
    """Partitions to be moved that have no leader, or lack a replica that stays, with the brokers that are late."""
    found = {}
    for tp in () if job.repair else status.having(Status.PENDING):
        live = status.live[tp]
        late = sorted(set(live.replicas) - live.in_sync)
        if live.leader is None or set(late) & set(job.targets[tp]):
            found[tp] = late or sorted(live.replicas)
    return found


def _brokers(cluster: Cluster, job: Job, status: PlanStatus) -> Iterator[str]:
    unfinished = status.having(Status.PENDING, Status.MOVING)
    if dead := sorted({broker for tp in unfinished for broker in job.targets[tp]} - cluster.alive_brokers().keys()):
        yield f"target brokers {dead} are not alive: start them, or plan again without them"


def _privileges(cluster: Cluster, job: Job) -> Iterator[str]:
    if missing := cluster.missing_operations({tp.topic for tp in job.targets}):
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        yield f"this user may not {', '.join(missing[:5])}{more}: grant it, or connect as another user"


def _throttle(cluster: Cluster, job: Job, status: PlanStatus, settings: Settings) -> Iterator[str]:
    pace = Controls.of(settings, read_requests(job.artifacts)).settings.pace
    moving = [tp for tp in status.having(Status.PENDING, Status.MOVING) if job.coming(tp)]
    throttle = pace.throttle
    if throttle is None or not moving:
        return
    measured, sizes = write_rates(cluster, status, moving, throttle)
    rates = {tp: max(measured.get(tp, 0.0), job.write_rates.get(tp, 0.0)) for tp in moving}
    incoming: dict[int, list[Written]] = defaultdict(list)
    outgoing: dict[int, list[Written]] = defaultdict(list)
    for tp in moving:
        leader = status.live[tp].leader
        written = Written(rates[tp], slots(sizes.get((tp, leader), 0) if leader is not None else 0))
        for broker in job.coming(tp):
            incoming[broker].append(written)
        if leader is not None:
            outgoing[leader] += [written] * (1 if pace.one_replica_at_a_time else len(job.coming(tp)))
    needed, broker, way = max(
        [
            *((_most(listed, pace.moves_in), broker, "to") for broker, listed in incoming.items()),
            *((_most(listed, pace.moves_out), broker, "from") for broker, listed in outgoing.items()),
        ]
    )
    if needed * MARGIN >= throttle:
        yield (
            f"the throttle of {throttle} bytes/s is too low: up to {needed:.0f} bytes/s are written to partitions "
            f"that move {way} broker {broker} together, so that they would never arrive; it would take "
            f"{math.ceil(needed * 1.5)} or more, or fewer moves at a time"
        )


class Written(NamedTuple):
    """What is written to a partition that moves, in bytes per second, and the part of a slot that it takes."""

    rate: float
    slots: int


def _most(moves: list[Written], cap: int | None) -> float:
    """The most that may be written to the moves of a broker that are under way together; the last may count in part."""
    left = float("inf") if cap is None else cap * SLOT
    most = 0.0
    for move in sorted(moves, key=lambda one: one.rate / one.slots, reverse=True):
        most += move.rate * min(1.0, left / move.slots)
        left -= move.slots
        if left <= 0:
            break
    return most


def write_rates(
    cluster: Cluster, status: PlanStatus, partitions: list[TopicPartition], throttle: int
) -> tuple[dict[TopicPartition, float], dict[tuple[TopicPartition, int], int]]:
    """Bytes per second written to each partition, as its leader grows; and what leaders have.

    A short sample is enough where next to nothing is written beside what the throttle lets through.
    """
    leaders = {tp: leader for tp in partitions if (leader := status.live[tp].leader) is not None}
    brokers = set(leaders.values()) & cluster.alive_brokers().keys()
    earlier, begun = read_sizes(cluster, partitions, brokers), cluster.clock.monotonic()
    for seconds in (SHORT_SAMPLE_SECONDS, SAMPLE_SECONDS - SHORT_SAMPLE_SECONDS):
        cluster.clock.sleep(max(0.0, seconds))
        later, elapsed = read_sizes(cluster, partitions, brokers), cluster.clock.monotonic() - begun
        grown = {
            tp: later.bytes.get((tp, leader), 0) - earlier.bytes.get((tp, leader), 0) for tp, leader in leaders.items()
        }
        rates = {tp: max(0.0, size / elapsed) for tp, size in grown.items()}
        if sum(rates.values()) * LITTLE < throttle:
            break
    return rates, later.bytes


def _disks(cluster: Cluster, job: Job, status: PlanStatus, settings: Settings) -> Iterator[str]:
    """Whether every copy finds its log dir, with space for old and new side by side, whatever the order."""
    unfinished = status.having(Status.PENDING, Status.MOVING)
    named = {TopicPartition(replica.topic, replica.partition) for replica in job.log_dirs}
    placed = [tp for tp in status.having(Status.DONE) if tp in named]
    partitions = [*unfinished, *placed]
    involved = {broker for tp in partitions for broker in (*job.targets[tp], *status.live[tp].replicas)}
    found = read_sizes(cluster, partitions, involved & cluster.alive_brokers().keys())
    paths = {broker: {log_dir.path for log_dir in listed} for broker, listed in found.log_dirs.items()}
    lost = [
        f"{replica} is planned for {path}, broker {replica.broker} has {sorted(paths[replica.broker])}"
        for replica, path in sorted(job.log_dirs.items())
        if replica.broker in paths and path not in paths[replica.broker]
    ]
    if lost:
        yield f"log dirs that the plan names are not there ({'; '.join(lost[:5])}): plan again"
        return
    held = {
        (one.partition, broker): (log_dir.path, one.size)
        for broker, listed in found.log_dirs.items()
        for log_dir in listed
        for one in log_dir.replicas
        if not one.future
    }
    ways = [_way(job, tp, status, held, in_stages=settings.pace.one_replica_at_a_time) for tp in partitions]
    copies = [
        Copy(tp, broker, held[tp, broker][1], _size(tp, status, held))
        for tp in status.having(Status.MOVING)
        for broker in job.coming(tp)
        if (tp, broker) in held
    ]
    stuck = first_without_space(DiskSpace(found.log_dirs, copies, settings.disk_reserve), ways)
    if stuck is not None:
        yield (
            f"not enough disk space while old and new copies are side by side ({stuck}, with "
            f"{settings.disk_reserve:.0%} of it kept free): free some, plan with less, or move one replica at a time"
        )


def _size(tp: TopicPartition, status: PlanStatus, held: Mapping[tuple[TopicPartition, int], tuple[str, int]]) -> int:
    """The bytes of a copy: what the leader has; the most that anybody has, if there is none."""
    live = status.live[tp]
    brokers = live.replicas if live.leader is None else (live.leader,)
    return max((held[tp, broker][1] for broker in brokers if (tp, broker) in held), default=0)


def _way(
    job: Job,
    tp: TopicPartition,
    status: PlanStatus,
    held: Mapping[tuple[TopicPartition, int], tuple[str, int]],
    *,
    in_stages: bool,
) -> list[Change]:
    """What a partition takes and frees on the log dirs, stage by stage; what came already takes what it lacks."""
    live, target = status.live[tp], job.targets[tp]
    size = _size(tp, status, held)
    here = tuple(broker for broker in live.replicas if broker not in job.coming(tp)) or live.replicas
    changes = []
    for before, after in pairwise((here, *(stages(here, target) if in_stages else (target,)))):
        coming = {b: job.log_dirs.get(Replica(*tp, b)) for b in after if b not in before and (tp, b) not in held}
        removed = tuple((b, *held[tp, b]) for b in before if b not in after and (tp, b) in held)
        changes.append(Change(tp, size, coming, removed))
    for broker in target:
        path = job.log_dirs.get(Replica(*tp, broker))
        if path is not None and (tp, broker) in held and held[tp, broker][0] != path:
            old, own = held[tp, broker]
            changes.append(Change(tp, own, {broker: path}, ((broker, old, own),)))
    return changes
