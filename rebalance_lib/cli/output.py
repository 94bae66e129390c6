"""What the commands print: for people by default, or one JSON object for programs.

With ``--output json``, standard output has exactly one JSON object, whatever happens, and everything else goes to
standard error. Without it, results go to standard output and remarks to standard error, so that a result can be piped
either way. Colour appears on a terminal only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.topology.naming import printable

WIDTH_OF_A_FILE = 160  # columns for output that nobody looks at in a window


class Exit(IntEnum):
    """Exit codes, the same for all commands."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    NOT_FINISHED = 3
    WRONG = 4


EXIT_CODES = """Exit codes:
  0  done, or started as asked
  1  error; the message says what is wrong and what to do
  2  usage: an option is missing or not acceptable
  3  not finished yet: run verify again
  4  a replica set is not what the plan says"""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's words go."""

    as_json: bool

    def say(self, text: str) -> None:
        """A result for people; programs get theirs from `result`."""
        if not self.as_json:
            click.echo(text)

    def remark(self, text: str) -> None:
        """Something to know that is no result."""
        click.echo(text, err=True)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
        """A table for people."""
        self.say(title)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
        self.show(table)

    def show(self, renderable: Any) -> None:
        """Anything that rich can draw, for people."""
        if not self.as_json:
            console = Console()
            if not console.is_terminal:
                console = Console(width=WIDTH_OF_A_FILE)
            console.print(renderable)

    def result(self, value: Mapping[str, Any]) -> None:
        """The one object for programs."""
        if self.as_json:
            click.echo(json.dumps(value, indent=2))


def plan_document(plan: Plan) -> dict[str, Any]:
    """A plan as Kafka's reassignment JSON, for an object that holds more."""
    return dict(json.loads(format_plan(plan)))


def plan_line(plan: Plan) -> str:
    """A plan as Kafka's reassignment JSON in one line, as Kafka's tool prints it."""
    return format_plan(plan).replace("\n", "")


def brokers_text(brokers: Iterable[int]) -> str:
    """Broker ids as Kafka's tools print them."""
    return ",".join(map(str, brokers))


STYLES = {"done": "green", "moving": "yellow", "pending": "red", "drifted": "red", "missing": "red"}


def styled(status: str) -> Text:
    """A status in the colour that says how it is."""
    return Text(status, STYLES.get(status, "red"))
