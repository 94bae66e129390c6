"""The end of a run: preferred leaders, a last comparison of cluster and plan, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.execution.records.run import Run
from rebalance_lib.execution.runner import finish
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.report import render_report
from rebalance_lib.topology import Snapshot

REPORT = "report.html"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the plan is reached, in words too, and where the report is."""

    reached: bool
    verdict: str
    report: str


def conclude(
    cluster: Cluster,
    run: Run,
    settings: Settings,
    *,
    approved_by: str,
    approved_at: str,
    failed_steps: Sequence[str],
) -> Outcome:
    """Elect the preferred leaders of what is done, compare, write record and report; it can be run again."""
    found = finish(cluster, run.job(), settings, approved_by=approved_by, approved_at=approved_at)
    reached, verdict = found.reached, str(found)
    after = take_snapshot(cluster)
    run.write_after(after)
    brokers = measured_brokers(run.snapshot(), after)
    run.artifacts.write_text(
        REPORT,
        render_report(
            run.summary(),
            {
                "result": "done" if reached and not failed_steps else "not finished",
                "approved_by": approved_by,
                "approved_at": approved_at,
                "rate": settings.pace.throttle,
                "finished_at": cluster.clock.now().isoformat(timespec="seconds"),
                "verdict": verdict + (f" Failed steps: {', '.join(failed_steps)}." if failed_steps else ""),
                "throttles_left": stale_throttles(run.artifacts),
                "brokers": brokers,
            },
        ),
    )
    return Outcome(reached, verdict, f"{run.uri}/{REPORT}")


def measured_brokers(before: Snapshot, after: Snapshot) -> list[dict[str, Any]]:
    """Per broker: bytes, replicas and leaders of two snapshots, in the shape of those in ``summary.json``."""
    figures = ("bytes", "replicas", "leaders")
    rows = {row["broker"]: row for row in before.load_per_broker().to_pylist()}
    return [
        {
            "broker": row["broker"],
            "rack": row["rack"],
            "before": {key: rows.get(row["broker"], {}).get(key, 0) for key in figures},
            "after": {key: row[key] for key in figures},
        }
        for row in after.load_per_broker().to_pylist()
    ]
