"""The status of a run, in one word for programs and one phrase for people.

Artifacts tell what was done last, and Airflow whether the run goes on. A run that is cleared after its end leaves a
record that is older than its progress: then the progress counts. If it waits for its review again, neither does.

Example: a plan without an answer to its review is ``waiting for review`` while the run goes on, ``failed`` after it
failed, and ``planned`` where Airflow no longer knows the run.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rebalance_lib.artifacts import PLAN, PROGRESS, REVIEW, Artifacts
from rebalance_lib.errors import InvalidInputError

AUDIT, FLEET = "audit.json", "fleet.json"
REJECT = "Reject"
GOING_ON = ("queued", "running")
UNDER_WAY = {"moving": "moving", "held": "held back at", "paused": "paused at", "ending": "ending at"}


@dataclass(frozen=True, slots=True)
class RunStatus:
    """``state`` is one of a few words; ``over`` says that nothing will change any more by itself."""

    state: str
    label: str
    over: bool = False


@dataclass(frozen=True, slots=True)
class Documents:
    """What a run has left so far; None for what is not there."""

    summary: dict[str, Any] | None
    review: dict[str, Any] | None
    progress: dict[str, Any] | None
    audit: dict[str, Any] | None
    fleet: list[dict[str, Any]] | None = None  # of a run about many clusters, which has no plan of its own

    @classmethod
    def read(cls, run: Artifacts) -> Documents:
        """Read all of them."""
        return cls(*(_read(*where) for where in _places(run)))


def _places(run: Artifacts) -> list[tuple[Artifacts, str]]:
    return [(run / PLAN, "summary.json"), (run, REVIEW), (run, PROGRESS), (run, AUDIT), (run, FLEET)]


def _read(directory: Artifacts, name: str) -> Any:
    if directory.exists(name):
        with suppress(InvalidInputError):  # a plan that is published anew is gone for a moment
            return directory.read_json(name)
    return None


def run_status(found: Documents, run_state: str | None) -> RunStatus:
    """The status of a run.

    Args:
        found: What it has left so far.
        run_state: The state of its DAG run; None if Airflow does not know it.
    """
    goes_on = run_state in GOING_ON
    if found.review and REJECT in (found.review.get("chosen_options") or ()):
        return RunStatus("rejected", "rejected", over=not goes_on)
    if run_state == "failed":
        return RunStatus("failed", "failed", over=True)
    if found.fleet is not None:
        planned = sum(one["planned"] for one in found.fleet)
        return RunStatus("planned", f"{planned} of {len(found.fleet)} clusters planned", over=not goes_on)
    asks_anew = goes_on and not found.review and not found.progress
    if found.audit and not asks_anew and _is_last(found.audit, found.progress):
        completed = run_state == "success" or (found.progress or {}).get("status") == "completed"
        word = "done" if completed else "ended"  # finalize fails the run where the plan was not completed
        return RunStatus(word, word, over=not goes_on)
    return _moving(found.progress, goes_on=goes_on) if found.progress else _begins(found, goes_on=goes_on)


def share(progress: dict[str, Any]) -> float:
    """The part of the work that is done, from 0 to 1: by bytes, by partitions if there are no bytes."""
    if progress.get("bytes_to_copy"):
        return float(progress["bytes_copied"]) / float(progress["bytes_to_copy"])
    done, left = progress.get("done", 0), progress.get("moving", 0) + progress.get("pending", 0)
    return float(done) / (done + left) if done + left else float(progress["status"] == "completed")


def _is_last(audit: dict[str, Any], progress: dict[str, Any] | None) -> bool:
    return progress is None or str(audit["written_at"]) >= str(progress["at"])


def _begins(found: Documents, *, goes_on: bool) -> RunStatus:
    if found.summary is None:
        return RunStatus("planning", "planning") if goes_on else RunStatus("unplanned", "no plan", over=True)
    if not found.summary["partitions_changed"]:
        return RunStatus("done", "nothing to move", over=not goes_on)
    if found.review:
        return RunStatus("approved", "approved", over=not goes_on)
    return RunStatus("review", "waiting for review") if goes_on else RunStatus("planned", "planned", over=True)


def _moving(progress: dict[str, Any], *, goes_on: bool) -> RunStatus:
    percent = f"{int(100 * share(progress))} %"  # 100 % is for what is all there
    state = progress["status"]
    if state == "completed":
        return RunStatus("completed", "moved, cleaning up" if goes_on else "moved", over=not goes_on)
    if state == "incomplete":
        return RunStatus("incomplete", f"incomplete at {percent}", over=not goes_on)
    if state not in UNDER_WAY or not goes_on:
        return RunStatus("stopped", f"stopped at {percent}", over=not goes_on)
    return RunStatus("moving", f"{UNDER_WAY[state]} {percent}")
