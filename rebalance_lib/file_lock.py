"""A lock on a directory, held by one process at a time; the kernel frees it when its holder ends, however that happens.

So nothing is left to be removed after a kill. Only files can be locked so: in an object store, runs are kept apart by
the cluster locks of the workflow.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rebalance_lib.clock import Clock
from rebalance_lib.errors import RebalanceError

LOCK = "lock"
RETRY_SECONDS = 0.2
PROBE_SECONDS = 1.0  # pause, resume and adjust hold the lock for a moment to see whether a run does


class InUseError(RebalanceError):
    """Another process has the lock."""


@contextmanager
def file_lock(directory: Path, *, seconds: float, on_wait: Callable[[], None], clock: Clock) -> Iterator[None]:
    """Hold the lock of this directory, which is made if it is not there.

    Args:
        directory: The directory.
        seconds: How long to wait for whoever has it.
        on_wait: Called once if somebody has it.
        clock: What to wait with.

    Raises:
        InUseError: Somebody else has it, and did not release it in time.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise RebalanceError(f"{directory / LOCK} cannot be written: {error.strerror}") from error
    try:
        if not _acquired(file):
            on_wait()
            deadline = clock.monotonic() + seconds
            while not _acquired(file):
                if clock.monotonic() >= deadline:
                    raise InUseError(in_use(str(directory), seconds))
                clock.sleep(RETRY_SECONDS)
        yield
    finally:
        os.close(file)


def in_use(where: str, seconds: float) -> str:
    """What to say of a lock that was not released in time."""
    waited = f" for {seconds:.0f} s" if seconds else ""
    return (
        f"{where} is in use{waited}: another command executes this plan or cleans up after it; wait until it has "
        "ended, or end it with kafka-rebalance cancel"
    )


def _acquired(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise RebalanceError(
            f"this file system cannot lock files ({error.strerror}): keep artifacts on one that can, or in a store"
        ) from error
    return True
