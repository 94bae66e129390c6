"""The options that commands have in common, with Kafka's names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.output import EXIT_CODES, Output
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import Plan, parse_plan

AS_JSON = "rebalance_lib.cli.as_json"
Command = Callable[..., Any]
FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A reassignment JSON file, and the directory beside it that keeps what an execution must remember."""

    path: Path

    @property
    def state_path(self) -> Path:
        """``plan.json.state`` for ``plan.json``."""
        return self.path.with_name(f"{self.path.name}.state")

    @property
    def state(self) -> Artifacts:
        """What is kept there."""
        return Artifacts.at(self.state_path)

    def read(self) -> Plan:
        """The plan."""
        return parse_plan(read_text(self.path))


def read_text(path: Path) -> str:
    """A file that a person named."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInputError(f"{path} cannot be read: {reason}") from error


def write_text(path: Path, text: str) -> None:
    """A file that a person named."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror}") from error


def command(name: str, *, example: str) -> Callable[[Command], click.Command]:
    """A subcommand whose help ends with an example and the exit codes."""
    return click.command(name, epilog=epilog(example))


def epilog(example: str) -> str:
    """An example and the exit codes, with their lines as they are: that is what the backspace tells click."""
    lines = "\n".join(f"  {line}" for line in example.strip().splitlines())
    return f"\b\nExample:\n{lines}\n\n\b\n{EXIT_CODES}"


def with_options(function: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add many options, which the help shows in this order."""
    return functools.reduce(lambda wrapping, option: option(wrapping), reversed(options), function)


def output_option(function: Command) -> Command:
    """Add ``--output``, and hand the function an `Output`."""

    @click.option(
        "--output",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        help="For people, or one JSON object for programs.",
    )
    @functools.wraps(function)
    def wrapped(*arguments: Any, output_format: str, **options: Any) -> Any:
        as_json = output_format == "json"
        click.get_current_context().meta[AS_JSON] = as_json
        return function(*arguments, output=Output(as_json), **options)

    return wrapped


def plan_option(function: Command) -> Command:
    """Add ``--reassignment-json-file``, and hand the function a `PlanFile`."""

    @click.option(
        "--reassignment-json-file", type=FILE, required=True, help="The plan: Kafka's reassignment JSON, version 1."
    )
    @functools.wraps(function)
    def wrapped(*arguments: Any, reassignment_json_file: Path, **options: Any) -> Any:
        return function(*arguments, plan_file=PlanFile(reassignment_json_file), **options)

    return wrapped


timeout_option = click.option(
    "--timeout",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    help="Milliseconds to wait until the log dir moves have begun.",
)
preserve_option = click.option(
    "--preserve-throttles", is_flag=True, help="Do not touch throttles of brokers or topics."
)
disk_reserve_option = click.option(
    "--disk-reserve",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.05,
    show_default=True,
    help="Part of each log dir that stays free.",
)
wait_option = click.option("--wait", is_flag=True, help="Wait until nothing of the plan moves any more.")


def broker_ids(text: str, option: str) -> list[int]:
    """``0,1,2`` as numbers."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a list of broker ids such as 0,1,2", param_hint=option) from error
