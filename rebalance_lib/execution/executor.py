"""Carry a plan out on a live cluster: begin moves as caps allow, follow them, and mend what stalls.

Goal: a plan of any size is carried out under live traffic without hurting anyone, and the process that does it may die
at any moment. So it remembers nothing that matters: at each look it compares plan and cluster, and begins what is
neither done nor under way. A new engine on the same plan goes on where the last one stopped.

    look     compare, and begin the moves that caps, window, disks and the health of the cluster allow
    check    a look; then measure what is under way, set the wanted throttle, remedy stalls, write the journal

Nothing begins while: the window is closed; a partition anywhere is short of in-sync replicas (then only those of the
plan that are short themselves); somebody else's reassignments are under way; a partition of the plan was moved or
cancelled by somebody else; or stalls are to pause the run. What is under way goes on.

A request to begin moves is sent once. If its answer is lost, a later look tells what became of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.cancellation import asked_to_cancel
from rebalance_lib.execution.clean_up import Leaving
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import log_dir_moves
from rebalance_lib.execution.messages import Tell
from rebalance_lib.execution.metadata_lag import MetadataLag
from rebalance_lib.execution.min_isr import MinIsr
from rebalance_lib.execution.next_moves import (
    Step,
    begin,
    log_dir_steps,
    partition_steps,
    that_fit_alone,
    under_way,
    with_disk_space,
)
from rebalance_lib.execution.plan_status import Ends, PlanStatus, Status, listing, read_status
from rebalance_lib.execution.progress import Meter, Progress, Sizes
from rebalance_lib.execution.records.audit import moves
from rebalance_lib.execution.records.journal import ENDED, Journal, read_journal
from rebalance_lib.execution.report import Look, Report, State
from rebalance_lib.execution.settings import OnStall, Settings
from rebalance_lib.execution.stalls import Cause, Evidence, Stall, StallWatch, copying, diagnose, needed_rates
from rebalance_lib.execution.throttles.maintain import ThrottleMaintainer
from rebalance_lib.plan.waves import Move, Waves, in_order
from rebalance_lib.topology import TopicPartition

LOOK_SECONDS = 0.2  # between looks, while moves wait to begin
IDLE_SECONDS = 1.0  # between looks, while all that is left is under way
REFUSED_SECONDS = 120.0  # how long requests to begin moves may fail one after the other
REFUSED_APART_SECONDS = 60.0  # failed requests that are further apart have nothing to do with each other
MOST_PAUSE_SECONDS = 15.0  # between tries while the cluster cannot be asked
LOST_SECONDS = 600.0  # how long cluster or storage may be out of reach: brokers restart, controllers fail over


class RefusedError(ClusterError):
    """The controller does not take what it is asked for, and does not come round."""


class Executor:
    """One process that carries out one job.

    Args:
        cluster: The live cluster.
        job: What is to be carried out.
        settings: How.
        tell: Takes words for people.
        ask_rate: Asked at every check for a throttle that somebody wants, which is None for no wish. A new wish holds
            until another one, or until a stall is remedied.
        leaving: Watches whether the way out is taken elsewhere, since the run began; by default since now.
    """

    def __init__(
        self,
        cluster: Cluster,
        job: Job,
        settings: Settings,
        *,
        tell: Tell = lambda _: None,
        ask_rate: Callable[[], int | None] | None = None,
        leaving: Leaving | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = cluster.clock
        self._job = job
        self._settings = settings
        self._tell = tell
        self._leaving = leaving or Leaving(job.artifacts)
        self._meter = Meter(job.plan, job.before)
        self._journal = Journal(job.artifacts, cluster.clock)
        self._watch = StallWatch(settings.stall_checks)
        self._min_isr = MinIsr()
        self._ends = Ends(job.targets, job.origins)
        self._beliefs = MetadataLag(job, self._journal, self._meter.size, cluster.clock)
        self._keeper = ThrottleMaintainer(
            cluster, job, settings, self._journal, self._tell, leaving=self._leaving, ask_rate=ask_rate
        )
        self._stop = threading.Event()
        self._checked = False
        self._stalled: tuple[Stall, ...] = ()
        self._refused: tuple[float, float] | None = None  # since when requests fail, and when one last did
        self._told: tuple[str, ...] = ()
        self._asked_to_cancel: str | None = None

    def run(
        self,
        interval: float,
        on_report: Callable[[Report], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> Report | None:
        """Check every ``interval`` seconds until the run has ended; between checks, begin moves as others end.

        Args:
            interval: Seconds between two checks.
            on_report: Called with each report.
            stop: Set it to leave before the end; moves under way go on.

        Returns:
            The last report; None if it was stopped.

        Raises:
            RebalanceError: The cluster, or the run's artifacts, were out of reach for too long, or the cluster refuses
                what it is asked.
        """
        self._stop = stop or threading.Event()
        try:
            return self._run(interval, on_report)
        finally:
            self._journal.flush()

    def _run(self, interval: float, on_report: Callable[[Report], None]) -> Report | None:
        lost_since: float | None = None
        due = self._clock.monotonic()
        while not self._stop.is_set():
            begun = self._clock.monotonic()
            try:
                if begun >= due:
                    report = self.check()
                    on_report(report)
                    if report.ended:
                        return report
                    due, waiting = begun + interval, report.state is State.WAITING or report.progress.pending > 0
                else:
                    look = self.look()
                    waiting = look.waiting
                    due = due if waiting or look.moving else begun
            except RefusedError:
                raise
            except RebalanceError as error:  # of the cluster, or of the storage of the run's artifacts
                lost_since = lost_since or begun
                if begun - lost_since > LOST_SECONDS:
                    raise
                due, pause = begun, min(MOST_PAUSE_SECONDS, LOOK_SECONDS + begun - lost_since)
                what = "the cluster cannot be asked" if isinstance(error, ClusterError) else "it cannot go on"
                self._tell(f"{what} now, trying again in {pause:.0f} s: {error}")
            else:
                lost_since = None
                # A look at a large cluster takes its time: at most half of all time is spent on looking.
                pause = max(LOOK_SECONDS if waiting else IDLE_SECONDS, self._clock.monotonic() - begun)
                pause = min(pause, max(0.0, due - self._clock.monotonic()))
            self._clock.wait(self._stop, pause)
        return None

    def check(self) -> Report:
        """Look, measure, set the wanted throttle, remedy stalls, and write the journal."""
        self._heed_others()
        look = self.look()
        self._note_ends(look)
        progress, sizes = self._meter.read(self._cluster, look.status, look.alive)
        throttle = None
        if self._asked_to_cancel is None:
            if not self._stop.is_set():
                self._keeper.cover(look.status, look.alive, look.log_dirs)
            throttle = self._keeper.hold(look.status, look.alive, look.log_dirs)
        self._stalled = self._stalls(look, progress, sizes, throttle)
        self._journal.flush()
        return Report(
            self._state(look),
            progress,
            look.holds,
            self._stalled,
            throttle,
            len(look.log_dirs_left),
            self._keeper.held.theirs,
        )

    def _note_ends(self, look: Look) -> None:
        """At the first check: moves that an earlier process began and that are over have an end in the record, too."""
        if self._checked:
            return
        self._checked = True
        done = {str(tp) for tp in look.status.having(Status.DONE)}
        copied = {str(move.replica) for move in look.log_dirs_left}
        with suppress(RebalanceError):  # it is for the record alone
            for move in moves(read_journal(self._job.artifacts)):
                if move["ended"] is None and move["partition"] in done and move["replica"] not in copied:
                    named = {"replica": move["replica"]} if move["replica"] else {}
                    self._journal.note(ENDED, partition=move["partition"], bytes=move["bytes"], **named)

    def look(self) -> Look:
        """Compare the plan with the cluster, and begin what may begin."""
        found = read_status(self._cluster, ends=self._ends, doubted=(), whole_cluster=True)
        log_dirs = log_dir_moves(self._cluster, self._job.log_dirs)
        status = self._beliefs.believe(found, log_dirs)
        alive = frozenset(self._cluster.alive_brokers())
        self._meter.learn(self._cluster, status, alive)
        short = self._min_isr.short(self._cluster, status.live)
        holds = self._holds(status, short)
        begun, held = self._begin(Look(status, alive, log_dirs, holds, 0), short)
        # Whoever ended the run while its moves were chosen is the reason why it ends.
        look = Look(status, alive, log_dirs, (*self._holds(status, short), *held), begun)
        if look.holds != self._told:
            self._tell(f"held back: {'; '.join(look.holds)}" if look.holds else "moves begin again")
            self._journal.note("held back" if look.holds else "released", reasons=list(look.holds))
            self._told = look.holds
        return look

    def _heed_others(self) -> None:
        """Notice that somebody wants the run to end, or has ended it."""
        if self._leaving.begun():
            self._asked_to_cancel = "the way out of the run was taken elsewhere"
            return
        with suppress(RebalanceError):  # what cannot be read now counts as unchanged
            self._asked_to_cancel = asked_to_cancel(self._job.artifacts)

    def _state(self, look: Look) -> State:
        """Where the run stands; what somebody else did ends it only when nothing is under way any more."""
        if self._asked_to_cancel and (look.moving or look.waiting):
            return State.CANCELLED
        if look.moving:
            return State.MOVING
        if look.status.having(Status.DRIFTED):
            return State.DRIFTED
        if self._beliefs.cancelled:
            return State.CANCELLED
        if look.waiting or not self._beliefs.all_there(look.status):
            return State.WAITING
        return State.REACHED

    def _holds(self, status: PlanStatus, short: Sequence[TopicPartition]) -> tuple[str, ...]:
        """Why nothing may begin now; empty if moves may."""
        holds = []
        if self._asked_to_cancel:
            holds.append(self._asked_to_cancel)
        if drifted := status.having(Status.DRIFTED):
            holds.append(f"somebody else moved {listing(drifted)}")
        if self._beliefs.cancelled:
            holds.append(f"somebody else cancelled {listing(list(self._beliefs.cancelled))}")
        if status.foreign:
            holds.append(f"reassignments of somebody else are under way: {listing(status.foreign)}")
        if not self._settings.open_at(self._clock.now()):
            holds.append(f"the window {self._settings.window} is closed")
        if short and self._settings.pause_under_min_isr:
            holds.append(f"{len(short)} partitions are short of in-sync replicas: {listing(list(short), 3)}")
        if self._stalled and self._settings.on_stall is OnStall.PAUSE:
            holds.append(f"moves have stalled: {self._stalled[0]}")
        return tuple(holds)

    def _begin(self, look: Look, short: Sequence[TopicPartition]) -> tuple[int, tuple[str, ...]]:
        """Begin what may begin; returns how many steps began, and what holds single ones back."""
        at_risk = set(short)
        only_risk = len(look.holds) == 1 and bool(short) and self._settings.pause_under_min_isr
        if look.holds and not only_risk:
            return 0, ()
        pace, size = self._settings.pace, self._meter.size
        waiting = partition_steps(self._job, look.status, size, at_risk, in_stages=pace.one_replica_at_a_time)
        waiting += log_dir_steps(look.status, look.log_dirs, size)
        if only_risk:
            waiting = [step for step in waiting if step.at_risk]
        dead = {broker for step in waiting for broker in step.receivers} - look.alive
        ready = [step for step in waiting if dead.isdisjoint(step.receivers)]
        held = []
        if dead:
            held.append(f"{len(waiting) - len(ready)} moves wait for brokers {sorted(dead)}, which are down")
        steps, crowded = self._choose(ready, under_way(look.status, look.log_dirs, size), look)
        if crowded:
            held.append(f"{len(crowded)} moves wait for room: {crowded[0]}")
        return self._submit(steps, look), tuple(held)

    def _choose(self, ready: Sequence[Step], moving: Sequence[Move], look: Look) -> tuple[list[Step], list[str]]:
        """The steps that caps and disks let begin, and why others have no room."""
        pace, reserve = self._settings.pace, self._settings.disk_reserve
        steps = _first(Waves(pace, in_order(ready, pace.order), moving))
        chosen, crowded = with_disk_space(self._cluster, steps, moving, look.alive, reserve)
        if not crowded:
            return chosen, []
        # Those without room must not keep others from beginning, which may make room for them.
        fitting = that_fit_alone(self._cluster, ready, moving, look.alive, reserve)
        steps = _first(Waves(pace, in_order(fitting, pace.order), moving))
        return with_disk_space(self._cluster, steps, moving, look.alive, reserve)[0], crowded

    def _submit(self, steps: Sequence[Step], look: Look) -> int:
        """Ask for the steps; what is refused is told, and asked for again at a later look, for some time."""
        self._heed_others()
        if not steps or self._stop.is_set() or self._asked_to_cancel:
            return 0
        self._keeper.cover(look.status, look.alive, look.log_dirs)
        accepted = True
        try:
            begin(self._cluster, steps)
        except ClusterError as error:
            accepted = False
            self._journal.note("request failed", error=str(error), partitions=len(steps))
            self._bear(error)
            self._tell(f"not all moves could be begun, looking again: {error}")
        else:
            self._refused = None
        self._beliefs.begin(steps, look.status, accepted=accepted)
        return len(steps)

    def _bear(self, error: ClusterError) -> None:
        """Bear with a request that failed, unless they have failed one after the other for too long."""
        now = self._clock.monotonic()
        since, last = self._refused or (now, now)
        self._refused = (since if now - last <= REFUSED_APART_SECONDS else now, now)
        if now - self._refused[0] > REFUSED_SECONDS:
            raise RefusedError(f"moves could not be begun for {REFUSED_SECONDS:.0f} s: {error}") from error

    def _stalls(self, look: Look, progress: Progress, sizes: Sizes, throttle: int | None) -> tuple[Stall, ...]:
        """Find moves that have stalled and why, tell what is new, and remedy what can be."""
        copies = copying(progress.copies, look.status)
        stalled = self._watch.observe(copies, self._clock.monotonic())
        if not stalled:
            return ()
        silent = (
            sizes.silent | self._keeper.held.silent | {move.replica.broker for move in look.log_dirs if move.silent}
        )
        sizes = replace(sizes, silent=silent)
        needed = needed_rates(copies, look.status, self._watch.write_rates)
        found = diagnose(stalled, Evidence(look.status, sizes, look.alive, throttle, needed, self._keeper.lowered))
        found.sort(key=lambda stall: stall.cause is Cause.UNKNOWN)  # what is known first
        known = {(stall.partition, stall.broker, stall.cause) for stall in self._stalled}
        new = [stall for stall in found if (stall.partition, stall.broker, stall.cause) not in known]
        for stall in new:
            self._journal.note("stalled", partition=str(stall.partition), broker=stall.broker, cause=stall.cause)
        if new:
            self._tell(f"{len(found)} moves have stalled: {new[0]}")
        if self._keeper.remedy(found):
            self._watch.forgive()
        return tuple(found)


def _first(waves: Waves) -> list[Step]:
    """What may begin now."""
    return [step for step in waves.begin() if isinstance(step, Step)]
