"""How long runs are kept: the directories of old ones are removed, as far as nothing in them is still needed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rebalance_lib.artifacts import RUN, Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.execution.requests import REQUESTS
from rebalance_lib.execution.throttles.saved import stale_throttles


def drop_old_runs(root: Artifacts, older_than: datetime) -> list[str]:
    """Remove the runs in ``root`` in which nothing was written since ``older_than``; returns their URIs.

    A run is a directory ``DAG/RUN`` with ``run.json`` in it, or below it, if it is about many clusters; one that was
    cancelled before it began has just the request. The history and whatever else is there stays. So does a run with
    stale throttles, until they are restored: its files alone know what was set before.

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
            if _is_run(found := root / dag / run) or any(map(_is_run, _below(found))):
                yield found


def _is_run(directory: Artifacts) -> bool:
    return directory.exists(RUN) or directory.exists(REQUESTS)


def _below(directory: Artifacts) -> Iterator[Artifacts]:
    return (directory / name for name in directory.directories())


def _needed(run: Artifacts) -> bool:
    """Whether throttles are still to be restored; what cannot be read may say so."""
    try:
        return any(stale_throttles(one) for one in (run, *_below(run)))
    except (RebalanceError, ValueError, LookupError):
        return True


def _drop(run: Artifacts) -> None:
    """What a run is known by goes last: what is half removed goes the next time."""
    run.remove_files(name for name in run.files() if name != RUN)
    for one in _below(run):
        if _is_run(one):
            _drop(one)
        else:
            one.remove()
    run.remove()
