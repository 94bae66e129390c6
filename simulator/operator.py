"""What people and Airflow do with the executor: the one module of the simulator that knows how it is called.

Each function here is the main function of a process: a command of the command line, a task of the DAG, or somebody who
makes a request while a run is under way. It is given that process's view of cluster, storage and clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import Clock
from rebalance_lib.execution import (
    Executor,
    Job,
    Kind,
    Report,
    Settings,
    clean_up,
    make_request,
    preflight,
    run_plan,
    set_throttles,
)
from rebalance_lib.execution.clean_up import executing
from rebalance_lib.execution.commands.plan_state import set_owner
from rebalance_lib.execution.finalize import finalize
from rebalance_lib.execution.records.execution import note_end
from rebalance_lib.execution.throttles.restore import restore_stale_throttles
from rebalance_lib.plan import Plan, PlanEntry
from simulator.shape import Planned, Shape

APPROVED_BY = "alice"
LOCK_SECONDS = 60.0  # how long a task waits for another one that executes the plan or cleans up
_SETTINGS = {one.name for kind in (Settings, type(Settings().pace)) for one in fields(kind)}


def supported_settings(given: Mapping[str, Any]) -> Settings:
    """The settings of a schedule; a kept schedule may name some that no longer exist."""
    return Settings.from_dict({name: value for name, value in given.items() if name in _SETTINGS})


@dataclass(slots=True)
class Said:
    """What a run said: its reports and its messages, and what is known of how it ended.

    Attributes:
        report: The last report.
        ending: What the command returned, or, in Airflow, what the last task found.
        left: What could not be restored, as the last clean-up said.
        set_aside: The partitions that the run gave up, with the reason.
        messages: What the last process that could clean up has logged.
    """

    report: Report | None = None
    ending: Any = None
    left: dict[str, str] = field(default_factory=dict)
    set_aside: dict[Any, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def log(self, say: Callable[[str], None]) -> Callable[[str], None]:
        """A log that keeps the messages of one process."""
        self.messages = messages = []

        def log(text: str) -> None:
            messages.append(text)
            say(text)

        return log

    def on_report(self, report: Report) -> None:
        """Take a report."""
        self.report = report
        self.set_aside = dict(getattr(report, "set_aside", {}))


@dataclass(frozen=True, slots=True)
class Place:
    """What one process works with."""

    cluster: Any
    storage: Artifacts
    clock: Clock
    say: Callable[[str], None]


def job_of(shape: Shape, plan: tuple[Planned, ...], cluster_id: str, topic_ids: Mapping[str, str]) -> Job:
    """The job of a plan, without a place for its artifacts yet."""
    before = [
        PlanEntry(topic.name, number, partition.replicas)
        for topic in shape.topics
        for number, partition in enumerate(topic.partitions)
    ]
    planned = [PlanEntry(one.topic, one.partition, one.replicas, one.log_dirs) for one in plan]
    rates = {
        one.topic_partition: float(shape.partition(one.topic, one.partition).write_rate)
        for one in plan
        if shape.partition(one.topic, one.partition).write_rate
    }
    known = {one.name for one in fields(Job)}
    sizes = {one.topic_partition: shape.partition(one.topic, one.partition).size for one in plan}
    more: dict[str, Any] = {"topic_ids": dict(topic_ids), "sizes": sizes}
    return Job(
        Plan.from_entries(planned),
        Plan.from_entries(before),
        cluster_id,
        Artifacts("memory://"),
        write_rates=rates,
        **{name: value for name, value in more.items() if name in known},
    )


def run_command(place: Place, job: Job, settings: Settings, interval: float, said: Said) -> Any:
    """``kafka-rebalance run``."""
    job = replace(job, artifacts=place.storage)
    with place.storage.locked(make=True, clock=place.clock):
        said.ending = run_plan(
            place.cluster,
            job,
            settings,
            interval=interval,
            approved_by=APPROVED_BY,
            approved_at=place.clock.timestamp(),
            before_changes=lambda: set_owner(place.storage, job.plan, job.cluster_id),
            on_report=said.on_report,
            log=said.log(place.say),
        )
        said.left = dict(said.ending.restored.left)
        said.set_aside = dict(getattr(said.ending, "set_aside", {}))
    return said.ending


def cancel_command(place: Place, job: Job, settings: Settings, said: Said) -> None:
    """``kafka-rebalance cancel`` of a run that nobody executes any more."""
    clean_up_task(place, job, settings, said)
    note_end(place.storage)


def execute_task(place: Place, job: Job, settings: Settings, said: Said) -> None:
    """Airflow's task that checks, throttles and begins the first moves."""
    job = replace(job, artifacts=place.storage)
    with executing(place.storage, place.clock) as watch:
        found = preflight(place.cluster, job, settings)
        set_throttles(place.cluster, job, found.status, settings, log=place.say)
        said.on_report(Executor(place.cluster, job, settings, log=place.say, watch=watch).check())


def wait_task(place: Place, job: Job, settings: Settings, interval: float, said: Said) -> None:
    """Airflow's triggerer, which begins the other moves and follows them."""
    job = replace(job, artifacts=place.storage)
    with executing(place.storage, place.clock) as watch:
        Executor(place.cluster, job, settings, log=place.say, watch=watch).run(interval, said.on_report)


def clean_up_task(place: Place, job: Job, settings: Settings, said: Said) -> None:
    """Airflow's task that cancels what is under way and restores throttles, whatever happened."""
    job = replace(job, artifacts=place.storage)
    with place.storage.locked(make=True, seconds=LOCK_SECONDS, clock=place.clock):
        said.left = dict(clean_up(place.cluster, job, settings, log=said.log(place.say)).left)


def finalize_task(place: Place, job: Job, settings: Settings, said: Said) -> None:
    """Airflow's task that elects leaders, compares, and writes the record of the run."""
    job = replace(job, artifacts=place.storage)
    said.ending = finalize(
        place.cluster, job, settings, approved_by=APPROVED_BY, approved_at=place.clock.timestamp(), log=place.say
    )


def next_snapshot(place: Place, runs: Artifacts, said: Said) -> None:
    """What a later snapshot does first: it restores throttles that dead runs left."""
    for restored in restore_stale_throttles(place.cluster, runs).values():
        said.left = dict(restored.left)


def ask(storage: Artifacts, clock: Clock, kind: str, value: object) -> None:
    """A person asks something of a run that is under way."""
    make_request(storage, Kind(kind), value, by=APPROVED_BY, clock=clock)
