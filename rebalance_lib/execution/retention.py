"""How long runs are kept: the directories of old ones are removed, as far as nothing in them is still needed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rebalance_lib.artifacts import SNAPSHOT, Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.execution.saved_throttles import left_behind


def drop_old_runs(root: Artifacts, older_than: datetime) -> list[str]:
    """Remove the runs in ``root`` in which nothing was written since ``older_than``; returns their URIs.

    A run is a directory ``DAG/RUN`` with a ``snapshot`` in it: the history and whatever else is there stays. So does a
    run that left throttles on a cluster, until they are put back: its files alone know what stood before.

    Args:
        root: Where all runs are kept.
        older_than: The moment, with a time zone.
    """
    if older_than.tzinfo is None:
        raise InvalidInputError(f"runs older than {older_than.isoformat()}: add a time zone, such as +00:00")
    dropped = []
    for run in _runs(root):
        changed = run.last_change()
        if changed is not None and changed < older_than and not _needed(run):
            _drop(run)
            dropped.append(run.uri)
    return dropped


def _runs(root: Artifacts) -> Iterator[Artifacts]:
    for dag in root.directories():
        for run in (root / dag).directories():
            if SNAPSHOT in (root / dag / run).directories():
                yield root / dag / run


def _needed(run: Artifacts) -> bool:
    """Whether throttles are still to be put back; what cannot be read may say so."""
    try:
        return bool(left_behind(run))
    except (RebalanceError, ValueError, LookupError):
        return True


def _drop(run: Artifacts) -> None:
    """The snapshot goes last: what is half removed is still known as a run, and goes the next time."""
    for name in run.directories():
        if name != SNAPSHOT:
            (run / name).remove()
    run.remove_files(run.files())
    run.remove()
