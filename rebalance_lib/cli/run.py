"""``kafka-rebalance run``."""

from __future__ import annotations

import functools
import getpass
import signal
import time
from collections.abc import Callable, Iterator
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
from rebalance_lib.cli.planning import read_cluster
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import DriftError, InvalidInputError
from rebalance_lib.execution import Job, Report, Settings, run_plan
from rebalance_lib.execution.commands.plan_state import (
    claim,
    executed_on,
    live_assignment,
    owned,
    save_rollback,
    saved_rollback,
)
from rebalance_lib.execution.runner import Ending
from rebalance_lib.execution.settings import OnStall
from rebalance_lib.plan import Plan, current_assignment
from rebalance_lib.plan.pace import Pace
from rebalance_lib.window import Window

EXAMPLE = r"""
kafka-rebalance run --bootstrap-server kafka:9092 --reassignment-json-file plan.json --throttle 50000000
kafka-rebalance run --bootstrap-server kafka:9092 --reassignment-json-file plan.json --throttle 50000000 \
    --throttle-ceiling 200000000 --moves-in 5 --window "22:00-06:00 Europe/Berlin"
kafka-rebalance run --bootstrap-server kafka:9092 \
    --reassignment-json-file plan.json.state/rollback.json --throttle 50000000   # the way back
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def settings_options(function: Command) -> Command:
    """Add the options that say how a plan is carried out, and hand the function `Settings`."""
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
        disk_reserve_option,
        click.option(
            "--ignore-under-min-isr",
            is_flag=True,
            help="Begin moves although partitions somewhere are short of in-sync replicas.",
        ),
        click.option(
            "--leave-moves",
            is_flag=True,
            help="When it ends early, let moves under way go on, without a throttle, rather than cancel them.",
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
        )
        return function(*arguments, settings=settings, **values)

    return with_options(wrapped, options)


@command("run", example=EXAMPLE)
@cluster_options
@plan_option
@settings_options
@click.option("--snapshot", "place", help="The snapshot that the plan was made from; refuse if the cluster drifted.")
@click.option("--approved", metavar="DIGEST", help="Refuse any other plan than that of this digest, sha256:...")
@click.option("--repair", is_flag=True, help="The plan mends partitions: move them although they are not whole.")
@click.option("--interval", type=float, default=10.0, show_default=True, help="Seconds between two checks.")
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
    """Carry a plan out to its end: check, throttle, move in waves, follow, put throttles back, elect leaders.

    Nothing is changed before the cluster is found fit for the plan. Run again at any moment, after a failure or a kill,
    it goes on where it was. Ctrl-C, and every failure, cancel what is under way and put the throttles back. What was
    before is kept in PLAN.state: rollback.json to go back, audit.json as the record, journal/ with every event.

    While it runs, `kafka-rebalance throttles --set` changes the throttle.
    """
    plan = plan_file.read()
    if approved is not None and approved != plan.digest:
        raise DriftError(f"the plan is {plan.digest}, approved was {approved}: plan and review again")
    with (
        plan_file.state.locked(make=True),
        connection.open() as cluster,
        _signals(),
        _progress(output) as (log, on_report),
    ):
        job, noted = _job(cluster, plan, plan_file, place, repair=repair)
        ending = run_plan(
            cluster,
            job,
            settings,
            interval=interval,
            approved_by=_user(),
            approved_at=datetime.now(UTC).isoformat(timespec="seconds"),
            before_changes=lambda: _note(job, plan_file, noted=noted),
            log=log,
            on_report=on_report,
        )
    output.say(ending.verdict)
    for where, reason in ending.restored.left.items():
        output.remark(f"Throttle left on {where}: {reason}. Run throttles --restore {plan_file.state_path} then.")
    output.say(f"The record is in {plan_file.state_path / 'audit.json'}, the way back in rollback.json beside it")
    output.result(_document(ending, plan_file))
    unfinished = Exit.NOT_FINISHED if ending.restored.left else Exit.DONE
    code = unfinished if ending.reached else Exit.WRONG
    click.get_current_context().exit(code)


def _job(cluster: Cluster, plan: Plan, plan_file: PlanFile, place: str | None, *, repair: bool) -> tuple[Job, bool]:
    """What is to be carried out, and whether an earlier try has noted the way back."""
    if not len(plan):
        raise InvalidInputError("the plan is empty: nothing to do")
    cluster_id, state = cluster.cluster_id(), plan_file.state
    if (elsewhere := executed_on(state, plan)) not in (None, cluster_id):
        raise DriftError(
            f"this plan was carried out on cluster {elsewhere}, this is {cluster_id}: check the address, or copy "
            "the file to a name of its own"
        )
    noted = saved_rollback(state) if owned(state, plan, cluster_id) else None
    if noted is not None and not plan.as_dict().keys() <= noted.as_dict().keys():
        noted = None  # an earlier try died before it had noted everything
    if place is not None:
        snapshot = read_cluster(place).snapshot
        before, planned_for = current_assignment(snapshot), snapshot.cluster_id or cluster_id
    elif noted is not None:
        before, planned_for = noted, cluster_id
    else:
        known = cluster.partitions({tp.topic for tp in plan.as_dict()})
        if missing := sorted(set(plan.as_dict()) - set(known)):
            raise InvalidInputError(f"{missing[0]} is not on this cluster, nor may be others: plan again")
        before = live_assignment(cluster, {tp: known[tp] for tp in plan.as_dict()}, cluster.reassignments())
        planned_for = cluster_id
    return Job(plan, before, planned_for, state, repair), noted is not None


def _note(job: Job, plan_file: PlanFile, *, noted: bool) -> None:
    """Note beside the plan's file whose it is, and the way back; a try that is refused before leaves nothing there."""
    claim(plan_file.state, job.plan, job.cluster_id)
    if not noted:
        own = (entry for tp in job.origins if (entry := job.before.partition(tp)))
        save_rollback(plan_file.state, job.plan, Plan.from_entries(own), {}, again=False)


def _document(ending: Ending, plan_file: PlanFile) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for status in ending.comparison.status.by_partition.values():
        counts[str(status)] = counts.get(str(status), 0) + 1
    return {
        "reached": ending.reached,
        "verdict": ending.verdict,
        "partitions": counts,
        "throttles": {"left": ending.restored.left},
        "state": str(plan_file.state_path),
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return "unknown"


@contextmanager
def _signals() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C is taken, so that the way out is taken; a second one does not cut it short."""
    caught = []

    def interrupt(*_: object) -> None:
        caught.append(time.monotonic())
        if len(caught) == 1:
            raise KeyboardInterrupt
        with suppress(OSError):  # nobody may be there any more to read it
            click.echo("cancelling moves and putting throttles back, which takes some seconds", err=True)

    earlier = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


@contextmanager
def _progress(output: Output) -> Iterator[tuple[Callable[[str], None], Callable[[Report], None]]]:
    """A bar on a terminal; elsewhere a line at every check that says something new."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("checking that the cluster is fit for the plan", total=1.0)
        last = [""]

        def on_report(report: Report) -> None:
            bar.update(task, description=str(report.progress), completed=report.progress.share)
            text = str(report)
            if not console.is_terminal and text != last[0]:
                output.remark(f"{time.strftime('%H:%M:%S')} {text}")
                last[0] = text

        yield output.remark, on_report
