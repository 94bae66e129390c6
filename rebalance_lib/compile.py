"""Compile all loops ahead of their first use, in one process at a time: ``python -m rebalance_lib.compile``.

``kafka-rebalance compile`` is the same. An install runs it, so that no plan waits for it. Where none did, a worker of
Spark calls `ensure_compiled` before its first task: it says so on its log, and other workers that start on the same
machine wait for what it compiles instead of compiling the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rebalance_lib.assignors import warm_up as assignors
from rebalance_lib.clock import Clock
from rebalance_lib.errors import RebalanceError
from rebalance_lib.file_lock import file_lock
from rebalance_lib.planner import warm_up as planner
from rebalance_lib.planner.compiled.cache import cache_directory
from rebalance_lib.planner.compiling import are_all_compiled

ALL = 108  # loops that a warm-up compiles
SECONDS = 60  # of processor time: 55 to 62 s were measured, see docs/scaling.md
WAIT_SECONDS = 900.0
PROGRESS_SECONDS = 5.0

Log = Callable[[str], None]


def log_to_stderr(line: str) -> None:
    """A line on standard error, at once: the log of a worker, or a terminal."""
    print(f"kafka-rebalance: {line}", file=sys.stderr, flush=True)


def ensure_compiled(log: Log = log_to_stderr) -> bool:
    """Compile what is not compiled yet, or wait for whoever does; returns whether anything was compiled here.

    It costs next to nothing where all is compiled. Nothing fails for it: a loop that is not kept is compiled when it is
    called.

    Args:
        log: Where to say what takes the time.
    """
    if are_all_compiled():
        return False
    try:
        with file_lock(
            cache_directory(),
            seconds=WAIT_SECONDS,
            on_wait=lambda: log("another process compiles the planner's loops: waiting for it"),
            clock=Clock(),
        ):
            if are_all_compiled():
                return False
            compile_all(log)
    except RebalanceError as error:
        log(f"the planner's loops could not be compiled ahead: {error}")
        return False
    return True


def compile_all(log: Log = log_to_stderr) -> None:
    """Compile all loops; what is compiled already is only loaded."""
    log(f"compiling the planner's loops, once for this installation: about {SECONDS} s on an idle processor")
    begun = said = time.monotonic()

    def progress(count: int) -> None:
        nonlocal said
        if time.monotonic() - said >= PROGRESS_SECONDS:
            said = time.monotonic()
            log(f"{count} of {ALL} loops compiled, {said - begun:.0f} s")

    planner.main(progress)
    assignors.main()
    log(f"all loops are compiled, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    ensure_compiled()
