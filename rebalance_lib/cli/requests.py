"""``kafka-rebalance pause``, ``resume`` and ``adjust``: what people ask of a run while it is under way.

Each writes a request, with the user's name, to the run's artifacts (`rebalance_lib.execution.requests`); whoever
executes the plan reads it at its next check. A request to a run that is not under way would wait for the next one and
surprise it, so it is refused.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.options import Command, PlanFile, command, output_option, with_options
from rebalance_lib.cli.output import Output
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution import Kind, make_request
from rebalance_lib.execution.records.execution import read_execution
from rebalance_lib.execution.requests import Request, check_request
from rebalance_lib.file_lock import InUseError
from rebalance_lib.plan.pace import Order

PAUSE_EXAMPLE = r"""
kafka-rebalance pause plan.json
kafka-rebalance pause s3://my-bucket/kafka-rebalance/runs/RUN   # a run of the workflow
"""
RESUME_EXAMPLE = r"""
kafka-rebalance resume plan.json
"""
ADJUST_EXAMPLE = r"""
kafka-rebalance adjust plan.json --throttle 90000000
kafka-rebalance adjust plan.json --moves-in 5 --moves-out 5 --window "22:00-06:00 Europe/Berlin"
kafka-rebalance adjust plan.json --exclude-topics "logs-*" --exclude-topics audit --max-run-time 14400
"""
NO_RUN = (
    "no run is under way in {uri}: a request would be taken by the next one. Give the options you want to "
    "kafka-rebalance run when you start it; between two steps of the workflow, try again in some seconds"
)
NOT_BEGUN = (
    "the run in {uri} has not begun yet, or is about to end, so a request might be taken by the next one: try again in "
    "some seconds"
)
KINDS = {"replica_alter_log_dirs_throttle": Kind.LOG_DIR_THROTTLE}


def user_name() -> str:
    """Who runs this command, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return "unknown"


def find_run(place: str) -> Artifacts:
    """The artifacts of a run that a person named: a plan's file, its .state directory, or the URI of the artifacts."""
    if "://" in place:
        return Artifacts(place)
    path = Path(place)
    if path.is_dir():
        return Artifacts.at(path)
    if path.is_file():
        return PlanFile(path).state
    raise InvalidInputError(
        f"there is no {place}: give the plan's file, its .state directory, or the URI of a run's artifacts"
    )


def is_locked(artifacts: Artifacts) -> bool:
    """Whether a process has the run's lock; False where artifacts are not files, which have none."""
    try:
        with artifacts.locked():
            return False
    except InUseError:
        return True


def check_under_way(artifacts: Artifacts) -> None:
    """Refuse a run that is not under way.

    Where artifacts are files, whoever executes the plan has the lock. Other commands have it for some seconds, too, so
    the plan's execution must also be noted as begun and not ended.
    """
    if artifacts.is_local and not is_locked(artifacts):
        raise InvalidInputError(NO_RUN.format(uri=artifacts.uri))
    execution = read_execution(artifacts)
    if execution is None or execution.ended:
        raise InvalidInputError((NOT_BEGUN if artifacts.is_local else NO_RUN).format(uri=artifacts.uri))


def send(output: Output, place: str, wanted: Mapping[Kind, Any], effect: str) -> None:
    """Make these requests of the run, all of them or none, and print what happens when."""
    for kind, value in wanted.items():
        check_request(kind, value)
    artifacts = find_run(place)
    check_under_way(artifacts)
    requests = [make_request(artifacts, kind, value, by=user_name()) for kind, value in wanted.items()]
    for request in requests:
        output.say(str(request))
    output.say(f"At its next check, the run in {artifacts.uri} {effect}")
    output.result({"run": artifacts.uri, "requests": [_document(request) for request in requests]})


def _document(request: Request) -> dict[str, Any]:
    return {"kind": str(request.kind), "value": request.value, "by": request.by, "at": request.at}


place_argument = click.argument("place")


@command("pause", example=PAUSE_EXAMPLE)
@place_argument
@output_option
def pause(*, output: Output, place: str) -> None:
    """Pause a run: it begins no more moves until it is resumed.

    PLACE is the plan's file, its .state directory, or the URI of a run's artifacts. The run pauses at its next check.
    Moves under way go on, and keep their throttle; `kafka-rebalance cancel` ends those too. A pause survives a restart
    of the run, and the time of it does not count for --give-up-after.
    """
    send(output, place, {Kind.PAUSE: None}, "pauses; moves under way go on")


@command("resume", example=RESUME_EXAMPLE)
@place_argument
@output_option
def resume(*, output: Output, place: str) -> None:
    """Resume a run that was paused: it begins moves again.

    PLACE is the plan's file, its .state directory, or the URI of a run's artifacts. The run resumes at its next check.
    """
    send(output, place, {Kind.RESUME: None}, "begins moves again")


def adjust_options(function: Command) -> Command:
    """Add the options of what can be changed while a run is under way."""
    rate, cap = click.IntRange(min=1), click.IntRange(min=0)
    options = [
        click.option("--throttle", type=rate, help="Bytes per second between brokers, on each of them."),
        click.option(
            "--replica-alter-log-dirs-throttle",
            type=rate,
            help="Bytes per second between the log dirs of a broker.",
        ),
        click.option("--moves-in", type=cap, help="Replicas coming to a broker at the same time; 0 for no limit."),
        click.option("--moves-out", type=cap, help="Replicas copied from a broker at the same time; 0 for no limit."),
        click.option("--moves-in-cluster", type=cap, help="Replicas under way in the cluster; 0 for no limit."),
        click.option("--bytes-in-flight", type=cap, help="Bytes of all moves under way; 0 for no limit."),
        click.option("--window", help='When moves may begin, such as "22:00-06:00 Europe/Berlin"; "" for always.'),
        click.option(
            "--order",
            type=click.Choice([str(order) for order in Order]),
            help="Which moves begin first.",
        ),
        click.option(
            "--exclude-topics",
            multiple=True,
            callback=_topics,
            help="Begin no more moves of these topics, names or patterns such as 'logs-*'. With commas, or repeated.",
        ),
        click.option(
            "--max-run-time",
            type=float,
            help="Seconds since the run began after which it begins no more moves; 0 for no limit.",
        ),
    ]
    return with_options(function, options)


def _topics(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[str] | None:
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise click.BadParameter("a name is empty: leave the option out, or name some", param=param)
    return names or None


@command("adjust", example=ADJUST_EXAMPLE)
@place_argument
@adjust_options
@output_option
def adjust(*, output: Output, place: str, **given: Any) -> None:
    """Change the throttle, the caps, the window, ... of a run while it is under way.

    PLACE is the plan's file, its .state directory, or the URI of a run's artifacts. The run takes the change at its
    next check, and keeps it if it is restarted; the next run of the plan begins with its own options. Moves under way
    are never cancelled by it: a lower cap or a window that is closed holds back only what has not begun.
    """
    wanted = {KINDS.get(name) or Kind(name): value for name, value in given.items() if value is not None}
    if not wanted:
        raise click.UsageError("say what is to change, such as --throttle 90000000; --help has all options")
    send(output, place, wanted, "takes " + ("this change" if len(wanted) == 1 else "these changes"))
