"""``kafka-rebalance run``."""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import (
    Command,
    PlanFile,
    command,
    disk_reserve_option,
    output_option,
    plan_option,
    with_options,
)
from rebalance_lib.cli.output import Exit, Output
from rebalance_lib.cli.pace import pace_options
from rebalance_lib.cli.plan_files import read_cluster
from rebalance_lib.cli.requests import user_name
from rebalance_lib.cluster import Cluster, PartitionMetadata
from rebalance_lib.errors import DriftError, InvalidInputError
from rebalance_lib.execution import Job, Report, RunState, Settings, run_plan
from rebalance_lib.execution.commands.plan_state import (
    executed_on,
    live_assignment,
    owned,
    save_rollback,
    saved_rollback,
    set_owner,
)
from rebalance_lib.execution.records.run import leader_sizes
from rebalance_lib.execution.runner import Ending
from rebalance_lib.execution.settings import OnStall, check_seconds
from rebalance_lib.file_lock import PROBE_SECONDS
from rebalance_lib.plan import Plan, current_assignment
from rebalance_lib.plan.pace import Pace
from rebalance_lib.topology import TopicPartition
from rebalance_lib.window import Window

EXAMPLE = r"""
kafka-rebalance run --bootstrap-server kafka:9092 --reassignment-json-file plan.json --throttle 50000000
kafka-rebalance run --bootstrap-server kafka:9092 --reassignment-json-file plan.json --throttle 50000000 \
    --throttle-ceiling 200000000 --moves-in 5 --window "22:00-06:00 Europe/Berlin"
kafka-rebalance run --bootstrap-server kafka:9092 \
    --reassignment-json-file plan.json.state/rollback.json --throttle 50000000   # roll back
"""
DEFAULTS = Settings()
HOW_TO_CHANGE = (
    "While this runs, in another terminal: kafka-rebalance pause {plan}, or adjust {plan} --throttle BYTES. To cancel "
    "it: kafka-rebalance cancel, or Ctrl-C here"
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Seconds(click.ParamType[float]):
    """A number of seconds that a run can use: above 0, finite, and a number at all."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            seconds = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        try:
            check_seconds("it", seconds)
        except InvalidInputError as error:
            self.fail(str(error), param, ctx)
        return seconds


def settings_options(function: Command) -> Command:
    """Add the options that say how a plan is executed, and hand the function `Settings`."""
    options = [
        pace_options,
        click.option("--window", help='When moves may begin, such as "22:00-06:00 Europe/Berlin"; UTC without a zone.'),
        click.option("--throttle-ceiling", type=int, help="Raise the throttle up to this where it is why moves stall."),
        click.option(
            "--on-stall",
            type=click.Choice([str(one) for one in OnStall]),
            default=str(OnStall.RAISE),
            show_default=True,
            help="What to do about moves that stall: raise the throttle, pause, or only report.",
        ),
        click.option(
            "--stall-checks",
            type=click.IntRange(min=1),
            default=3,
            show_default=True,
            help="A move that has not come nearer in so many checks has stalled.",
        ),
        click.option(
            "--give-up-after",
            type=Seconds(),
            default=DEFAULTS.give_up_after,
            show_default=True,
            help="Seconds that a move may stall, or wait for somebody to repair something, before it is set aside.",
        ),
        click.option(
            "--max-run-time",
            type=Seconds(),
            help="Seconds after which no more moves begin, and the run ends with those under way; default no limit.",
        ),
        disk_reserve_option,
        click.option(
            "--ignore-under-min-isr",
            is_flag=True,
            help="Begin moves although partitions somewhere are short of in-sync replicas.",
        ),
        click.option(
            "--leave-moves",
            is_flag=True,
            help="When it ends early, let moves under way go on, without a throttle; a cancel still cancels them.",
        ),
    ]

    @functools.wraps(function)
    def wrapped(*arguments: Any, pace: Pace, **values: Any) -> Any:
        window = values.pop("window")
        settings = Settings(
            pace=pace,
            window=None if window is None else Window.parse(window),
            throttle_ceiling=values.pop("throttle_ceiling"),
            on_stall=OnStall(values.pop("on_stall")),
            stall_checks=values.pop("stall_checks"),
            disk_reserve=values.pop("disk_reserve"),
            pause_under_min_isr=not values.pop("ignore_under_min_isr"),
            cancel_on_failure=not values.pop("leave_moves"),
            give_up_after=values.pop("give_up_after"),
            max_run_time=values.pop("max_run_time"),
        )
        return function(*arguments, settings=settings, **values)

    return with_options(wrapped, options)


@command("run", example=EXAMPLE)
@cluster_options
@plan_option
@settings_options
@click.option("--snapshot", "place", help="The snapshot that the plan was made from; refuse if the cluster drifted.")
@click.option("--approved", metavar="DIGEST", help="Refuse any other plan than that of this digest, sha256:...")
@click.option(
    "--repair", is_flag=True, help="The plan repairs partitions: move them although they are under-replicated."
)
@click.option("--interval", type=Seconds(), default=10.0, show_default=True, help="Seconds between two checks.")
@output_option
def run(
    *,
    connection: Connection,
    output: Output,
    plan_file: PlanFile,
    settings: Settings,
    place: str | None,
    approved: str | None,
    repair: bool,
    interval: float,
) -> None:
    """Execute a plan until it is completed: preflight, throttles, moves as caps allow, clean-up, leaders, the record.

    Nothing is changed before the cluster is found fit for the plan. Run again at any moment, after a failure or a kill,
    it goes on where it was. Ctrl-C, and every failure, cancel what is under way and restore the throttles. A partition
    that cannot be moved is set aside and the rest goes on; which and why is printed in the end. PLAN.state keeps
    rollback.json to roll back, audit.json as the record, and journal/ with every event.

    While it is under way, `kafka-rebalance pause`, `resume`, `adjust` and `cancel` change it from another terminal.
    """
    plan = plan_file.read()
    if approved is not None and approved != plan.digest:
        raise DriftError(f"the plan is {plan.digest}, approved was {approved}: plan and review again")
    with (
        plan_file.state.locked(make=True, seconds=PROBE_SECONDS),
        connection.open() as cluster,
        _signals() as interrupted,
        Display.shown(output, plan_file) as display,
    ):

        def on_report(report: Report) -> None:
            interrupted()
            display.update(report)

        job, saved = _job(cluster, plan, plan_file, place, repair=repair)
        ending = run_plan(
            cluster,
            job,
            settings,
            interval=interval,
            approved_by=user_name(),
            approved_at=datetime.now(UTC).isoformat(timespec="seconds"),
            before_changes=lambda: _save(job, plan_file, saved=saved),
            log=output.remark,
            on_report=on_report,
        )
    if display.cancelled_by is not None:
        output.say(f"The run was cancelled: {display.cancelled_by}")
    output.say(ending.verdict)
    for where, reason in ending.restored.left.items():
        output.remark(
            f"The throttle of {where} was not restored: {reason}. Run throttles --restore {plan_file.state_path} then."
        )
    output.say(f"The record is in {plan_file.state_path / 'audit.json'}; to roll back, run rollback.json there")
    output.result(_document(ending, plan_file, display))
    unfinished = Exit.NOT_FINISHED if ending.restored.left else Exit.DONE
    code = unfinished if ending.completed else Exit.WRONG
    click.get_current_context().exit(code)


def _job(cluster: Cluster, plan: Plan, plan_file: PlanFile, place: str | None, *, repair: bool) -> tuple[Job, bool]:
    """What is to be executed, and whether an earlier try has saved the rollback."""
    if not len(plan):
        raise InvalidInputError("the plan is empty: nothing to do")
    cluster_id, state = cluster.cluster_id(), plan_file.state
    if (elsewhere := executed_on(state, plan)) not in (None, cluster_id):
        raise DriftError(
            f"this plan was executed on cluster {elsewhere}, this is {cluster_id}: check the address, or copy the file "
            "to a name of its own"
        )
    saved = saved_rollback(state) if owned(state, plan, cluster_id) else None
    if saved is not None and not plan.as_dict().keys() <= saved.as_dict().keys():
        saved = None  # an earlier try died before it had saved everything
    if place is not None:
        snapshot = read_cluster(place).snapshot
        before, planned_for = current_assignment(snapshot), snapshot.cluster_id or cluster_id
        sizes = leader_sizes(snapshot)
    else:
        known = cluster.partitions({tp.topic for tp in plan.as_dict()})
        live = {tp: known[tp] for tp in plan.as_dict() if tp in known}
        if saved is None and (missing := sorted(plan.as_dict().keys() - live.keys())):
            raise InvalidInputError(f"{missing[0]} is not on this cluster, nor may be others: plan again")
        before = saved if saved is not None else live_assignment(cluster, live, cluster.reassignments())
        planned_for, sizes = cluster_id, live_sizes(cluster, live)
    return Job(plan, before, planned_for, state, repair, sizes=sizes), saved is not None


def live_sizes(cluster: Cluster, live: Mapping[TopicPartition, PartitionMetadata]) -> dict[TopicPartition, int]:
    """The bytes of each partition, as `leader_sizes` has them, from the brokers that answer now."""
    brokers = {broker for state in live.values() for broker in state.replicas}
    sizes: dict[TopicPartition, int] = {}
    for broker, log_dirs in cluster.describe_log_dirs(brokers & cluster.alive_brokers().keys(), live).items():
        for held in (held for log_dir in log_dirs for held in log_dir.replicas if not held.future):
            tp = held.partition
            if tp in live and (broker == live[tp].leader or tp not in sizes):
                sizes[tp] = held.size
    return sizes


def _save(job: Job, plan_file: PlanFile, *, saved: bool) -> None:
    """Save the rollback beside the plan's file, and whose it is; a try that is refused before leaves nothing there."""
    set_owner(plan_file.state, job.plan, job.cluster_id)
    if not saved:
        own = (entry for tp in job.origins if (entry := job.before.partition(tp)))
        save_rollback(plan_file.state, job.plan, Plan.from_entries(own), {}, again=False)


def _document(ending: Ending, plan_file: PlanFile, display: Display) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for status in ending.comparison.status.by_partition.values():
        counts[str(status)] = counts.get(str(status), 0) + 1
    return {
        "completed": ending.completed,
        "verdict": ending.verdict,
        "set_aside": {str(tp): reason for tp, reason in ending.set_aside.items()},
        "cancelled_by": display.cancelled_by,
        "partitions": counts,
        "throttles": {"left": ending.restored.left},
        "state": str(plan_file.state_path),
    }


@contextmanager
def _signals() -> Iterator[Callable[[], None]]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that the run cleans up; a second one does not cut that short.

    What it yields raises again at a report: Python drops an interrupt that comes while an object is finalized.
    """
    caught = []

    def interrupt(*_: object) -> None:
        caught.append(time.monotonic())
        if len(caught) == 1:
            raise KeyboardInterrupt
        with suppress(OSError):  # nobody may be there any more to read it
            click.echo("cancelling moves and restoring throttles, which takes some seconds", err=True)

    def again() -> None:
        if caught:
            raise KeyboardInterrupt

    earlier = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield again
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


class Display:
    """A bar on a terminal; elsewhere a line at every check that has something new.

    ``cancelled_by`` says who ended the run before it was completed, if somebody has.
    """

    def __init__(self, output: Output, bar: Progress) -> None:
        self._output = output
        self._bar = bar
        self._task = bar.add_task("checking that the cluster is fit for the plan", total=1.0)
        self._last = ""
        self.cancelled_by: str | None = None

    @classmethod
    @contextmanager
    def shown(cls, output: Output, plan_file: PlanFile) -> Iterator[Display]:
        """Show it, and on a terminal how to change the run while it is under way."""
        console = Console(stderr=True)
        if console.is_terminal:
            output.remark(HOW_TO_CHANGE.format(plan=plan_file.path))
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            yield cls(output, bar)

    def update(self, report: Report) -> None:
        """Show where the run is."""
        self._bar.update(self._task, description=report.headline, completed=report.progress.share)
        if report.state is RunState.CANCELLED:
            self.cancelled_by = "; ".join(report.holds)
        text = str(report)
        if self._bar.disable and text != self._last:
            self._output.remark(f"{time.strftime('%H:%M:%S')} {text}")
            self._last = text
