"""Keep a run's moves throttled: put the throttle on, hold it, change it when somebody wishes, raise it where it stalls.

Whoever begins moves makes sure first that they are throttled: the clean-up of an earlier try may have taken the
throttle off, or a broker that was down when it was put on may be back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.clean_up import Leaving
from rebalance_lib.execution.commands.plan_state import tried
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirMove
from rebalance_lib.execution.messages import Tell
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.settings import OnStall, Settings
from rebalance_lib.execution.stalls import Cause, Stall
from rebalance_lib.execution.throttles.apply import (
    LEADER_RATE,
    LOG_DIR_RATE,
    RATES,
    REMEDY,
    Held,
    apply_log_dir_throttle,
    apply_throttle,
    hold_rates,
    read_override,
    request_rate,
    requested_rate,
    throttle_for,
)
from rebalance_lib.execution.throttles.saved import SavedThrottles


def set_throttles(
    cluster: Cluster, job: Job, status: PlanStatus, settings: Settings, *, leaving: Leaving | None = None
) -> list[int]:
    """Throttle what is left of the plan; what stands now is saved first. Returns the brokers that take part.

    That the plan is being carried out is written to the journal, whether it is throttled or not: from here on, what is
    under way to its targets counts as its own. Nothing is set any more once the run is ``leaving``.
    """
    pace = settings.pace
    journal = Journal(job.artifacts, cluster.clock)
    if not tried(job.artifacts, job.plan, job.cluster_id):
        journal.note("run began", digest=job.plan.digest)
    brokers: list[int] = []
    if pace.throttle is not None:
        rate = requested_rate(job.artifacts) or pace.throttle
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
    if pace.log_dir_throttle is not None and within and not (leaving and leaving.begun()):
        rate = requested_rate(job.artifacts, remedies=False) or pace.log_dir_throttle
        within = apply_log_dir_throttle(cluster, within, rate, job.artifacts)
        journal.note(events.THROTTLE_SET, log_dir_rate=rate, brokers=within)
        brokers = sorted({*brokers, *within})
    journal.flush()
    return brokers


NOTHING_HELD = Held([], {}, frozenset())


def _never() -> bool:
    return False


class ThrottleMaintainer:
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
        self._log_dir_rate = settings.pace.log_dir_throttle
        self._wanted: dict[str, int] = {}
        self._alive: frozenset[int] = frozenset()
        self.held = NOTHING_HELD

    def cover(self, status: PlanStatus, alive: Collection[int], log_dirs: Sequence[LogDirMove] = ()) -> None:
        """Make sure that all that is left to move is throttled, on every broker that takes part and lives."""
        pace = self._settings.pace
        if pace.throttle is None and pace.log_dir_throttle is None:
            return
        saved = SavedThrottles(self._job.artifacts, self._job.cluster_id)
        bare: set[int] = set()
        topics: set[str] = set()
        if pace.throttle is not None:
            needed = throttle_for(self._job.targets, status, in_stages=pace.one_replica_at_a_time)
            bare |= {broker for broker in needed.brokers if not _throttled(saved, broker, LEADER_RATE)}
            topics |= needed.replicas.keys() - saved.topics.keys()
        if pace.log_dir_throttle is not None:
            within = {move.replica.broker for move in log_dirs if not move.ended}
            bare |= {broker for broker in within if not _throttled(saved, broker, LOG_DIR_RATE)}
        bare &= set(alive)
        if bare or topics:
            covered = set_throttles(self._cluster, self._job, status, self._settings, leaving=self._leaving)
            if bare.intersection(covered):
                brokers = sorted(bare.intersection(covered))
                self._tell(f"throttled on brokers {brokers} too: moves there had no throttle")

    def hold(self, status: PlanStatus, alive: Collection[int], log_dirs: Sequence[LogDirMove] = ()) -> int | None:
        """Make the rates that are wanted now those that stand, while there is something to throttle."""
        pace = self._settings.pace
        if pace.throttle is None and pace.log_dir_throttle is None:
            return None
        if self._ask_rate is not None:
            read_override(self._job.artifacts, self._ask_rate())
        wanted: dict[str, int] = {}
        if pace.throttle is not None:
            self._rate = requested_rate(self._job.artifacts, otherwise=self._rate) or pace.throttle
            if status.having(Status.PENDING, Status.MOVING):
                wanted |= dict.fromkeys(RATES, self._rate)
        if pace.log_dir_throttle is not None:
            wish = requested_rate(self._job.artifacts, otherwise=self._log_dir_rate, remedies=False)
            self._log_dir_rate = wish or pace.log_dir_throttle
            if any(not move.ended for move in log_dirs):
                wanted[LOG_DIR_RATE] = self._log_dir_rate
        self._wanted, self._alive = wanted, frozenset(alive)
        self._set(over_others=False)
        return self._rate

    def _set(self, *, over_others: bool) -> None:
        """Set what is wanted, and notice what others set."""
        self.held = NOTHING_HELD
        if not self._wanted:
            return
        self.held = hold_rates(
            self._cluster,
            self._job.artifacts,
            self._wanted,
            self._alive,
            over_others=over_others,
            given_up=self._leaving.begun,
        )
        if self.held.changed:
            rates = ", ".join(f"{rate} bytes/s" for rate in sorted(set(self._wanted.values())))
            self._tell(f"throttle set to {rates} on brokers {self.held.changed}")
            self._journal.note(events.THROTTLE_CHANGED, rate=self._rate, brokers=self.held.changed)

    @property
    def lowered(self) -> dict[int, int]:
        """The brokers where somebody else has set a lower rate than the run's, with that rate."""
        return {broker: rate for broker, rate in self.held.theirs.items() if self._rate and rate < self._rate}

    def remedy(self, stalls: Sequence[Stall]) -> bool:
        """Raise a throttle that is the reason of stalls, as far as the ceiling allows; returns whether it was.

        Where somebody else has lowered it, the run's own is set again first, if there is a ceiling at all.
        """
        throttled = [stall for stall in stalls if stall.cause is Cause.THROTTLE]
        rate, ceiling = self._rate, self._settings.throttle_ceiling
        if not throttled or rate is None or self._settings.on_stall is not OnStall.RAISE:
            return False
        lowered = self.lowered
        if ceiling is not None and lowered:
            self._set(over_others=True)
            self._journal.note("remedied", cause=Cause.THROTTLE, rate=rate, was=lowered)
            self._tell(f"throttle set to {rate} bytes/s again where somebody else had lowered it: {_told(lowered)}")
            return True
        needed = max(stall.needed_rate or 0.0 for stall in throttled)
        if ceiling is None or rate >= ceiling:
            limit = "no ceiling was given to raise it to" if ceiling is None else f"it is at its ceiling of {ceiling}"
            low = f" ({_told(lowered)}, set by somebody else)" if lowered else ""
            self._tell(
                f"the throttle of {rate} bytes/s{low} is too low and {limit}: it would take more than {needed:.0f}"
            )
            return False
        raised = min(ceiling, max(2 * rate, int(2 * needed)))
        request_rate(self._job.artifacts, raised, REMEDY)
        self._journal.note("remedied", cause=Cause.THROTTLE, rate=raised, was=rate)
        self._tell(f"throttle raised from {rate} to {raised} bytes/s: {needed:.0f} bytes/s are written")
        return True


def _throttled(saved: SavedThrottles, broker: int, key: str) -> bool:
    return key in saved.brokers.get(broker, {})


def _told(rates: Mapping[int, int]) -> str:
    return ", ".join(f"{rate} on broker {broker}" for broker, rate in rates.items())
