"""One simulation under way: the cluster, the disk, the processes, and what is known about who did what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from rebalance_lib.execution import Job
from rebalance_lib.plan import Plan, PlanEntry
from rebalance_lib.topology import TopicPartition
from simulator import operator
from simulator.client import SimulatedClient
from simulator.clock import SimulatedClock
from simulator.cluster import NewPartition, SimulatedCluster
from simulator.configs import MIN_ISR, REPLICA_LISTS
from simulator.ending import not_at_target
from simulator.ledger import Ledger
from simulator.operator import Place
from simulator.processes import Process, Scheduler
from simulator.schedule import AIRFLOW, Schedule
from simulator.storage import Disk, SimulatedStorage
from simulator.supervisor import Run, Supervisor
from simulator.trace import Trace, TracedClient, TracedDisk

URI = "file:///sim"
BEGIN = 10.0  # when the run begins: brokers whose metadata lags know the cluster by then
CLEAN_UP_SECONDS = 5.0  # in which throttles are restored and read back where every broker answers: some two
EXECUTORS = ("run", "execute", "wait")  # steps in which an executor works
STARTING_SECONDS = 30.0  # until a process that was just started has checked everything, and acts
TOGETHER_SECONDS = 60.0  # how long what two executors did together may be seen


class Approved(NamedTuple):
    """What a process was approved to do: targets and origins of its plan, and of which run."""

    run: Run
    targets: dict[TopicPartition, tuple[int, ...]]
    origins: dict[TopicPartition, tuple[int, ...]]

    @property
    def first(self) -> bool:
        """Whether it is the run of the schedule, not its rollback."""
        return self.run.name == "run"


class World:
    """Everything of one simulation.

    Attributes:
        calm_at: When the last fault has ceased.
        killed_at: When processes were killed, by name.
    """

    uri = URI

    def __init__(self, schedule: Schedule, *, traced: bool = False, reads: bool = False) -> None:
        self.schedule = schedule
        self.settings = operator.supported_settings(schedule.settings)
        self.rng = Random(f"world {schedule.seed}")
        self.scheduler = Scheduler()
        self.trace = Trace(lambda: self.scheduler.now, reads=reads) if traced else None
        self.cluster = _cluster(schedule, self.rng)
        self.scheduler.on_advance.append(self.cluster.advance)
        self.disk = Disk() if self.trace is None else TracedDisk(self.trace)
        self.ledger = _ledger(schedule)
        self.calm_at = BEGIN + schedule.calm_at
        self.first_sizes = {
            TopicPartition(topic.name, number): one.size
            for topic in schedule.shape.topics
            for number, one in enumerate(topic.partitions)
        }
        self.killed_at: dict[str, float] = {}
        self.crashes: list[BaseException] = []
        self.clocks: list[SimulatedClock] = []
        self.clock_offset = 0.0
        self._numbers: dict[str, int] = {}
        self._runs: dict[str, Run] = {}
        self._started: dict[Process, float] = {}
        self._together_at = -1e9
        ids = {tp.topic: partition.topic_id for tp, partition in self.cluster.partitions.items()}
        self.job = operator.job_of(schedule.shape, schedule.plan, self.cluster.cluster_id, ids)
        self.supervisor = Supervisor(self)

    def note(self, who: str, what: str) -> None:
        """Add a line to the trace, if there is one."""
        if self.trace is not None:
            self.trace.note(who, what)

    def later(self, seconds: float, action: Callable[[], Any]) -> None:
        """Have something happen some seconds from now."""
        self.scheduler.at(self.scheduler.now + seconds, action)

    # Processes

    def spawn(self, step: str, directory: str, main: Callable[[Place], Any]) -> Process:
        """Start a process with its own view of cluster, storage and clock."""
        number = self._numbers[step] = self._numbers.get(step, 0) + 1
        name = f"{step}#{number}"
        rng = Random(f"{name} {self.schedule.seed}")
        process = self.scheduler.spawn(name, lambda: main(self._place(name, directory, process, rng)))
        if self.supervisor.runs:
            self._runs[name] = self.supervisor.run
        self._started[process] = self.scheduler.now
        if sum(one.alive for one in self._executors()) > 1:
            self.ledger.seconds_executor = True
            self._together_at = self.scheduler.now
        self.note("supervisor", f"starts {name}")
        return process

    def _place(self, name: str, directory: str, process: Process, rng: Random) -> Place:
        clock = SimulatedClock(process, rng, offset=self.clock_offset)
        self.clocks.append(clock)
        client: Any = SimulatedClient(self.cluster, process, rng, clock=clock)
        if self.trace is not None:
            client = TracedClient(client, name, self.trace)
        storage = SimulatedStorage(f"{URI}/{directory}", self.disk, process)
        return Place(client, storage, clock, lambda text: self.note(name, f"says: {text}"))

    def _executors(self) -> list[Process]:
        return [process for process in self._started if process.alive and process.name.split("#")[0] in EXECUTORS]

    def executor_can_act(self) -> bool:
        """Whether nothing keeps an executor from doing what it should: it has been up and untroubled for a while."""
        now = self.scheduler.now
        if now < self.ledger.trouble_until:
            return False
        return any(now - self._started[process] > STARTING_SECONDS for process in self._executors())

    @property
    def clean_up_waits(self) -> bool:
        """Whether those who executed the plan clean up by now, and that takes longer than it does if all answer."""
        executors = self._executors()
        if not executors:
            return False
        begun = self.disk.changed.get(f"{self.uri}/{self.supervisor.run.directory}/clean_up.json", -1.0)
        waits = self.scheduler.now - begun > CLEAN_UP_SECONDS
        return waits and all(begun > self._started[process] for process in executors)

    @property
    def two_executors(self) -> bool:
        """Whether two executors worked on the plan at the same time, now or a moment ago.

        The lock of the command line prevents it. In Airflow nothing can: a triggerer that is taken for dead may live.
        """
        if self.schedule.way != AIRFLOW:
            return False
        if len(self._executors()) > 1:
            self._together_at = self.scheduler.now
        return self.scheduler.now - self._together_at < TOGETHER_SECONDS

    def plan_of(self, process: str) -> Approved:
        """What a process was approved to do."""
        run = self._runs.get(process) or self.supervisor.run
        return Approved(run, run.job.targets, run.job.origins)

    # What the supervisor asks for

    @property
    def calm(self) -> bool:
        """Whether all faults have ceased."""
        return self.scheduler.now >= self.calm_at

    @property
    def calm_ahead(self) -> bool:
        """Whether faults will cease later on."""
        return not self.calm

    @property
    def cancelled(self) -> bool:
        """Whether a person has asked to end the run."""
        return self.ledger.cancelled_at is not None and self.supervisor.run.name == "run"

    def killed(self, process: Process, restart_after: float) -> None:
        """A process was killed, and is started again later."""
        self.killed_at[process.name] = self.scheduler.now
        self.ledger.trouble(self.scheduler.now + restart_after)

    def crashed(self, error: BaseException) -> None:
        """A process ended with an error that is none of the project's."""
        self.crashes.append(error)

    def run_ended(self, run: Run) -> None:
        """A run is over."""
        self.note("supervisor", f"the {run.name} is over: {run.said.ending or run.last_error}")
        run.not_at_target = set(not_at_target(self, run))
        self.ledger.forget_people()

    def repair(self) -> None:
        """Storage that failed for good was replaced."""
        self.disk.heal()

    def stop_producers(self) -> None:
        """Nobody writes to any partition any more."""
        for partition in self.cluster.partitions.values():
            partition.write_rate = 0.0
        self.cluster.alter_broker_config(self.schedule.shape.brokers[0].id, {})  # so that rates are computed again

    def rollback_job(self) -> Job | None:
        """The job that undoes the run: what its partitions had before, from where they are now; None if it did nothing.

        Like the command, it leaves out topics that are gone or were created again, and partitions that somebody else
        moved.
        """
        now: list[PlanEntry] = []
        back: list[PlanEntry] = []
        for tp, origin in self.job.origins.items():
            partition = self.cluster.partitions.get(tp)
            if partition is None or tp.topic in self.ledger.recreated or partition.state.reassigning:
                continue
            now.append(PlanEntry(tp.topic, tp.partition, partition.state.replicas))
            if partition.state.replicas == self.job.targets[tp] and origin != partition.state.replicas:
                back.append(PlanEntry(tp.topic, tp.partition, origin))
        if not back:
            return None
        return replace(self.job, plan=Plan.from_entries(back), before=Plan.from_entries(now))


