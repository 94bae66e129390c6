"""What must hold when all is over: the run, what people asked for, and the next snapshot.

    liveness    once faults have ceased, every process ends by itself in bounded simulated time
    targets     every partition is at its target, or the run names it with the reason
    moves_left  no move of the run is under way any more, unless the run says that it must go on
    throttles   as they were before the run, plus what others changed since
    record      the record of the run is there and complete

Like `simulator.invariants`, this is judged by the truth of the cluster, the log of requests, and what faults did.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rebalance_lib.cluster import Replica
from rebalance_lib.topology import TopicPartition
from simulator.configs import LOG_DIR_RATE, RATES, REPLICA_LISTS
from simulator.ledger import LAG_SECONDS, TIMEOUT_SECONDS

if TYPE_CHECKING:
    from simulator.cluster import Request
    from simulator.invariants import Invariants
    from simulator.supervisor import Run
    from simulator.world import World

LATE_SECONDS = 30.0  # before the end of a run: what happens then, no check may have seen
UNWRITTEN_SECONDS = 15.0  # what happened so shortly before a process was killed may be missing in the record


def judge_end(world: World, invariants: Invariants) -> None:
    """Judge the end of a simulation."""
    if not world.supervisor.done:
        # A run that was paused waits for a person, who cannot resume it without storage.
        if world.ledger.storage_dead and (world.ledger.paused or world.ledger.closed):
            return
        # Where the request to resume, or to open the window, is damaged, the one before counts: nobody who is started
        # again could know better. The run says that it is held, and by whom, and a person asks again.
        report = world.supervisor.run.said.report
        held = " ".join(report.holds) if report is not None else ""
        if world.ledger.requests_torn and ("pause requested" in held or "is closed" in held):
            return
        working = [process.name for process in world.supervisor.working]
        invariants.violate(
            "liveness",
            f"faults have ceased {world.scheduler.now - world.calm_at:.0f} s ago, {working or 'nobody'} still works",
        )
        return
    _targets(world, invariants)
    _moves_left(world, invariants)
    _rates(world, invariants)
    _gone_brokers(world, invariants)
    _lists(world, invariants)
    _record(world, invariants)


def _targets(world: World, invariants: Invariants) -> None:
    """The last run is judged: after a rollback, what the first run did is undone or named by the rollback."""
    run = world.supervisor.run
    ledger = world.ledger
    # A person may end a run, bound its time or take topics out of it: what was not moved then is no failure.
    if ledger.cancelled_at is not None or ledger.max_run_time:
        return
    # Without storage nothing may begin: what a run does could not be undone, and its error says so.
    if ledger.storage_dead:
        return
    if (run.last_error or run.given_up) and not _begun(world, run) and _may_be_refused(world, run):
        return
    for tp, wrong in not_at_target(world, run).items():
        # What others move after the run has ended is not the run's.
        if tp in run.not_at_target and tp.topic not in ledger.excluded and not _named(world, run, tp):
            invariants.violate("targets", f"{tp} {wrong}; the run does not say why: {_verdict(run)}")


def _may_be_refused(world: World, run: Run) -> bool:
    """Whether a plan of which nothing has begun may be refused altogether, as things are: the error says why.

    That is so for what concerns the plan as a whole: target brokers that are not there, reassignments of somebody else
    under way, disks that are too small, a throttle below what is written; and for drift, since a plan that was made for
    another cluster than this one is better made anew. A partition that is out of sync must not keep the others from
    moving; and once something has begun, nothing may be refused.
    """
    brokers = {broker for target in run.job.targets.values() for broker in target}
    if any(not world.cluster.brokers[broker].working for broker in brokers) or world.ledger.foreign:
        return True
    error = f"{run.last_error} {run.given_up}"
    return any(words in error for words in ("disk space", "is too low", "plan again"))


def not_at_target(world: World, run: Run) -> dict[TopicPartition, str]:
    """The partitions of a run that are not at their target now, and where they are; those of deleted topics are not."""
    found = {}
    for tp, target in run.job.targets.items():
        if tp in world.cluster.partitions and (wrong := _where(world, run, tp, target)):
            found[tp] = wrong
    return found


def bytes_lacking(world: World, run: Run) -> float:
    """The bytes that a run has still to copy: those that replicas of its targets, or copies within brokers, lack."""
    now, lacking = world.scheduler.now, 0.0
    for tp, target in run.job.targets.items():
        partition = world.cluster.partitions.get(tp)
        if partition is None:
            continue
        for broker in target:
            log, path = partition.logs.get(broker), run.job.log_dirs.get(Replica(*tp, broker))
            held = 0.0 if log is None else partition.size_at(log, now)
            if log is not None and path is not None and log.path != path:
                held = 0.0 if log.future is None else log.future.size_at(now)
            lacking += max(0.0, partition.end_at(now) - held)
    return lacking


def _where(world: World, run: Run, tp: TopicPartition, target: tuple[int, ...]) -> str:
    """How a partition is not at its target; empty if it is."""
    state = world.cluster.partitions[tp].state
    if state.replicas != target or state.reassigning:
        return f"is on {list(state.replicas)}, not on {list(target)}"
    # Whoever died for good after its copy had arrived, or lost its log dir, is missed in the ISR, not at the target.
    lost = set(target) - set(state.isr) - world.ledger.gone
    lost -= {
        broker for broker in lost if not all(one.online for one in world.cluster.brokers[broker].log_dirs.values())
    }
    if lost:
        return f"is not in sync on {sorted(lost)}"
    logs = world.cluster.partitions[tp].logs
    for replica, path in run.job.log_dirs.items():
        if (
            (replica.topic, replica.partition) == tp
            and replica.broker in logs
            and replica.broker not in world.ledger.gone
        ):
            log = logs[replica.broker]
            broken = not all(one.online for one in world.cluster.brokers[replica.broker].log_dirs.values())
            if log.path != path and not broken:
                return f"is in {log.path} of broker {replica.broker}, not in {path}"
    return ""


def _named(world: World, run: Run, tp: TopicPartition) -> bool:
    """Whether the run says of a partition why it is not at its target."""
    if tp in run.said.set_aside or str(tp) in f"{run.last_error} {run.given_up}":
        return True
    # What others did to a partition right before the end is seen by the last comparison alone, which names it without
    # a reason; of a topic that was deleted, or created again, "missing" or "recreated" is the reason.
    ledger = world.ledger
    touched = ledger.foreign_touched.get(tp, -1e9)
    # The last check is before the clean-up, which a broker that hangs makes long.
    cleaned_up_at = world.disk.changed.get(f"{world.uri}/{run.directory}/clean_up.json", run.ended_at)
    # Metadata did not show it; or the last comparison had read it, and then waited for the log dirs of a broker.
    if touched > run.ended_at - LAG_SECONDS or touched > max(cleaned_up_at, run.ended_at - TIMEOUT_SECONDS):
        return True
    late = touched > min(run.ended_at, cleaned_up_at) - LATE_SECONDS
    if late or tp.topic in ledger.recreated or not hasattr(run.said.ending, "set_aside"):
        return str(tp) in _verdict(run)
    return False


def _verdict(run: Run) -> str:
    said = run.said
    verdict = getattr(said.ending, "verdict", None) or str(said.ending)
    return f"{verdict} {said.report.holds if said.report else ''} {run.last_error}"


def _moves_left(world: World, invariants: Invariants) -> None:
    for tp, move in world.ledger.own.items():
        run = world.plan_of(move.process).run  # also where its rollback followed
        said = run.said
        # Where storage is lost for good, no process that is started again can take the run's lock, and without it none
        # may cancel. The error says so; a run that ended without one is judged.
        if world.ledger.storage_dead and (run.last_error or run.given_up):
            continue
        if "goes on" in said.set_aside.get(tp, ""):
            continue
        # A run without a throttle leaves none: what it says of moves that go on is in its log alone.
        logged = [text for text in said.messages if "go on" in text or "could not be cancelled" in text]
        told = " ".join([*world.supervisor.stale.left.values(), *said.left.values(), *logged])
        # A move whose originals are lost must not be cancelled; it keeps its throttle, and both are named.
        if str(tp) not in told and "go on" not in told and "under way" not in told:
            invariants.violate("moves_left", f"{tp} is still being moved, and nobody says so: {told or 'nothing left'}")


def _rates(world: World, invariants: Invariants) -> None:
    ledger, cluster = world.ledger, world.cluster
    # Without the file that says what was before, nobody can tell the run's throttles from others'. It is written
    # durably, so that the crash of a machine is no excuse.
    if ledger.throttles_torn:
        return
    left = {**world.supervisor.run.said.left, **world.supervisor.stale.left}
    for broker in cluster.brokers:
        if not cluster.brokers[broker].up or (f"broker {broker}" in left and _excused(world, broker)):
            continue
        for key in (*RATES, LOG_DIR_RATE):
            found = cluster.configs.brokers.get(broker, {}).get(key) or None
            shadow, before = ledger.rates.get((broker, key)), ledger.rates_before.get((broker, key))
            # Others deleted a rate while ours was there: whether they meant ours or the one that was there when the
            # run came, which may be one that they set themselves a moment before, nobody knows.
            allowed: set[str | None] = {shadow}
            if shadow is None:
                allowed |= {before, *ledger.rates_of_others.get(broker, ())}
            # The rate of others was set so shortly before ours that the broker did not show it yet.
            if broker in ledger.rates_unseen:
                allowed |= {None, before}
            # With a ceiling, a rate that others lowered is set to ours again, which is documented; then the one before
            # theirs is restored.
            if world.settings.throttle_ceiling is not None:
                allowed.add(before)
            if found not in allowed:
                invariants.violate(
                    "throttles",
                    f"{key} of broker {broker} is {found}, it should be {shadow}; left: {left or 'nothing'}",
                )


def _gone_brokers(world: World, invariants: Invariants) -> None:
    """Nobody waits for ever to restore throttles of a broker that was removed from the cluster; moves that go on do."""
    if world.ledger.own or world.ledger.foreign:
        return
    for broker in sorted(world.ledger.unregistered):
        if f"broker {broker}" in world.supervisor.stale.left:
            words = f"those of broker {broker} are still to be restored, and it is gone for good"
            invariants.violate("throttles", words)


def _excused(world: World, broker: int) -> bool:
    """A rate may stay where moves under way need it, and the run names it; or did, when it was last to be restored."""
    late = world.scheduler.now - LATE_SECONDS
    needed = world.ledger.own or world.ledger.foreign or any(at > late for at in world.ledger.move_ended.values())
    return bool(needed) or broker in world.ledger.gone


def _lists(world: World, invariants: Invariants) -> None:
    ledger, cluster = world.ledger, world.cluster
    if ledger.throttles_torn:
        return
    left = world.supervisor.stale.left
    for topic in sorted({tp.topic for tp in cluster.partitions}):
        if f"topic {topic}" in left and (ledger.own or ledger.foreign):
            continue
        for key in REPLICA_LISTS:
            value = cluster.configs.topics.get(topic, {}).get(key)
            found = set(filter(None, (value or "").split(",")))
            expected = ledger.entries.get((topic, key), set())
            ever = ledger.entries_of_others.get((topic, key), set()) | expected
            shared = {entry for where, entry in ledger.shared_entries if where == topic}
            if more := sorted(found - ever):
                invariants.violate("throttles", f"{key} of {topic} has {more} of the run; left: {left or 'nothing'}")
            if less := sorted(expected - found - shared):
                invariants.violate("throttles", f"{key} of {topic} lacks {less} of somebody else")


def _begun(world: World, run: Run) -> list[Request]:
    """The requests of a run that were applied and began moves."""
    return [
        request
        for request in world.cluster.requests
        if request.name == "reassign"
        and request.applied
        and any(target is not None for target in request.changes.values())
        and world.plan_of(request.process).run is run
    ]


def _record(world: World, invariants: Invariants) -> None:
    """Every move that was begun is in the record, but for the last moments of a process that was killed."""
    run, ledger = world.supervisor.run, world.ledger
    if ledger.storage_broken:
        return  # what could not be written, or was torn, can not be complete
    found = world.disk.files.get(f"{world.uri}/{run.directory}/audit.json")
    begun = _begun(world, run)
    if found is None:
        if begun and not run.cancelled:  # the command that cancels what nobody executes any more writes no record
            invariants.violate("record", f"there is no audit.json, though {len(begun)} requests were applied")
        return
    record: dict[str, Any] = json.loads(found)
    recorded = {move["partition"] for move in record["moves"]}
    for request in begun:
        killed = world.killed_at.get(request.process)
        if killed is not None and _worked(world, request.time, killed) <= UNWRITTEN_SECONDS + world.schedule.interval:
            continue
        lost = [
            str(tp)
            for tp, target in request.changes.items()
            if target is not None and tp not in request.refused and str(tp) not in recorded
        ]
        if lost:
            invariants.violate("record", f"audit.json lacks the moves of {lost}, requested at {request.time:.1f} s")


def _worked(world: World, since: float, until: float) -> float:
    """The seconds between that a process was not stopped in: a process that is stopped writes nothing."""
    stopped = (max(0.0, min(ended, until) - max(begun, since)) for begun, ended in world.ledger.stopped)
    return until - since - sum(stopped)
