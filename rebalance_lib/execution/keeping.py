"""Keep a run's moves throttled: put the throttle on, hold it, change it when somebody wishes, raise it where it stalls.

Whoever begins moves makes sure first that they are throttled: the clean-up of an earlier try may have taken the
throttle off, or a broker that was down when it was put on may be back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import journal as events
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.journal import Journal
from rebalance_lib.execution.leaving import Leaving
from rebalance_lib.execution.saved_throttles import SavedThrottles
from rebalance_lib.execution.settings import OnStall, Settings
from rebalance_lib.execution.stalls import Cause, Stall
from rebalance_lib.execution.state import tried
from rebalance_lib.execution.status import PlanStatus, Status
from rebalance_lib.execution.telling import Tell
from rebalance_lib.execution.throttle import (
    apply_log_dir_throttle,
    apply_throttle,
    heed_wish,
    hold_rate,
    throttle_for,
    want_rate,
    wanted_rate,
)


def put_throttles(
    cluster: Cluster, job: Job, status: PlanStatus, settings: Settings, *, leaving: Leaving | None = None
) -> list[int]:
    """Throttle what is left of the plan; what stands now is saved first. Returns the brokers that take part.

    That the plan is being carried out is written to the journal, whether it is throttled or not: from here on, what is
    under way to its targets counts as its own. Nothing is set any more once the run is ``leaving``.
    """
    pace = settings.pace
    journal = Journal(job.artifacts)
    if not tried(job.artifacts, job.plan, job.cluster_id):
        journal.note("run began", digest=job.plan.digest)
    brokers: list[int] = []
    if pace.throttle is not None:
        rate = wanted_rate(job.artifacts) or pace.throttle
        throttle = apply_throttle(
            cluster,
            job.plan,
            status,
            rate,
            job.artifacts,
            in_stages=pace.one_replica_at_a_time,
            given_up=_never if leaving is None else leaving.begun,
        )
        brokers = throttle.brokers
        if brokers:
            journal.note(events.THROTTLE_SET, rate=rate, brokers=brokers, topics=len(throttle.replicas))
    within = sorted({replica.broker for replica in job.log_dirs} & cluster.alive_brokers().keys())
    if pace.log_dir_throttle is not None and within:
        apply_log_dir_throttle(cluster, within, pace.log_dir_throttle, job.artifacts)
        journal.note(events.THROTTLE_SET, log_dir_rate=pace.log_dir_throttle, brokers=within)
    journal.flush()
    return brokers


def _never() -> bool:
    return False


class ThrottleKeeper:
    """Keeps the throttle of one run; ``ask_rate`` is asked for a rate that somebody wishes, if anybody can be."""

    def __init__(
        self,
        cluster: Cluster,
        job: Job,
        settings: Settings,
        journal: Journal,
        tell: Tell,
        *,
        leaving: Leaving,
        ask_rate: Callable[[], int | None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._job = job
        self._settings = settings
        self._journal = journal
        self._tell = tell
        self._leaving = leaving
        self._ask_rate = ask_rate
        self._rate = settings.pace.throttle

    def cover(self, status: PlanStatus, alive: Collection[int]) -> None:
        """Make sure that all that is left to move is throttled, on every broker that takes part and lives."""
        if self._settings.pace.throttle is None:
            return
        needed = throttle_for(self._job.targets, status, in_stages=self._settings.pace.one_replica_at_a_time)
        saved = SavedThrottles(self._job.artifacts, self._job.cluster_id)
        brokers = {broker for broker in needed.brokers if broker in alive} - saved.brokers.keys()
        if brokers or needed.replicas.keys() - saved.topics.keys():
            put_throttles(self._cluster, self._job, status, self._settings, leaving=self._leaving)
            self._tell(f"throttled on brokers {sorted(brokers)} too: moves there had no throttle")

    def hold(self, status: PlanStatus, alive: Collection[int]) -> int | None:
        """Make the rate that is wanted now the one that stands, while there is something to throttle."""
        if self._settings.pace.throttle is None:
            return None
        if self._ask_rate is not None:
            heed_wish(self._job.artifacts, self._ask_rate())
        self._rate = wanted_rate(self._job.artifacts, otherwise=self._rate) or self._settings.pace.throttle
        if status.having(Status.PENDING, Status.MOVING):
            changed = hold_rate(self._cluster, self._job.artifacts, self._rate, alive, given_up=self._leaving.begun)
            if changed:
                self._tell(f"throttle set to {self._rate} bytes/s on brokers {changed}")
                self._journal.note(events.THROTTLE_CHANGED, rate=self._rate, brokers=changed)
        return self._rate

    def remedy(self, stalls: Sequence[Stall]) -> bool:
        """Raise a throttle that is the reason of stalls, as far as the ceiling allows; returns whether it was."""
        needed = max((stall.needed_rate or 0.0 for stall in stalls if stall.cause is Cause.THROTTLE), default=0.0)
        rate, ceiling = self._rate, self._settings.throttle_ceiling
        if not needed or rate is None or self._settings.on_stall is not OnStall.RAISE:
            return False
        if ceiling is None or rate >= ceiling:
            limit = "no ceiling was given to raise it to" if ceiling is None else f"it is at its ceiling of {ceiling}"
            self._tell(f"the throttle of {rate} bytes/s is too low and {limit}: it would take more than {needed:.0f}")
            return False
        raised = min(ceiling, max(2 * rate, int(2 * needed)))
        want_rate(self._job.artifacts, raised, "stall remedy")
        self._journal.note("remedied", cause=Cause.THROTTLE, rate=raised, was=rate)
        self._tell(f"throttle raised from {rate} to {raised} bytes/s: {needed:.0f} bytes/s are written")
        return True
