"""Find moves that stall, and do what can be done about it: raise the throttle where that is the reason.

A throttle is raised as far as the ceiling allows, to twice what is written or twice what it was, and goes back when the
moves that stalled have ended, or when a person asks for another one. Where somebody else has lowered it, the run's own
is set again, if there is a ceiling at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rebalance_lib.execution.messages import Log
from rebalance_lib.execution.plan_status import PlanStatus
from rebalance_lib.execution.plan_tracker import PlanTracker
from rebalance_lib.execution.progress import Progress, Sizes
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.requests import Controls, Request
from rebalance_lib.execution.settings import OnStall
from rebalance_lib.execution.stalls import (
    Cause,
    Evidence,
    Stall,
    StallWatch,
    allowed_rests,
    copying,
    diagnose,
    late_replicas,
    needed_rates,
)
from rebalance_lib.execution.throttles.maintain import Rates, ThrottledMove, ThrottleMaintainer
from rebalance_lib.topology import TopicPartition


class StallRemedy:
    """The throttle of one run with what stalls make of it; ``stalls`` are those of the last check."""

    def __init__(self, checks: int, throttles: ThrottleMaintainer, journal: Journal, log: Log) -> None:
        self._watch = StallWatch(checks)
        self._throttles = throttles
        self._journal = journal
        self._log = log
        self._raised: int | None = None
        self._raised_for: frozenset[TopicPartition] = frozenset()
        self._request: Request | None = None
        self._late: dict[tuple[TopicPartition, int], int] = {}
        self._late_checks = max(1, checks - 1)
        self._controls: Controls | None = None
        self.stalls: tuple[Stall, ...] = ()

    def rates(self, controls: Controls) -> Rates:
        """The rates that are wanted now."""
        pace = controls.settings.pace
        between = pace.throttle
        if between is not None and self._raised is not None:
            between = max(between, self._raised)
        return Rates(between, pace.log_dir_throttle)

    @property
    def rate(self) -> int | None:
        """The rate between brokers that is set; None without a throttle."""
        return None if self._controls is None else self.rates(self._controls).between_brokers

    def least(self, tp: TopicPartition) -> int:
        """The fewest bytes that the copies of a partition have lacked."""
        return self._watch.least(tp)

    def maintain(
        self, controls: Controls, tracker: PlanTracker, moves: Collection[ThrottledMove], alive: Collection[int]
    ) -> None:
        """Set the throttle that is wanted now for what is under way."""
        if self._raised is not None and (
            controls.throttled != self._request or self._raised_for.isdisjoint(tracker.moving)
        ):
            self._log(
                f"the throttle goes back from {self._raised} bytes/s: what stalled has ended, or another was asked for"
            )
            self._raised = None
        self._controls = controls
        within = {move.replica.broker for move in tracker.log_dirs_left if move.future is not None}
        self._throttles.maintain(moves, within, self.rates(controls), alive)

    def watch(self, progress: Progress, sizes: Sizes, status: PlanStatus, alive: Collection[int], now: float) -> None:
        """Find what stalls at this check and why, log what is new, and raise the throttle where that is the reason."""
        copies = copying(progress.copies, status)
        throttle = self.rate
        stalled = self._watch.observe(copies, now, allowed_rests(copies, status, throttle))
        found = self._late_replicas(status, alive)
        if stalled:
            sizes = replace(sizes, silent=sizes.silent | self._throttles.silent)
            needed = needed_rates(copies, status, self._watch.write_rates)
            evidence = Evidence(status, sizes, alive, throttle, needed, self._lowered())
            found = [*diagnose(stalled, evidence), *found]
        found.sort(key=lambda stall: stall.cause is Cause.UNKNOWN)  # what is known first
        known = {(stall.partition, stall.broker, stall.cause) for stall in self.stalls}
        new = [stall for stall in found if (stall.partition, stall.broker, stall.cause) not in known]
        for stall in new:
            self._journal.note("stalled", partition=str(stall.partition), broker=stall.broker, cause=stall.cause)
        if new:
            self._log(f"{len(found)} moves have stalled: {new[0]}")
        self.stalls = tuple(found)
        if self._remedied():
            self._watch.forgive()

    def _late_replicas(self, status: PlanStatus, alive: Collection[int]) -> list[Stall]:
        """Replicas at their target that have not been in sync for as many checks as a stall takes."""
        found = {(stall.partition, stall.broker): stall for stall in late_replicas(status, alive)}
        self._late = {key: self._late.get(key, -1) + 1 for key in found}
        return [stall for key, stall in found.items() if self._late[key] >= self._late_checks]

    def _lowered(self) -> dict[int, int]:
        """The brokers where somebody else has set a lower rate than the run's, with that rate."""
        rate = self.rate
        return {broker: one for broker, one in self._throttles.foreign.items() if rate is not None and one < rate}

    def _remedied(self) -> bool:
        """Raise a throttle that is the reason of stalls, as far as the ceiling allows; returns whether it was."""
        throttled = [stall for stall in self.stalls if stall.cause is Cause.THROTTLE]
        rate, controls = self.rate, self._controls
        if not throttled or rate is None or controls is None or controls.settings.on_stall is not OnStall.RAISE:
            return False
        ceiling, lowered = controls.settings.throttle_ceiling, self._lowered()
        if ceiling is not None and lowered:
            self._throttles.overrule(self.rates(controls))
            self._journal.note("remedied", cause=Cause.THROTTLE, rate=rate, was=lowered)
            self._log(f"throttle set to {rate} bytes/s again where somebody else had lowered it: {_listed(lowered)}")
            return True
        needed = max(stall.needed_rate or 0.0 for stall in throttled)
        if ceiling is None or rate >= ceiling:
            limit = "no ceiling was given to raise it to" if ceiling is None else f"it is at its ceiling of {ceiling}"
            low = f" ({_listed(lowered)}, set by somebody else)" if lowered else ""
            self._log(
                f"the throttle of {rate} bytes/s{low} is too low and {limit}: it would take more than {needed:.0f}"
            )
            return False
        self._raise(rate, min(ceiling, max(2 * rate, int(2 * needed))), needed, throttled)
        return True

    def _raise(self, rate: int, raised: int, needed: float, stalls: Sequence[Stall]) -> None:
        self._raised = raised
        self._raised_for = frozenset(stall.partition for stall in stalls)
        self._request = None if self._controls is None else self._controls.throttled
        self._journal.note("remedied", cause=Cause.THROTTLE, rate=raised, was=rate)
        self._log(f"throttle raised from {rate} to {raised} bytes/s: {needed:.0f} bytes/s are written")


def _listed(rates: Mapping[int, int]) -> str:
    return ", ".join(f"{rate} on broker {broker}" for broker, rate in rates.items())
