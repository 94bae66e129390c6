"""A plan from its first check to its last: preflight, throttles, moves, and the way out.

The way out is the same whatever happened: moves of ours that are still under way are cancelled where that leaves every
partition a leader, since they must not run on without a throttle; then exactly the throttles that stood before are put
back. A process that is killed cannot do this: whoever runs the plan again, or restores its throttles, does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.cancellation import cancel_own
from rebalance_lib.execution.clean_up import Leaving, note_leaving
from rebalance_lib.execution.commands.plan_state import tried
from rebalance_lib.execution.executor import Executor
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirMove, log_dir_moves
from rebalance_lib.execution.messages import Tell, safely
from rebalance_lib.execution.new_partitions import add_partitions
from rebalance_lib.execution.plan_status import PlanStatus, Status, listing, read_status
from rebalance_lib.execution.preflight import preflight
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.audit import write_audit
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.report import Report
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.apply import forget_override
from rebalance_lib.execution.throttles.maintain import set_throttles
from rebalance_lib.execution.throttles.restore import Restored, restore_throttles
from rebalance_lib.execution.throttles.saved import SavedThrottles, stale_throttles
from rebalance_lib.topology import TopicPartition

CANCEL_ATTEMPTS = 3
ELECTION_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The cluster against a plan, log dirs included."""

    status: PlanStatus
    log_dirs_left: list[LogDirMove]

    @property
    def reached(self) -> bool:
        """Whether nothing of the plan is left to do."""
        return not self.log_dirs_left and not self.status.having(Status.PENDING, Status.MOVING, Status.DRIFTED)

    def __str__(self) -> str:
        counts = {kind: self.status.having(kind) for kind in Status}
        text = f"{len(counts[Status.DONE])} of {len(self.status.by_partition)} partitions are where the plan says"
        for kind in (Status.MOVING, Status.PENDING, Status.DRIFTED, Status.MISSING):
            if counts[kind]:
                text += f"; {len(counts[kind])} {kind}: {listing(counts[kind])}"
        if self.log_dirs_left:
            named = ", ".join(str(move.replica) for move in self.log_dirs_left[:5])
            text += f"; {len(self.log_dirs_left)} replicas are not in their log dir: {named}"
        return text + "."


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended: what the cluster is against the plan, and what could not be put back."""

    comparison: Comparison
    restored: Restored

    @property
    def reached(self) -> bool:
        """Whether nothing of the plan is left to do."""
        return self.comparison.reached

    @property
    def verdict(self) -> str:
        """One sentence on where the plan stands."""
        return str(self.comparison)


def run_plan(
    cluster: Cluster,
    job: Job,
    settings: Settings,
    *,
    interval: float,
    approved_by: str,
    approved_at: str = "",
    before_changes: Callable[[], object] = lambda: None,
    tell: Tell = lambda _: None,
    on_report: Callable[[Report], None] = lambda _: None,
) -> Ending:
    """Carry a plan out, from the first check to the last; run again at any moment, it goes on where it was.

    Args:
        cluster: The live cluster.
        job: What is to be carried out.
        settings: How.
        interval: Seconds between two checks.
        approved_by: Who approved it, for the record.
        approved_at: When.
        before_changes: Called when the cluster was found fit for the plan, before anything is changed.
        tell: Takes words for people; what goes wrong in telling does not end the run.
        on_report: Takes each report; the same holds.

    Raises:
        ClusterError: It was refused, or could not be brought to its end; the way out was taken then.
    """
    tell = safely(tell)
    leaving = Leaving(job.artifacts)
    try:
        found = preflight(cluster, job, settings)
    except ClusterError as error:
        if stale_throttles(job.artifacts):
            raise type(error)(
                f"{error}. Throttles of an earlier try still stand: run throttles --restore {job.artifacts.uri}"
            ) from error
        raise
    for remark in found.remarks:
        tell(remark)
    before_changes()
    try:
        set_throttles(cluster, job, found.status, settings, leaving=leaving)
        add_partitions(cluster, job)
        Executor(cluster, job, settings, tell=tell, leaving=leaving).run(interval, safely(on_report))
        restored = leave(cluster, job, settings, tell=tell)
        compared = finish(cluster, job, settings, approved_by=approved_by, approved_at=approved_at, tell=tell)
        return Ending(compared, restored)
    except BaseException as error:
        _leave_early(cluster, job, settings, tell)
        early = f"ended early: {type(error).__name__} {error}".rstrip()
        with _told(tell, "the record of the run could not be written"):
            write_audit(
                job,
                settings,
                verdict=early,
                approved_by=approved_by,
                approved_at=approved_at,
                written_at=cluster.clock.timestamp(),
            )
        raise


def _leave_early(cluster: Cluster, job: Job, settings: Settings, tell: Tell) -> None:
    """Take the way out, also where it was begun and interrupted; that it fails must not hide why it was taken."""
    try:
        leave(cluster, job, settings, tell=tell)
    except Exception as error:
        tell(
            f"the way out could not be taken ({error}): throttles may stand and moves may be under way; run the plan "
            f"again, or throttles --restore {job.artifacts.uri}"
        )


def leave(cluster: Cluster, job: Job, settings: Settings, *, tell: Tell = lambda _: None) -> Restored:
    """The way out: cancel what is still under way of ours, then put back the throttles that stood before.

    Moves that can not be cancelled keep their throttle: it stays saved, and is told. What cannot be written down on the
    way is told, and keeps nothing from being put back. A plan that was never begun to be carried out has nothing under
    way: what is, is somebody else's.
    """
    tell = safely(tell)
    journal = Journal(job.artifacts, cluster.clock)
    with _told(tell, "that the run is left could not be noted, an engine elsewhere may go on"):
        note_leaving(job.artifacts, cluster.clock)
    kept = None
    if settings.cancel_on_failure and _may_have_begun(job):
        kept = _cancel(cluster, job, journal, tell) or _moving(cluster, job)
    if kept is None:
        restored = restore_throttles(cluster, job.artifacts)
    else:
        restored = Restored(left=dict.fromkeys(stale_throttles(job.artifacts), kept))
    with _told(tell, "the rate that was asked for is kept, the next run begins with it"):
        forget_override(job.artifacts)
    if restored.topics or restored.brokers or restored.left:
        journal.note(
            events.THROTTLE_RESTORED, topics=restored.topics, brokers=restored.brokers, left=dict(restored.left)
        )
        tell(f"throttles {restored}")
    journal.flush()
    return restored


@contextmanager
def _told(tell: Tell, what: str) -> Iterator[None]:
    """Tell what goes wrong with the run's notes, and go on."""
    try:
        yield
    except (RebalanceError, OSError, ValueError) as error:
        tell(f"{what}: {error}")


