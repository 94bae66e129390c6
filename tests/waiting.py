"""Waiting for what will be so in a moment, on a machine of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

SECONDS = 120.0
TRUE = bool  # what is expected where nothing else is said

Found = TypeVar("Found")


def wait_for(
    what: Callable[[], Found],
    expected: Any = TRUE,
    *,
    seconds: float = SECONDS,
    pause: float = 0.1,
    passing: type[Exception] | tuple[type[Exception], ...] = (),
    tell: Callable[[], object] | None = None,
) -> Found:
    """Ask until the answer is the expected one, and return it; fail with the last answer if it never is.

    Args:
        what: Gives an answer.
        expected: A value that the answer must equal, or a function that says whether it is right; without it, the
            answer must be true.
        seconds: How long to ask.
        pause: Seconds between two questions.
        passing: Errors that are no answer yet, such as those of a broker that has just gone.
        tell: Gives more to say if it never is.
    """
    deadline = time.monotonic() + seconds
    while True:
        found: Any = None
        try:
            found = what()
        except passing as error:
            found, right = error, False
        else:
            right = bool(expected(found)) if callable(expected) else found == expected
        if right:
            return found
        if time.monotonic() > deadline:
            wanted = "" if callable(expected) else f", not {expected!r}"
            more = f"\n{tell()}" if tell is not None else ""
            raise AssertionError(f"after {seconds:.0f} s it is still {found!r}{wanted}{more}")
        time.sleep(pause)