def _cluster(schedule: Schedule, rng: Random) -> SimulatedCluster:
    cluster = SimulatedCluster(delete_seconds=rng.choice((0.0, 60.0)))
    for broker in schedule.shape.brokers:
        log_dirs = {f"/d{number}": float(total) for number, total in enumerate(broker.log_dirs)}
        cluster.add_broker(broker.id, broker.rack, log_dirs=log_dirs, nic=float(broker.nic))
        if rng.random() < 0.5:
            cluster.set_metadata_lag(broker.id, rng.choice((0.2, 1.0, 2.0, 4.0)))
    for topic in schedule.shape.topics:
        cluster.create_topic(
            topic.name,
            [NewPartition(one.replicas, one.size, one.write_rate) for one in topic.partitions],
            {MIN_ISR: str(topic.min_isr)},
        )
    prior, configs = schedule.prior, cluster.configs
    for name, rates in prior.rates.items():
        configs.alter_broker(int(name), rates, 0.0)
    configs.static.update({int(name): dict(rates) for name, rates in prior.static.items()})
    configs.default.update(prior.default)
    for name, lists in prior.lists.items():
        if cluster.topic_partitions(name):
            configs.alter_topic(name, lists, 0.0)
    return cluster


def _ledger(schedule: Schedule) -> Ledger:
    ledger = Ledger()
    for broker, rates in schedule.prior.rates.items():
        for key, value in rates.items():
            ledger.rates[int(broker), key] = ledger.rates_before[int(broker), key] = value
    for topic, lists in schedule.prior.lists.items():
        for key in REPLICA_LISTS:
            if lists.get(key):
                ledger.entries[topic, key] = {lists[key]}
                ledger.entries_of_others[topic, key] = {lists[key]}
    return ledger
