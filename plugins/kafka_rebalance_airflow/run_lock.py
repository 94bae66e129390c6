"""One process at a time executes the plan of a run, or cleans up after it.

Where artifacts are files, the lock is a file in the run's directory, which the kernel frees when its process ends. In
an object store nothing is locked: there, runs are kept apart by the cluster lock (`cluster_lock`) alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rebalance_lib.clock import Clock
    from rebalance_lib.execution import Run
    from rebalance_lib.execution.clean_up import CleanUpWatch

# A triggerer that stops, or loses its trigger to another one, ends its executor with the request that is under way: a
# broker that hangs is given 30 s for an answer.
LOCK_SECONDS = 60.0
Held = TypeVar("Held")


@contextmanager
def run_lock(run: Run, clock: Clock) -> Iterator[None]:
    """Hold the lock of a run to clean up after it.

    Raises:
        InUseError: Another process executes the plan, and did not end in time; a task that wants it is tried again.
    """
    with _held(run, run.artifacts.locked(make=True, seconds=LOCK_SECONDS, clock=clock)):
        yield


@contextmanager
def execution_lock(run: Run, clock: Clock) -> Iterator[CleanUpWatch]:
    """Hold the lock of a run to execute its plan; gives what tells whether the run is cleaned up meanwhile.

    Raises:
        InUseError: Another process executes the plan, and did not end in time; a task that wants it is tried again.
        CleanedUpError: The run was cleaned up while this waited.
    """
    from rebalance_lib.execution.clean_up import executing

    with _held(run, executing(run.artifacts, clock, LOCK_SECONDS)) as watch:
        yield watch


@contextmanager
def _held(run: Run, lock: AbstractContextManager[Held]) -> Iterator[Held]:
    """Hold a lock, and say in Airflow's words what to do if it is in use."""
    from rebalance_lib.file_lock import InUseError

    with ExitStack() as stack:
        try:
            held = stack.enter_context(lock)
        except InUseError as error:
            raise InUseError(
                f"another process still executes the plan of {run.uri}, or cleans up after it, after "
                f"{LOCK_SECONDS:.0f} s: this task is tried again; kafka_rebalance_cancel ends the run"
            ) from error
        yield held
