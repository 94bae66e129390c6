"""The end of a run: preferred leaders, a last comparison of cluster and plan, and the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.execution.run import Run
from rebalance_lib.execution.status import PlanStatus, Status, listing
from rebalance_lib.execution.throttle import left_behind
from rebalance_lib.report import render_report
from rebalance_lib.topology import Snapshot, TopicPartition

REPORT = "report.html"
ELECTION_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the plan is reached, in words too, and where the report is."""

    reached: bool
    verdict: str
    report: str


def conclude(
    cluster: Cluster,
    run: Run,
    *,
    approved_by: str,
    approved_at: str,
    rate: int,
    failed_steps: Sequence[str],
) -> Outcome:
    """Elect the preferred leaders of what is done, compare, write the report; it can be run again."""
    status = run.status(cluster)
    targets = run.plan().as_dict()
    elect(cluster, [tp for tp in status.having(Status.DONE) if status.live[tp].leader != targets[tp][0]])
    after = take_snapshot(cluster)
    run.write_after(after)
    reached = not status.having(Status.PENDING, Status.MOVING, Status.DRIFTED)
    verdict = describe(status)
    brokers = measured_brokers(run.snapshot(), after)
    run.artifacts.write_text(
        REPORT,
        render_report(
            run.summary(),
            {
                "result": "done" if reached and not failed_steps else "not finished",
                "approved_by": approved_by,
                "approved_at": approved_at,
                "rate": rate,
                "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "verdict": verdict + (f" Failed steps: {', '.join(failed_steps)}." if failed_steps else ""),
                "throttles_left": left_behind(run.artifacts),
                "brokers": brokers,
            },
        ),
    )
    return Outcome(reached, verdict, f"{run.uri}/{REPORT}")


def elect(cluster: Cluster, partitions: Sequence[TopicPartition]) -> None:
    """Elect preferred leaders, and wait a moment until the brokers have heard of it."""
    if not partitions:
        return
    cluster.elect_preferred_leaders(partitions)
    deadline = time.monotonic() + ELECTION_SECONDS
    while time.monotonic() < deadline:
        live = cluster.partitions({tp.topic for tp in partitions})
        if all(live[tp].leader == live[tp].replicas[0] for tp in partitions if tp in live):
            return
        time.sleep(0.2)


def describe(status: PlanStatus) -> str:
    """One sentence on where the plan stands."""
    counts = {kind: status.having(kind) for kind in Status}
    text = f"{len(counts[Status.DONE])} of {len(status.by_partition)} partitions are where the plan says"
    for kind in (Status.MOVING, Status.PENDING, Status.DRIFTED, Status.MISSING):
        if counts[kind]:
            text += f"; {len(counts[kind])} {kind}: {listing(counts[kind])}"
    return text + "."


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
