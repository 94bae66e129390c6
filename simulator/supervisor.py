"""Whoever starts the processes of a run, and starts them again: a person at a command line, or Airflow.

    command line   ``run``; after an error a person waits, and runs it again; a run that was cancelled and died is
                   cancelled again
    airflow        ``execute``, then ``wait`` in the triggerer, then ``clean_up`` and ``finalize`` whatever happened;
                   tasks that fail are retried

A process that was killed is started again some seconds later, until it ends by itself. Errors are answered patiently: a
few times while faults strike, and once more when they have ceased. When the run is over, and its rollback if somebody
asked for one, the next snapshot restores what dead processes left, as it does in real life.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rebalance_lib.errors import RebalanceError
from rebalance_lib.execution import Job
from rebalance_lib.topology import TopicPartition
from simulator import operator
from simulator.operator import Place, Said
from simulator.schedule import AIRFLOW

if TYPE_CHECKING:
    from simulator.processes import Process
    from simulator.world import World

RESTART_SECONDS = 5.0  # until somebody notices that a process is gone
RETRY_SECONDS = 15.0  # until somebody tries again what failed
TRIES = 3  # of a step that fails while faults strike; one more when they have ceased
NEXT_SNAPSHOT_SECONDS = 20.0


@dataclass(slots=True)
class Run:
    """One plan on its way: the run of the schedule, or its rollback."""

    name: str
    job: Job
    directory: str
    steps: list[str]
    said: Said = field(default_factory=Said)
    errors: list[str] = field(default_factory=list)  # of the step under way, one for each try
    last_error: str = ""
    given_up: str = ""  # the error of a task that Airflow retries no more
    ended: bool = False
    tried_in_calm: bool = False
    cancelled: bool = False  # by the command, after its process had died
    ended_at: float = 0.0
    not_at_target: set[TopicPartition] = field(default_factory=set)  # when it ended


class Supervisor:
    """Starts processes, and notices that they have ended."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._airflow = world.schedule.way == AIRFLOW
        self._current: Process | None = None
        self._others: list[Process] = []
        self._restart_after = RESTART_SECONDS
        self._snapshots = 0
        self.runs: list[Run] = []
        self.wants_rollback = False
        self.done = False
        self.stale = Said()

    def start(self, job: Job) -> None:
        """Start the run of the schedule."""
        self._begin(Run("run", job, "runs/plan.state", self._steps()))

    @property
    def run(self) -> Run:
        """The run that is under way, or was last."""
        return self.runs[-1]

    @property
    def working(self) -> list[Process]:
        """The processes of the run that are alive, the one that was started last first."""
        found = [self._current] if self._current is not None and self._current.alive else []
        return found + [process for process in reversed(self._others) if process.alive]

    def restart_after(self, seconds: float) -> None:
        """The next process that is killed is started again so many seconds later."""
        self._restart_after = seconds

    def second(self) -> None:
        """Start the step that is under way once more, beside the one that works on it."""
        if self.done or self.run.ended or self._current is None:
            return
        self._others.append(self._spawn(self.run, self.run.steps[0], Said()))

    def poll(self) -> None:
        """Notice that the process of this step has ended; called after every event."""
        process = self._current
        if process is None or process.alive:
            return
        self._current = None
        if not process.finished:
            self._world.killed(process, self._restart_after)
            self._world.note("supervisor", f"{process.name} is gone, starting it again in {self._restart_after} s")
            self._later(self._restart_after, self._step)
            self._restart_after = RESTART_SECONDS
        elif process.error is None:
            self._succeeded()
        else:
            self._failed(process.error)

    def _steps(self) -> list[str]:
        return ["execute", "wait", "clean_up", "finalize"] if self._airflow else ["run"]

    def _begin(self, run: Run) -> None:
        self.runs.append(run)
        self._step()

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        scheduler = self._world.scheduler
        scheduler.at(scheduler.now + seconds, action)

    def _step(self) -> None:
        run = self.run
        if not run.steps:
            self._end()
            return
        run.tried_in_calm = self._world.calm
        self._current = self._spawn(run, run.steps[0], run.said)

    def _spawn(self, run: Run, step: str, said: Said) -> Process:
        world = self._world
        mains: dict[str, Callable[[Place], Any]] = {
            "run": lambda place: operator.run_command(place, run.job, world.settings, world.schedule.interval, said),
            "cancel": lambda place: operator.cancel_command(place, run.job, world.settings, said),
            "execute": lambda place: operator.execute_task(place, run.job, world.settings, said),
            "wait": lambda place: operator.wait_task(place, run.job, world.settings, world.schedule.interval, said),
            "clean_up": lambda place: operator.clean_up_task(place, run.job, world.settings, said),
            "finalize": lambda place: operator.finalize_task(place, run.job, world.settings, said),
        }
        return world.spawn(step, run.directory, mains[step])

    def _succeeded(self) -> None:
        run = self.run
        step = run.steps[0]
        if step == "clean_up" and run.said.left and self._again(str(run.said.left)):
            return
        run.errors.clear()
        run.last_error = ""
        run.steps.pop(0)
        self._step()

    def _failed(self, error: BaseException) -> None:
        world, run = self._world, self.run
        world.note("supervisor", f"{run.steps[0]} failed: {type(error).__name__}: {error}")
        if not isinstance(error, RebalanceError):
            world.crashed(error)
        run.last_error = str(error)
        if run.steps[0] == "run" and world.cancelled:
            run.steps[0] = "cancel"
            run.cancelled = True
        elif self._again(str(error)):
            return
        elif run.steps[0] in ("execute", "wait"):
            run.given_up = str(error)
            run.steps[:] = ["clean_up", "finalize"]
        else:
            run.steps.pop(0)
        run.errors.clear()
        self._later(RETRY_SECONDS, self._step)

    def _again(self, error: str) -> bool:
        """Try the step again, if there is hope."""
        run = self.run
        run.errors.append(error)
        hopeless = self._world.cancelled and run.steps[0] in ("execute", "wait")
        if hopeless or (len(run.errors) >= TRIES and (run.tried_in_calm or not self._world.calm_ahead)):
            return False
        wait = RETRY_SECONDS
        if len(run.errors) >= TRIES:
            wait = max(wait, self._world.calm_at + 1.0 - self._world.scheduler.now)
        self._later(wait, self._step)
        return True

    def _end(self) -> None:
        """The run is over: its rollback follows, if somebody asked for one, or the next snapshot."""
        self.run.ended = True
        self.run.ended_at = self._world.scheduler.now
        self._world.run_ended(self.run)
        if self.wants_rollback and len(self.runs) == 1:
            job = self._world.rollback_job()
            if job is not None:
                self._begin(Run("rollback", job, "runs/rollback.state", self._steps()))
                return
        self._later(max(0.0, self._world.calm_at - self._world.scheduler.now), self._next_snapshot)

    def _next_snapshot(self) -> None:
        """Wait for whoever is still at work, then restore what was left, a few times."""
        if self.working:
            self._later(NEXT_SNAPSHOT_SECONDS, self._next_snapshot)
            return
        self._world.repair()
        self._snapshots += 1
        self.stale = Said()
        process = self._world.spawn(
            "snapshot", "runs", lambda place: operator.next_snapshot(place, place.storage, self.stale)
        )
        self._later(NEXT_SNAPSHOT_SECONDS, lambda: self._after_snapshot(process))

    def _after_snapshot(self, process: Process) -> None:
        if process.alive:
            self._later(NEXT_SNAPSHOT_SECONDS, lambda: self._after_snapshot(process))
            return
        if process.error is not None and not isinstance(process.error, RebalanceError):
            self._world.crashed(process.error)
        if (process.error is not None or self.stale.left) and self._snapshots < TRIES:
            self._later(NEXT_SNAPSHOT_SECONDS, self._next_snapshot)
            return
        self.done = True
        self._world.scheduler.stop()
