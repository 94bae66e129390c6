"""Clean up after a run, whatever happened: cancel what is under way, then restore the throttles that were set before.

Moves must not run on without a throttle, so they are cancelled first, where no partition is worse off for it; those
that must not be cancelled keep their throttle, and are named. A process that is killed cannot clean up: whoever runs
the plan again, or restores its throttles, does.

A run may be cleaned up while an executor in another process does not know yet. Where artifacts are files, both hold the
run's lock. Everywhere, the clean-up leaves a mark (``clean_up.json``): whoever executes a plan notices when it changes,
begins nothing more, and cancels what it requested in that very moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.cancellation import cancel_own
from rebalance_lib.execution.commands.plan_state import tried
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.messages import Log, ignore, safely
from rebalance_lib.execution.plan_status import listing
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.requests import Kind, read_requests
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.restore import Restored, restore_throttles
from rebalance_lib.execution.throttles.saved import SavedThrottles, open_saved, stale_throttles
from rebalance_lib.topology import TopicPartition

CLEAN_UP = "clean_up.json"
CANCEL_ATTEMPTS = 3


def mark_clean_up(artifacts: Artifacts, by: str = "", clock: Clock = SYSTEM) -> None:
    """The run is cleaned up from now on."""
    artifacts.write_json(CLEAN_UP, {"at": clock.timestamp(), "by": by, "id": clock.unique_id()})


class CleanUpWatch:
    """Watches whether a run is cleaned up since this was made; ``by`` says by whom, where that is known."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._before = self._read()
        self.by = ""

    def started(self, *, strict: bool = False) -> bool:
        """Whether it is; what cannot be read now counts as unchanged, unless ``strict``."""
        try:
            found = self._read()
        except RebalanceError:
            if strict:
                raise
            return False
        if found == self._before:
            return False
        with suppress(RebalanceError, KeyError, TypeError, AttributeError):
            mark: Any = self._artifacts.read_json(CLEAN_UP)
            self.by = f" by {mark['by']} at {mark['at']}" if mark["by"] else f" at {mark['at']}"
        return True

    def _read(self) -> bytes | None:
        return self._artifacts.read_bytes(CLEAN_UP) if self._artifacts.exists(CLEAN_UP) else None


class CleanedUpError(RebalanceError):
    """The run was cleaned up while a process waited to execute it."""


@contextmanager
def executing(artifacts: Artifacts, clock: Clock, seconds: float = 60.0) -> Iterator[CleanUpWatch]:
    """Hold the lock of a run to execute its plan.

    Args:
        artifacts: Those of the run.
        clock: What to wait with.
        seconds: How long to wait for another process that executes the plan or cleans up.

    Raises:
        InUseError: It still does.
        CleanedUpError: It cleaned up, so that this process is to begin nothing.
    """
    watch = CleanUpWatch(artifacts)
    with artifacts.locked(make=True, seconds=seconds, clock=clock):
        if watch.started():
            raise CleanedUpError(f"{artifacts.uri} was cleaned up{watch.by} while this process waited for its lock")
        yield watch


def clean_up(cluster: Cluster, job: Job, settings: Settings, *, by: str = "", log: Log = ignore) -> Restored:
    """Cancel what is still under way of ours, then restore the throttles that were set before.

    Moves that must not be cancelled keep their throttle: it stays saved, and is named. What cannot be recorded on the
    way is logged, and keeps nothing from being restored. A plan that was never begun has nothing under way: what is, is
    somebody else's. With ``cancel_on_failure`` off, moves go on without a throttle, unless a cancel was requested.
    """
    log = safely(log)
    journal = Journal(job.artifacts, cluster.clock)
    with logged(log, "that the run is cleaned up could not be marked, an executor elsewhere may go on"):
        mark_clean_up(job.artifacts, by, cluster.clock)
    with logged(log, "the saved throttles could not be read"):
        open_saved(job.artifacts, job.cluster_id, log)  # sets a damaged file aside, so that the rest is cleaned up
    try:
        return _cancel_and_restore(cluster, job, settings, journal, log)
    finally:
        journal.flush()


def _cancel_and_restore(cluster: Cluster, job: Job, settings: Settings, journal: Journal, log: Log) -> Restored:
    kept = None
    if (settings.cancel_on_failure or _cancel_requested(job, log)) and _may_have_begun(job):
        kept = _cancel(cluster, job, settings, journal, log) or _moving(cluster, job)
    if kept is None:
        restored = restore_throttles(cluster, job.artifacts)
    else:
        restored = Restored(left=dict.fromkeys(stale_throttles(job.artifacts), kept))
    if restored.topics or restored.brokers or restored.left:
        journal.note(
            events.THROTTLE_RESTORED, topics=restored.topics, brokers=restored.brokers, left=dict(restored.left)
        )
        log(f"throttles {restored}")
    return restored


@contextmanager
def logged(log: Log, what: str) -> Iterator[None]:
    """Log what goes wrong with the run's records, and go on."""
    try:
        yield
    except (RebalanceError, OSError, ValueError) as error:
        log(f"{what}: {error}")


def _cancel_requested(job: Job, log: Log) -> bool:
    """Whether somebody asked to cancel the run: that holds also for a run that was to leave its moves."""
    with logged(log, "requests could not be read, so moves under way go on as the settings say"):
        return any(request.kind is Kind.CANCEL for request in read_requests(job.artifacts))
    return False


def _may_have_begun(job: Job) -> bool:
    """Whether moves under way may be the plan's own; what cannot be read now counts so."""
    with suppress(RebalanceError, OSError, ValueError):
        return tried(job.artifacts, job.plan, job.cluster_id)
    return True


def _cancel(cluster: Cluster, job: Job, settings: Settings, journal: Journal, log: Log) -> str | None:
    """Cancel our moves under way; returns why some go on, so that throttles must stay, or None if none does."""
    kept: dict[TopicPartition, str] = {}

    def on_cancelled(cancelled: list[TopicPartition]) -> None:
        if cancelled:
            log(f"{len(cancelled)} moves under way were cancelled: {listing(cancelled)}")
        for tp in cancelled:
            journal.note(events.CANCELLED, by="the clean-up", partition=str(tp))

    for attempt in range(1, CANCEL_ATTEMPTS + 1):
        try:
            _, kept = cancel_own(cluster, job, on_cancelled, in_stages=settings.pace.one_replica_at_a_time)
        except ClusterError as error:
            if attempt == CANCEL_ATTEMPTS:
                failed = f"moves under way could not be cancelled: {error}"
                log(failed)
                return failed
            cluster.clock.sleep(2.0 * attempt)
            continue
        break
    if not kept:
        return None
    first = next(iter(kept.values()))
    log(f"{len(kept)} moves under way were not cancelled and go on ({listing(kept)}): {first}")
    journal.note("not cancelled", reasons={str(tp): reason for tp, reason in kept.items()})
    return f"{len(kept)} moves go on and need it: {first}"


def _moving(cluster: Cluster, job: Job) -> str | None:
    """Why throttles must stay though nothing of the plan moves: a plan that the run had before does."""
    if not stale_throttles(job.artifacts):
        return None
    throttled = SavedThrottles(job.artifacts, job.cluster_id).partitions
    moving = sorted(throttled & cluster.reassignments().keys())
    return f"{len(moving)} moves that are none of the plan go on and need it: {listing(moving, 3)}" if moving else None
