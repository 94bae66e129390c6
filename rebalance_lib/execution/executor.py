"""Execute a plan on a live cluster: begin moves as caps allow, follow them, and remedy what stalls.

Goal: a plan of any size is executed under live traffic without hurting anyone, and the process that does it may die at
any moment. So it remembers nothing that matters: it compares plan and cluster, and begins what is neither done nor
under way. A new executor on the same plan goes on where the last one stopped.

    check   every interval: read requests, read the plan's partitions, measure what is under way, maintain throttles,
            remedy stalls, set aside what waits for too long, begin what may begin, report
    poll    between checks, as often as it is worth: read what is under way, begin the next when something has ended

What a check does next depends on its state (`RunState`), each of which has a method. Nothing begins while: the run is
paused; the window is closed; a partition anywhere is short of in-sync replicas (then only those of the plan that are
short themselves); reassignments of somebody else are under way; somebody else cancelled a move of the plan; or stalls
are to pause the run. What is under way goes on.

A partition that cannot be moved is set aside, with the reason, and the rest goes on: its topic was created again,
somebody else moved it, the controller refuses it, or it waits for too long (``give_up_after``) for somebody to repair
something.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from rebalance_lib.cluster import Cluster, RefusedError
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.cancellation import reason_not_to_cancel
from rebalance_lib.execution.clean_up import CleanUpWatch
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirStatus
from rebalance_lib.execution.messages import Log, ignore
from rebalance_lib.execution.min_isr import ClusterHealth
from rebalance_lib.execution.patience import Patience
from rebalance_lib.execution.plan_status import Status, listing
from rebalance_lib.execution.plan_tracker import PlanTracker
from rebalance_lib.execution.progress import Meter
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.audit import moves
from rebalance_lib.execution.records.execution import planned_ends, read_execution
from rebalance_lib.execution.records.journal import Journal, read_journal
from rebalance_lib.execution.report import ENDED, Report, RunState
from rebalance_lib.execution.run_requests import RunRequests
from rebalance_lib.execution.set_aside import SetAside
from rebalance_lib.execution.settings import OnStall, Settings, check_seconds
from rebalance_lib.execution.stall_remedy import StallRemedy
from rebalance_lib.execution.submission import Situation, Submission
from rebalance_lib.execution.throttles.maintain import ThrottleMaintainer
from rebalance_lib.topology import TopicPartition

POLL_SECONDS = 0.1  # between polls, while moves end
IDLE_SECONDS = 1.0  # between polls, while none does
REFUSED_SECONDS = 120.0  # how long the controller may refuse a partition before it is set aside
MOST_RETRY_SECONDS = 15.0  # between tries while the cluster is unreachable
LONG_COPY_SECONDS = 86_400.0  # a copy between log dirs may take a day; nothing shows how far it is
LOST_SECONDS = 600.0  # how long cluster or storage may be unreachable: brokers restart, controllers fail over
COPYING = LogDirStatus.MOVING


class Executor:
    """One process that executes one plan.

    Args:
        cluster: The live cluster.
        job: What is to be executed.
        settings: How, as it was approved; requests of people change it (`rebalance_lib.execution.requests`).
        log: Takes messages for people.
        watch: Watches whether the run is cleaned up elsewhere, since it began; by default since now.
    """

    def __init__(
        self, cluster: Cluster, job: Job, settings: Settings, *, log: Log = ignore, watch: CleanUpWatch | None = None
    ) -> None:
        self._cluster = cluster
        self._clock = cluster.clock
        self._job = job
        self._log = log
        self._execution = read_execution(job.artifacts)
        self._journal = Journal(job.artifacts, cluster.clock)
        self._requests = RunRequests(job.artifacts, settings, watch or CleanUpWatch(job.artifacts), self._journal, log)
        self._meter = Meter(job.plan, job.before, job.sizes)
        ends = planned_ends(job, in_stages=settings.pace.one_replica_at_a_time)
        self._tracker = PlanTracker(cluster, job, self._journal, self._meter.size, ends)
        self._health = ClusterHealth(cluster)
        self._throttles = ThrottleMaintainer(cluster, job, self._journal, log)
        self._remedy = StallRemedy(settings.stall_checks, self._throttles, self._journal, log)
        self._submission = Submission(
            cluster,
            job,
            self._tracker,
            self._meter,
            self._throttles,
            journal=self._journal,
            log=log,
            called_off=self._requests.called_off,
        )
        self._patience = Patience(cluster.clock)
        self._stop = threading.Event()
        self._checked = False
        self._holds: tuple[str, ...] = ()
        self._alive: frozenset[int] = frozenset()
        self.set_aside = SetAside(self._tracker, self._journal, log)
        self._handlers = {
            RunState.MOVING: self._move,
            RunState.HELD: self._move,  # partitions at risk may begin all the same, and nothing waits for ever
            RunState.PAUSED: self._pause,
            RunState.ENDING: self._end,
            RunState.COMPLETED: self._finish,
            RunState.INCOMPLETE: self._finish,
            RunState.CANCELLED: self._finish,
        }

    def run(
        self, interval: float, on_report: Callable[[Report], None] = ignore, stop: threading.Event | None = None
    ) -> Report | None:
        """Check every ``interval`` seconds until the run has ended; between checks, begin moves as others end.

        Args:
            interval: Seconds between two checks.
            on_report: Called with each report.
            stop: Set it to leave before the end; moves under way go on.

        Returns:
            The last report; None if it was stopped.

        Raises:
            RebalanceError: The cluster, or the run's artifacts, were unreachable for too long.
        """
        check_seconds("interval", interval)
        self._stop = stop or threading.Event()
        try:
            return self._run(interval, on_report)
        finally:
            self._journal.flush()

    def _run(self, interval: float, on_report: Callable[[Report], None]) -> Report | None:
        lost_since: float | None = None
        due, pause = self._clock.monotonic(), POLL_SECONDS
        while not self._stop.is_set():
            began = self._clock.monotonic()
            try:
                if began >= due:
                    report = self.check()
                    on_report(report)
                    if report.ended:
                        return report
                    took = self._clock.monotonic() - began
                    due, pause = began + max(interval, took + min(took, interval)), POLL_SECONDS
                elif self.poll():
                    pause = POLL_SECONDS
                    if not self._moving():
                        due = began  # nothing is under way any more: a check shows whether the run has ended
                else:
                    pause = min(IDLE_SECONDS, 1.5 * pause)
                lost_since = None
                # A poll of a busy cluster takes its time: at most half of all time is spent on polling.
                wait = max(pause, self._clock.monotonic() - began)
                wait = min(wait, max(POLL_SECONDS, due - self._clock.monotonic()))
            except RebalanceError as error:  # of the cluster, or of the storage of the run's artifacts
                lost_since = lost_since if lost_since is not None else began
                if began - lost_since > LOST_SECONDS:
                    raise
                due, wait = began, min(MOST_RETRY_SECONDS, POLL_SECONDS + began - lost_since)
                what = "the cluster is unreachable" if isinstance(error, ClusterError) else "the run cannot go on"
                self._log(f"{what} now, trying again in {wait:.0f} s: {error}")
            self._clock.wait(self._stop, wait)
        return None

    def poll(self) -> bool:
        """Read what is under way, and begin the next moves where some have ended; returns whether some have."""
        if not self._moving():
            return False
        ended = self._tracker.read_moving()
        # What somebody else has just cancelled or begun is a reason to hold, which the next check will find.
        if ended and not (
            self._stop.is_set() or self._holds or self._tracker.cancelled or self._tracker.status.foreign
        ):
            self._submission.advance(ended)
            self._journal.flush()
        return bool(ended) or not self._moving()

    def check(self) -> Report:
        """Read, measure, maintain, begin what may begin, and report."""
        self._requests.read()
        self._tracker.read()
        self._note_ends()
        self._alive = frozenset(self._cluster.alive_brokers())
        self._health.check(self._tracker.status)
        self._meter.learn(self._cluster, self._tracker.status, self._alive)
        progress, sizes = self._meter.read(self._cluster, self._tracker.status, self._alive)
        if self._requests.ended is None:
            self._remedy.maintain(
                self._requests.controls, self._tracker, self._submission.throttled_moves(), self._alive
            )
            self._remedy.watch(progress, sizes, self._tracker.status, self._alive, self._clock.monotonic())
        self.set_aside.follow_status()
        self._report_holds(self._reasons_to_hold())
        state = self._state()
        self._handlers[state]()
        if (after := self._state()) is not state:
            state = after
            if state in ENDED:
                self._handlers[state]()
        self._journal.flush()
        return Report(
            state,
            progress,
            (*self._holds, *self._blocks()),
            self._remedy.stalls,
            self._remedy.rate,
            len(self._tracker.log_dirs_left),
            self._throttles.foreign,
            dict(sorted(self.set_aside.items())),
        )

    # -- the states ---------------------------------------------------------------------------------------------------

    def _state(self) -> RunState:
        """Where the run stands."""
        if self._requests.ended is not None:
            return RunState.CANCELLED
        if self._moving():
            return RunState.ENDING if self._overdue() else RunState.MOVING
        if not self._left() or self._overdue():
            return RunState.INCOMPLETE if self.set_aside or self._left() else RunState.COMPLETED
        if self._tracker.cancelled:
            return RunState.CANCELLED
        if self._requests.controls.paused:
            return RunState.PAUSED
        return RunState.HELD if self._holds else RunState.MOVING

    def _moving(self) -> bool:
        """Whether something is under way that was not given up."""
        copies = (TopicPartition(*move.replica[:2]) for move in self._tracker.log_dirs if move.status is COPYING)
        return any(tp not in self.set_aside for tp in (*copies, *self._tracker.moving))

    def _left(self) -> bool:
        """Whether something of the plan is neither done nor set aside."""
        pending = any(
            status in (Status.PENDING, Status.MOVING) and tp not in self.set_aside
            for tp, status in self._tracker.status.by_partition.items()
        )
        log_dirs = (TopicPartition(*move.replica[:2]) for move in self._tracker.log_dirs_left)
        return pending or any(tp not in self.set_aside for tp in log_dirs)

    def _move(self) -> None:
        """Moving: what has stalled for too long is given up, what may begin begins."""
        self._give_up_stalled()
        if self._holds and not self._only_at_risk():
            self._submission.hold()
        elif not self._stop.is_set():
            self._begin()
        self._give_up_waiting()

    def _pause(self) -> None:
        """Paused: nothing begins, and nothing counts as waiting."""
        self._submission.hold()
        self._patience.keep(())

    def _end(self) -> None:
        """Ending: the maximum run time is over, so what has not begun is set aside."""
        self._submission.hold()
        self._give_up_stalled()
        self.set_aside.add_what_waits("the maximum run time was over before it began")

    def _finish(self) -> None:
        """Ended: nothing begins any more."""
        self._submission.hold()
        if self._overdue():
            self._end()
        elif self._tracker.cancelled and self._requests.ended is None:
            cancelled = listing(self._tracker.cancelled)
            self.set_aside.add_what_waits(f"somebody else cancelled {cancelled}, so nothing more began")

    # -- reading ------------------------------------------------------------------------------------------------------

    def _note_ends(self) -> None:
        """At the first check: moves that an earlier process began and that are over have an end in the record, too."""
        if self._checked:
            return
        self._checked = True
        done = {str(tp) for tp in self._tracker.status.having(Status.DONE)}
        copied = {str(move.replica) for move in self._tracker.log_dirs_left}
        with suppress(RebalanceError):  # it is for the record alone
            for move in moves(read_journal(self._job.artifacts)):
                if move["ended"] is None and move["partition"] in done and move["replica"] not in copied:
                    named = {"replica": move["replica"]} if move["replica"] else {}
                    self._journal.note(events.ENDED, partition=move["partition"], bytes=move["bytes"], **named)

    def _overdue(self) -> bool:
        """Whether the maximum run time is over."""
        limit = self._requests.controls.settings.max_run_time
        if limit is None or self._execution is None:
            return False
        return (self._clock.now() - self._execution.started_at).total_seconds() >= limit

    # -- what may begin -----------------------------------------------------------------------------------------------

    def _reasons_to_hold(self) -> tuple[str, ...]:
        """Why nothing may begin now; empty if moves may."""
        holds = []
        settings = self._requests.controls.settings
        if self._requests.ended is not None:
            holds.append(self._requests.ended)
        if self._requests.controls.paused is not None:
            holds.append(str(self._requests.controls.paused))
        if self._overdue():
            holds.append(f"the maximum run time of {settings.max_run_time:.0f} s is over")
        if self._tracker.cancelled:
            holds.append(f"somebody else cancelled {listing(self._tracker.cancelled)}")
        if foreign := self._tracker.status.foreign:
            holds.append(f"reassignments of somebody else are under way: {listing(foreign)}")
        if closed := settings.closed_at(self._clock.now()):
            holds.append(closed)
        if self._health.short and settings.pause_under_min_isr:
            holds.append(self._short())
        if self._remedy.stalls and settings.on_stall is OnStall.PAUSE:
            holds.append(f"moves have stalled: {self._remedy.stalls[0]}")
        return tuple(holds)

    def _short(self) -> str:
        short = self._health.short
        return f"{len(short)} partitions are short of in-sync replicas: {listing(short, 3)}"

    def _only_at_risk(self) -> bool:
        """Whether only partitions that are short of in-sync replicas themselves may begin."""
        return self._holds == (self._short(),) if self._health.short else False

    def _report_holds(self, holds: tuple[str, ...]) -> None:
        if holds != self._holds:
            self._log(f"held back: {'; '.join(holds)}" if holds else "moves begin again")
            self._journal.note("held back" if holds else "released", reasons=list(holds))
        self._holds = holds

    def _begin(self) -> None:
        skipped = dict(self.set_aside)
        misplaced = {TopicPartition(*move.replica[:2]) for move in self._tracker.log_dirs_left}
        copying = {TopicPartition(*move.replica[:2]) for move in self._tracker.log_dirs if move.status is COPYING}
        for tp, status in self._tracker.status.by_partition.items():
            if status not in (Status.PENDING, Status.MOVING) and tp not in misplaced:
                continue
            if (request := self._requests.controls.excludes(tp.topic)) is None:
                continue
            skipped[tp] = str(request)  # also what is under way: when a stage has ended, a poll would begin the next
            if status is not Status.MOVING and tp not in copying:
                self.set_aside.add(tp, str(request))
        self._submission.start(
            Situation(
                self._requests.controls.settings,
                self._remedy.rates(self._requests.controls),
                self._alive,
                frozenset(self._health.short),
                self._only_at_risk(),
                skipped,
            )
        )

    def _blocks(self) -> list[str]:
        """Why single moves wait, those with the same reason together."""
        reasons: dict[str, list[TopicPartition]] = {}
        for tp, reason in self._submission.blocked.items():
            if tp not in self.set_aside:
                reasons.setdefault(reason, []).append(tp)
        return [f"{listing(tps, 3)} waits: {reason}" for reason, tps in list(reasons.items())[:3]]

    # -- what is set aside --------------------------------------------------------------------------------------------

    def _give_up_waiting(self) -> None:
        """Set aside what has waited for too long."""
        limit = self._requests.controls.settings.give_up_after
        waiting = {("waits", tp): reason for tp, reason in self._submission.blocked.items()}
        if self._holds and not self._moving() and self._requests.controls.settings.open_at(self._clock.now()):
            for tp in self._tracker.status.having(Status.PENDING):
                waiting["waits", tp] = self._holds[0]
        if self._tracker.moving and not self._holds and not self._moving():  # what was set aside counts for the caps
            reason = (
                f"the caps leave no slot for it while moves that were set aside go on: {listing(self._tracker.moving)}"
            )
            for tp in self._tracker.status.having(Status.PENDING):
                waiting.setdefault(("waits", tp), reason)
        if not self._moving() and self._requests.controls.settings.open_at(self._clock.now()):
            for move in self._tracker.log_dirs_left:
                tp = TopicPartition(*move.replica[:2])
                waiting["waits", tp] = f"its replica on broker {move.replica.broker} is not in log dir {move.target}"
        for (kind, tp), reason in waiting.items():
            bound = REFUSED_SECONDS if tp in self._submission.refused else limit
            if self._patience.unchanged((kind, tp)) >= bound:
                self.set_aside.add(tp, reason)
        moving = {("moves", tp) for tp in self._tracker.moving}
        copies = {("copies", move.replica) for move in self._tracker.log_dirs if move.status is COPYING}
        self._patience.keep({*waiting, *moving, *copies})

    def _cancel(self, tp: TopicPartition, reason: str) -> str:
        """Cancel a move; returns why it is set aside."""
        try:
            self._cluster.reassign({tp: None})
        except RefusedError as error:
            return f"{reason}; it goes on, since the controller refused to cancel it: {error.refused.get(tp, error)}"
        self._tracker.cancel(tp, reason)
        return reason

    def _give_up_copies(self) -> None:
        """Set aside copies between log dirs that never end, when nothing else is under way; the clean-up stops them."""
        limit = self._requests.controls.settings.give_up_after
        for move in self._tracker.log_dirs:
            tp = TopicPartition(*move.replica[:2])
            if move.status is not COPYING or any(one not in self.set_aside for one in self._tracker.moving):
                continue
            if self._patience.unchanged(("copies", move.replica)) >= max(limit, LONG_COPY_SECONDS):
                self.set_aside.add(tp, f"its copy to {move.target} on broker {move.replica.broker} did not end in time")

    def _give_up_stalled(self) -> None:
        """Cancel and set aside what has been under way for too long without advancing."""
        self._give_up_copies()
        status, limit = self._tracker.status, self._requests.controls.settings.give_up_after
        for tp in list(self._tracker.moving):
            live, reassignment = status.live.get(tp), status.reassignments.get(tp)
            in_sync = frozenset() if live is None else live.in_sync
            value = (self._remedy.least(tp), in_sync, None if reassignment is None else reassignment.target)
            if tp in self.set_aside or self._patience.unchanged(("moves", tp), value) < limit:
                continue
            words = next((stall.words for stall in self._remedy.stalls if stall.partition == tp), "no reason found")
            reason = f"it did not advance for {limit:.0f} s: {words}"
            if reassignment is not None and live is not None:
                least = self._health.min_isr(tp.topic)
                kept = reason_not_to_cancel(tp, live, reassignment, self._alive, least)
                reason = self._cancel(tp, reason) if kept is None else f"{reason}; it goes on, since {kept}"
            self.set_aside.add(tp, reason)
