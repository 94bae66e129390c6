"""A plan from its first check to its last: preflight, throttles, moves, clean-up, and the record of it.

Run again at any moment, after a failure or a kill, it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError, DriftError
from rebalance_lib.execution.clean_up import CleanUpWatch, clean_up, logged
from rebalance_lib.execution.executor import Executor
from rebalance_lib.execution.finalize import Comparison, finalize
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.messages import Log, ignore, safely
from rebalance_lib.execution.new_partitions import add_partitions
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.preflight import preflight
from rebalance_lib.execution.records.audit import write_audit
from rebalance_lib.execution.records.execution import note_begin
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.report import Report, describe_set_aside
from rebalance_lib.execution.requests import Controls, read_requests
from rebalance_lib.execution.settings import Settings, check_seconds
from rebalance_lib.execution.throttles.maintain import Rates, ThrottleMaintainer
from rebalance_lib.execution.throttles.restore import Restored
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended: the cluster against the plan, what could not be restored, and what was set aside and why."""

    comparison: Comparison
    restored: Restored
    set_aside: Mapping[TopicPartition, str] = field(default_factory=dict)

    @property
    def completed(self) -> bool:
        """Whether nothing of the plan is left to do."""
        return self.comparison.completed

    @property
    def verdict(self) -> str:
        """Where the plan stands, in words."""
        if not self.set_aside:
            return str(self.comparison)
        return (
            f"{self.comparison} Set aside: {describe_set_aside(self.set_aside)}. Run the plan again to go on with them."
        )


def run_plan(
    cluster: Cluster,
    job: Job,
    settings: Settings,
    *,
    interval: float,
    approved_by: str,
    approved_at: str = "",
    before_changes: Callable[[], object] = lambda: None,
    log: Log = ignore,
    on_report: Callable[[Report], None] = ignore,
) -> Ending:
    """Execute a plan, from the first check to the last.

    Args:
        cluster: The live cluster.
        job: What is to be executed.
        settings: How.
        interval: Seconds between two checks.
        approved_by: Who approved it, for the record.
        approved_at: When.
        before_changes: Called when the cluster was found fit for the plan, before anything is changed.
        log: Takes messages for people; what goes wrong in it does not end the run.
        on_report: Takes each report; the same holds.

    Raises:
        ClusterError: It was refused, or could not be brought to its end; it was cleaned up then.
    """
    check_seconds("interval", interval)
    log = safely(log)
    watch = CleanUpWatch(job.artifacts)
    try:
        found = preflight(cluster, job, settings)
    except ClusterError as error:
        if stale_throttles(job.artifacts):
            kind = DriftError if isinstance(error, DriftError) else ClusterError
            raise kind(
                f"{error}. Throttles of an earlier try are still set: run throttles --restore {job.artifacts.uri}"
            ) from error
        raise
    for remark in found.remarks:
        log(remark)
    before_changes()
    try:
        set_throttles(cluster, job, found.status, settings, log=log)
        add_partitions(cluster, job)
        executor = Executor(cluster, job, settings, log=log, watch=watch)
        executor.run(interval, safely(on_report))
        restored = clean_up(cluster, job, settings, by=approved_by, log=log)
        compared = finalize(
            cluster,
            job,
            settings,
            approved_by=approved_by,
            approved_at=approved_at,
            log=log,
            set_aside=executor.set_aside,
        )
        return Ending(compared, restored, dict(executor.set_aside))
    except BaseException as error:
        _clean_up_early(cluster, job, settings, log)
        early = f"ended early: {type(error).__name__} {error}".rstrip()
        with logged(log, "the record of the run could not be written"):
            at = cluster.clock.timestamp()
            write_audit(job, settings, verdict=early, approved_by=approved_by, approved_at=approved_at, written_at=at)
        raise


def set_throttles(
    cluster: Cluster, job: Job, status: PlanStatus, settings: Settings, *, log: Log = ignore
) -> list[int]:
    """Note that the plan is executed from now on, and throttle the brokers that take part; returns these.

    From here on, what is under way to the plan's targets counts as its own. The replicas that move are listed by the
    executor, as they begin.
    """
    note_begin(job, status.live, cluster.clock, in_stages=settings.pace.one_replica_at_a_time)
    settings = Controls.of(settings, read_requests(job.artifacts)).settings
    journal = Journal(job.artifacts, cluster.clock)
    pace, alive = settings.pace, cluster.alive_brokers().keys()
    between: set[int] = set()
    for tp in status.having(Status.PENDING, Status.MOVING):
        if set(job.targets[tp]) - set(job.origins.get(tp, ())) and tp in status.live:
            between |= {*status.live[tp].replicas, *job.targets[tp]}
    within = {replica.broker for replica in job.log_dirs}
    rates = Rates(pace.throttle, pace.log_dir_throttle)
    brokers = ThrottleMaintainer(cluster, job, journal, log).set_rates(rates, between & alive, within & alive)
    journal.flush()
    return brokers


def _clean_up_early(cluster: Cluster, job: Job, settings: Settings, log: Log) -> None:
    """Clean up, also where that was begun and interrupted; that it fails must not hide why the run ended."""
    for again in (False, True):
        try:
            clean_up(cluster, job, settings, log=log)
        except KeyboardInterrupt:  # the first one, while an error was cleaned up: it must not cut that short
            if again:
                raise
            continue
        except Exception as error:
            log(
                f"the run could not be cleaned up ({error}): throttles may be set and moves may be under way; run the "
                f"plan again, or throttles --restore {job.artifacts.uri}"
            )
        return
