"""Words for people, which nothing may depend on.

Whoever listens may be gone: the pipe of a terminal is closed, the disk of a log is full. A run goes on all the same,
and its way out above all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Word = TypeVar("Word")
Tell = Callable[[str], None]


def safely(tell: Callable[[Word], object]) -> Callable[[Word], None]:
    """The same, but what goes wrong in telling does not get out; an interrupt does."""

    def told(word: Word) -> None:
        with suppress(Exception):
            tell(word)

    return told
