"""Messages for people, which nothing may depend on.

Whoever reads them may be gone: the pipe of a terminal is closed, the disk of a log is full. A run goes on all the same,
and its clean-up above all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Message = TypeVar("Message")
Log = Callable[[str], None]


def ignore(_: object) -> None:
    """Nobody reads it."""


def safely(log: Callable[[Message], object]) -> Callable[[Message], None]:
    """The same, but what goes wrong in it does not get out; an interrupt does."""

    def logged(message: Message) -> None:
        with suppress(Exception):
            log(message)

    return logged
