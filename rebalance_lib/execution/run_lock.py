"""One process at a time carries a plan out, or cleans up after it: a lock beside what the plan keeps.

``run`` holds it for its life; ``execute``, ``verify``, ``cancel`` and ``throttles --restore`` hold it while they write.
The kernel frees it when its holder ends, however that happens, so that nothing is left to be removed after a kill.

Only files can be locked so: in an object store, runs are kept apart by the claims of the workflow.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import RebalanceError

LOCK = "lock"
ASK_AGAIN_SECONDS = 0.2


class InUseError(RebalanceError):
    """Another process carries this plan out, or cleans up after it."""


@contextmanager
def locked(
    artifacts: Artifacts, *, make: bool = False, seconds: float = 0.0, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock of this directory.

    Args:
        artifacts: The directory.
        make: Make it if it is not there; else there is nothing to hold then.
        seconds: How long to wait for whoever has it.
        on_wait: Called once if somebody has it.

    Raises:
        InUseError: Somebody else has it, and did not let it go in time.
    """
    if not artifacts.is_local or not (make or artifacts.path.is_dir()):
        yield
        return
    directory = artifacts.path
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise RebalanceError(f"{artifacts.uri}/{LOCK} cannot be written: {error.strerror}") from error
    try:
        if not _taken(file):
            on_wait()
            _wait(file, artifacts, seconds)
        yield
    finally:
        os.close(file)


def _wait(file: int, artifacts: Artifacts, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(ASK_AGAIN_SECONDS)
        if _taken(file):
            return
    waited = f" for {seconds:.0f} s" if seconds else ""
    raise InUseError(
        f"{artifacts.uri} is in use{waited}: another command carries this plan out or cleans up after it; wait "
        "until it has ended, or end it with kafka-rebalance cancel"
    )


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
