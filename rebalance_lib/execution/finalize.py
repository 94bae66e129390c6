"""The end of a run: preferred leaders, a last comparison of cluster and plan, the record and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirMove, log_dir_moves
from rebalance_lib.execution.messages import Log, ignore, safely
from rebalance_lib.execution.plan_status import PlanStatus, Status, listing, read_status
from rebalance_lib.execution.records.audit import set_aside_of, write_audit
from rebalance_lib.execution.records.execution import note_end, planned_ends
from rebalance_lib.execution.records.journal import Journal, read_journal
from rebalance_lib.execution.records.run import Run
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.report import render_report
from rebalance_lib.topology import Snapshot, TopicPartition

REPORT = "report.html"
ELECTION_SECONDS = 10.0
UNFINISHED = (Status.MOVING, Status.PENDING, Status.DRIFTED, Status.RECREATED)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The cluster against a plan, log dirs included."""

    status: PlanStatus
    log_dirs_left: list[LogDirMove]

    @property
    def completed(self) -> bool:
        """Whether nothing of the plan is left to do."""
        return not self.log_dirs_left and not self.status.having(*UNFINISHED)

    def __str__(self) -> str:
        counts = {kind: self.status.having(kind) for kind in Status}
        text = f"{len(counts[Status.DONE])} of {len(self.status.by_partition)} partitions are where the plan says"
        for kind in (*UNFINISHED, Status.MISSING):
            if counts[kind]:
                text += f"; {len(counts[kind])} {kind}: {listing(counts[kind])}"
        if self.log_dirs_left:
            named = ", ".join(str(move.replica) for move in self.log_dirs_left[:5])
            text += f"; {len(self.log_dirs_left)} replicas are not in their log dir: {named}"
        return text + "."


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the plan is completed, in words too, and where the report is."""

    completed: bool
    verdict: str
    report: str


def finalize(
    cluster: Cluster,
    job: Job,
    settings: Settings,
    *,
    approved_by: str,
    approved_at: str,
    set_aside: Mapping[TopicPartition, str] | None = None,
    log: Log = ignore,
) -> Comparison:
    """Elect the preferred leaders of what was moved, compare cluster and plan, and write the record of the run.

    Leaders that do not change are logged, and recorded with the reason: they can be elected again at any time.
    """
    ends = planned_ends(job)
    status = read_status(cluster, ends=ends, doubted=(Status.DRIFTED, Status.PENDING))
    behind = [tp for tp in status.having(Status.DONE) if status.live[tp].leader != job.targets[tp][0]]
    journal = Journal(job.artifacts, cluster.clock)
    for start in range(0, len(behind), settings.election_batch):
        batch = behind[start : start + settings.election_batch]
        refused = elect(cluster, batch)
        if elected := [str(tp) for tp in batch if tp not in refused]:
            journal.note("leaders elected", partitions=elected)
        if refused:
            reasons = {str(tp): reason for tp, reason in refused.items()}
            journal.note("leaders not elected", reasons=reasons)
            first = next(iter(refused.values()))
            safely(log)(f"{len(refused)} preferred leaders were not elected ({listing(refused)}): {first}")
    journal.flush()
    comparison = Comparison(status, [move for move in log_dir_moves(cluster, job.log_dirs) if not move.ended])
    write_audit(
        job,
        settings,
        verdict=str(comparison),
        approved_by=approved_by,
        approved_at=approved_at,
        written_at=cluster.clock.timestamp(),
        set_aside={str(tp): reason for tp, reason in (set_aside or {}).items()} or None,
    )
    note_end(job.artifacts)
    return comparison


def elect(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, str]:
    """Elect preferred leaders, and wait until the brokers know of it; returns why some did not change."""
    refused = cluster.elect_preferred_leaders(partitions)
    deadline = cluster.clock.monotonic() + ELECTION_SECONDS
    while True:
        live = cluster.partitions({tp.topic for tp in partitions})
        behind = [tp for tp in partitions if tp in live and live[tp].leader != live[tp].replicas[0]]
        if refused.keys() >= set(behind) or cluster.clock.monotonic() > deadline:
            late = f"another broker still led it {ELECTION_SECONDS:.0f} s later"
            return {tp: refused.get(tp, late) for tp in behind}
        cluster.clock.sleep(0.2)


def finalize_run(
    cluster: Cluster,
    run: Run,
    settings: Settings,
    *,
    approved_by: str,
    approved_at: str,
    failed_steps: Sequence[str],
) -> Outcome:
    """Finalize a run of the workflow, and write its report; it can be run again."""
    found = finalize(cluster, run.job(), settings, approved_by=approved_by, approved_at=approved_at)
    set_aside = set_aside_of(read_journal(run.artifacts), found.status)
    verdict = str(found)
    if set_aside:
        listed = "; ".join(f"{partition}: {reason}" for partition, reason in list(set_aside.items())[:5])
        verdict += f" Set aside: {listed}. Clear execute_plan and what follows it to go on with them."
    after = take_snapshot(cluster)
    run.write_after(after)
    brokers = measured_brokers(run.snapshot(), after)
    run.artifacts.write_text(
        REPORT,
        render_report(
            run.summary(),
            {
                "result": "done" if found.completed and not failed_steps else "not finished",
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
    return Outcome(found.completed, verdict, f"{run.uri}/{REPORT}")


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
