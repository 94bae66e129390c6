"""The record of a run: who approved what and when, every move with its begin, end and bytes, every throttle.

It is put together from the plan, the review and the journal, at any time and as often as one likes.

Example: ``{"digest": "sha256:...", "approved_by": "alice", "moves": [{"partition": "foo-0", "from": [1, 2], "to": [3,
2], "began": "2026-11-16T20:15:30", "ended": "2026-11-16T20:16:02", "bytes": 1048576}], "throttles": [...]}``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rebalance_lib.execution.job import Job
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import read_journal
from rebalance_lib.execution.settings import Settings

AUDIT = "audit.json"
THROTTLES = (events.THROTTLE_SET, events.THROTTLE_CHANGED, events.THROTTLE_RESTORED)
MOVES = (events.BEGAN, events.REQUESTED, events.ENDED, events.CANCELLED)


def write_audit(
    job: Job,
    settings: Settings,
    *,
    verdict: str,
    approved_by: str,
    approved_at: str,
    written_at: str,
    set_aside: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write the record beside the other artifacts of the run, and return it."""
    journal = read_journal(job.artifacts)
    record = {
        "version": 1,
        "cluster_id": job.cluster_id,
        "digest": job.plan.digest,
        "approved_by": approved_by,
        "approved_at": approved_at,
        "settings": settings.as_dict(),
        "verdict": verdict,
        "written_at": written_at,
        "set_aside": dict(set_aside or {}),
        "moves": moves(journal),
        "requests": [event for event in journal if event["event"] == events.REQUEST],
        "throttles": [event for event in journal if event["event"] in THROTTLES],
        "other": [event for event in journal if event["event"] not in (*THROTTLES, *MOVES, events.REQUEST)],
    }
    job.artifacts.write_json(AUDIT, record)
    return record


def set_aside_of(journal: Iterable[Mapping[str, Any]], status: PlanStatus) -> dict[str, str]:
    """The partitions that the journal says were set aside, and that are not where the plan says now."""
    done = {str(tp) for tp in status.having(Status.DONE)}
    aside = {str(one["partition"]): str(one["reason"]) for one in journal if one["event"] == events.SET_ASIDE}
    return {partition: reason for partition, reason in sorted(aside.items()) if partition not in done}


def moves(journal: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each move, or each stage of one, with its begin, its end if it was seen, and who cancelled it if somebody did.

    Copies between log dirs are moves of single replicas, of which a partition may have several at a time.
    """
    listed: list[dict[str, Any]] = []
    latest: dict[str, dict[str, Any]] = {}
    for event in journal:
        name = str(event.get("replica") or event.get("partition"))
        if event["event"] in MOVES and name in latest and latest[name]["ended"] is None:
            latest[name]["ended"] = event["at"]
            latest[name]["cancelled_by"] = event.get("by")
        if event["event"] in (events.BEGAN, events.REQUESTED):
            latest[name] = {
                "partition": str(event["partition"]),
                "replica": event.get("replica"),  # of a copy between log dirs
                "from": event["from"],
                "to": event["to"],
                "log_dirs": event["log_dirs"],
                "began": event["at"],
                "ended": None,
                "cancelled_by": None,
                "bytes": event["bytes"],
            }
            listed.append(latest[name])
    return listed