def _may_have_begun(job: Job) -> bool:
    """Whether moves under way may be the plan's own; what cannot be read now counts so."""
    with suppress(RebalanceError, OSError, ValueError):
        return tried(job.artifacts, job.plan, job.cluster_id)
    return True


def _cancel(cluster: Cluster, job: Job, journal: Journal, tell: Tell) -> str | None:
    """Cancel our moves under way; returns why some go on, so that throttles must stay, or None if none does."""
    kept: dict[TopicPartition, str] = {}
    for attempt in range(1, CANCEL_ATTEMPTS + 1):
        try:
            cancelled, kept = cancel_own(cluster, job)
        except ClusterError as error:
            if attempt == CANCEL_ATTEMPTS:
                tell(f"moves under way could not be cancelled: {error}")
                return f"moves under way could not be cancelled and need it: {error}"
            cluster.clock.sleep(2.0 * attempt)
            continue
        if cancelled:
            tell(f"{len(cancelled)} moves under way were cancelled ({listing(cancelled)}); run the plan again to go on")
        for tp in cancelled:
            journal.note(events.CANCELLED, by="the way out", partition=str(tp))
        break
    if not kept:
        return None
    journal.note("not cancelled", reasons={str(tp): reason for tp, reason in kept.items()})
    return f"{len(kept)} moves go on and need it: {next(iter(kept.values()))}"


def _moving(cluster: Cluster, job: Job) -> str | None:
    """Why throttles must stay though nothing of the plan moves: a plan that the run had before does."""
    if not stale_throttles(job.artifacts):
        return None
    throttled = SavedThrottles(job.artifacts, job.cluster_id).partitions
    moving = sorted(throttled & cluster.reassignments().keys())
    return f"{len(moving)} moves that are none of the plan go on and need it: {listing(moving, 3)}" if moving else None


def finish(
    cluster: Cluster,
    job: Job,
    settings: Settings,
    *,
    approved_by: str,
    approved_at: str,
    tell: Tell = lambda _: None,
) -> Comparison:
    """Elect the preferred leaders of what was moved, compare cluster and plan, and write the record of the run.

    Leaders that do not change are told, and written down with the reason: they can be elected again at any time.
    """
    status = read_status(cluster, job.plan, job.before, doubted=(Status.DRIFTED, Status.PENDING))
    behind = [tp for tp in status.having(Status.DONE) if status.live[tp].leader != job.targets[tp][0]]
    journal = Journal(job.artifacts, cluster.clock)
    for start in range(0, len(behind), settings.election_batch):
        batch = behind[start : start + settings.election_batch]
        refused = elect(cluster, batch)
        if elected := [str(tp) for tp in batch if tp not in refused]:
            journal.note("leaders elected", partitions=elected)
        if refused:
            reasons = {str(tp): reason for tp, reason in refused.items()}
            journal.note("leaders not elected", reasons=reasons)
            first = next(iter(refused.values()))
            safely(tell)(f"{len(refused)} preferred leaders were not elected ({listing(refused)}): {first}")
    journal.flush()
    comparison = Comparison(status, [move for move in log_dir_moves(cluster, job.log_dirs) if not move.ended])
    write_audit(
        job,
        settings,
        verdict=str(comparison),
        approved_by=approved_by,
        approved_at=approved_at,
        written_at=cluster.clock.timestamp(),
    )
    return comparison


def elect(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, str]:
    """Elect preferred leaders, and wait until the brokers have heard of it; returns why some did not change."""
    refused = cluster.elect_preferred_leaders(partitions)
    deadline = cluster.clock.monotonic() + ELECTION_SECONDS
    while True:
        live = cluster.partitions({tp.topic for tp in partitions})
        behind = [tp for tp in partitions if tp in live and live[tp].leader != live[tp].replicas[0]]
        if refused.keys() >= set(behind) or cluster.clock.monotonic() > deadline:
            late = f"another broker still led it {ELECTION_SECONDS:.0f} s later"
            return {tp: refused.get(tp, late) for tp in behind}
        cluster.clock.sleep(0.2)
