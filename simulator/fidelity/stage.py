"""What a stage can do: the two worlds in which a scene is played, as the director sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import Clock
from rebalance_lib.execution import Job, Report, Settings
from simulator import operator
from simulator.operator import Place, Said

RUN, CANCEL, SNAPSHOT = "run", "cancel", "snapshot"  # what a process does
RUNS, DIRECTORY = "runs", "runs/plan.state"


@dataclass(slots=True)
class Status:
    """What is known of a process: whether it runs, how many reports it made, and how it ended.

    Attributes:
        alive: Whether it runs.
        reports: How many checks it has reported.
        state: The state in its last report; empty if there was none.
        completed: Whether the plan was completed, as the command returned; None if it did not.
        set_aside: The partitions that were given up, with the reason.
        left: What could not be restored, with the reason.
        error: What it failed with; empty if it did not.
    """

    alive: bool = True
    reports: int = 0
    state: str = ""
    completed: bool | None = None
    set_aside: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


class Heard(Said):
    """What a process of the run says, and how many reports it made."""

    __slots__ = ("reports",)

    def __init__(self) -> None:
        super().__init__()
        self.reports = 0

    def on_report(self, report: Report) -> None:
        """Take a report."""
        Said.on_report(self, report)
        self.reports += 1

    def status(self, alive: bool, error: BaseException | None) -> Status:
        """The status of the process."""
        return Status(
            alive,
            self.reports,
            "" if self.report is None else str(self.report.state),
            None if self.ending is None else bool(self.ending.completed),
            {str(tp): reason for tp, reason in self.set_aside.items()},
            dict(self.left),
            "" if error is None else f"{type(error).__name__}: {error}",
        )


@dataclass(frozen=True, slots=True)
class Task:
    """What a process does: the run, its cancellation, or the next snapshot, as `simulator.operator` does them."""

    what: str
    job: Job
    settings: Settings
    interval: float

    def run(self, place: Place, heard: Heard) -> None:
        """Do it."""
        if self.what == RUN:
            operator.run_command(place, self.job, self.settings, self.interval, heard)
        elif self.what == CANCEL:
            operator.cancel_command(place, self.job, self.settings, heard)
        else:
            operator.next_snapshot(place, place.storage, heard)


class Stage(Protocol):
    """The world outside of the run.

    Attributes:
        client: The cluster, as another tool uses it.
        clock: What the director waits with.
        storage: The artifacts of the run.
        patience: How many seconds something may take that must come.
    """

    client: Any
    clock: Clock
    storage: Artifacts
    patience: float

    def start(self, what: str) -> None:
        """Start the process of the run, of its cancellation, or of the next snapshot."""

    def kill(self) -> None:
        """SIGKILL the process that was started last."""

    def status(self) -> Status:
        """What is known of the process that was started last."""

    def kill_broker(self, broker: int) -> None:
        """SIGKILL a broker."""

    def start_broker(self, broker: int) -> None:
        """Start a broker again."""

    def hang_broker(self, broker: int) -> None:
        """SIGSTOP a broker."""

    def expire_session(self, broker: int) -> None:
        """Let the controller take a broker that hangs for dead; the real one does by itself."""

    def resume_broker(self, broker: int) -> None:
        """SIGCONT a broker."""

    def fail_controller(self) -> None:
        """Kill the controller and start it again."""

    def create_topic(self, topic: str, replicas: Sequence[Sequence[int]], min_isr: int) -> None:
        """Create a topic, with no record in it."""

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""

    def tear(self, name: str, part: float) -> bool:
        """Cut a file of the run to a part of its bytes; returns whether it was there."""
