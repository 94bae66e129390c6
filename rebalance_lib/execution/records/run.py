"""A run as its steps see it: everything a step needs, read from the run's artifacts and the live cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rebalance_lib.artifacts import AFTER, PLAN, RATES, REVIEW, SNAPSHOT, Artifacts, read_snapshot, write_groups
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import DriftError
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.plan_status import PlanStatus, read_status
from rebalance_lib.execution.preflight import Preflight, preflight
from rebalance_lib.execution.progress import Meter, Progress
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.plan import Plan, current_assignment, parse_plan
from rebalance_lib.report import of_candidate
from rebalance_lib.topology import Groups, Snapshot, TopicPartition

PLAN_FILE = "plan.json"


@dataclass(frozen=True, slots=True)
class Run:
    """One rebalance, named by the URI of its artifacts."""

    uri: str

    @property
    def artifacts(self) -> Artifacts:
        """The directory of the run."""
        return Artifacts(self.uri)

    def write_snapshot(self, snapshot: Snapshot, name: str = SNAPSHOT) -> None:
        """Keep a snapshot."""
        brokers, replicas = snapshot.tables()
        (self.artifacts / name).write_table("brokers.parquet", brokers)
        (self.artifacts / name).write_table("replicas.parquet", replicas)

    def snapshot(self, name: str = SNAPSHOT) -> Snapshot:
        """The cluster as the run found it, or, with ``after``, as it left it."""
        return read_snapshot(self.artifacts / name)

    def write_groups(self, groups: Groups | None) -> None:
        """Keep the consumer groups with the snapshot; without any, those that an earlier try kept go."""
        write_groups(self.artifacts / SNAPSHOT, groups)

    def write_after(self, snapshot: Snapshot) -> None:
        """Keep the snapshot of the end."""
        self.write_snapshot(snapshot, AFTER)

    def plan(self) -> Plan:
        """What is to change: the recommended plan, or the one that was chosen."""
        return parse_plan((self.artifacts / PLAN).read_text(PLAN_FILE))

    def choose(self, candidate: str) -> Plan:
        """Make this candidate the plan of the run.

        Raises:
            DriftError: Its bytes are not those that the summary was made of.
        """
        published = self.artifacts / PLAN
        text = (published / "candidates" / candidate).read_text(PLAN_FILE)
        plan, digest = parse_plan(text), self._summary()["candidates"][candidate]["digest"]
        if plan.digest != digest:
            raise DriftError(f"candidate {candidate} is {plan.digest}, reviewed was {digest}: plan and review again")
        published.write_text(PLAN_FILE, text)
        return plan

    def approved_plan(self, digest: str) -> Plan:
        """The plan, if it is the one that was approved.

        Raises:
            DriftError: The plan's bytes are not those that were approved.
        """
        plan = self.plan()
        if plan.digest != digest:
            raise DriftError(f"the plan is {plan.digest}, approved was {digest}: plan and review again")
        return plan

    def summary(self) -> dict[str, Any]:
        """The plan in figures."""
        summary, digest = self._summary(), self.plan().digest
        names = (name for name, one in summary["candidates"].items() if one["digest"] == digest)
        return of_candidate(summary, next(names, summary["recommended"]))

    def _summary(self) -> dict[str, Any]:
        return dict((self.artifacts / PLAN).read_json("summary.json"))

    def review(self) -> dict[str, Any]:
        """Who approved what, and the settings; empty before the review."""
        return dict(self.artifacts.read_json(REVIEW)) if self.artifacts.exists(REVIEW) else {}

    def has_begun(self) -> bool:
        """Whether something of the run may be on the cluster: it was approved, or has throttles to restore."""
        return bool(self.review().get("candidate") or stale_throttles(self.artifacts))

    def settings(self) -> Settings:
        """How the plan is executed, as it was approved."""
        return Settings.from_dict(self.review().get("settings") or {})

    def before(self) -> Plan:
        """The assignment that the plan was made for."""
        return current_assignment(self.snapshot())

    def status(self, cluster: Cluster) -> PlanStatus:
        """Where each planned partition stands now."""
        return read_status(cluster, self.plan(), self.before())

    def job(self, approved_digest: str | None = None) -> Job:
        """What is to be executed.

        Args:
            approved_digest: The digest of the plan that was approved; None where nothing is changed.
        """
        plan = self.plan() if approved_digest is None else self.approved_plan(approved_digest)
        snapshot, summary = self.snapshot(), self._summary()
        if approved_digest is not None and summary["snapshot_taken_at"] != snapshot.taken_at:
            raise DriftError(
                f"the plan is for the snapshot of {summary['snapshot_taken_at']}, the run's is of {snapshot.taken_at}: "
                "plan and review again"
            )
        mode = summary.get("mode")
        return Job(
            plan,
            current_assignment(snapshot),
            snapshot.cluster_id,
            self.artifacts,
            repair=mode == "repair",
            adds=mode == "partitions",
            write_rates=self._write_rates(),
            sizes=leader_sizes(snapshot),
        )

    def _write_rates(self) -> dict[TopicPartition, float]:
        """What is written to partitions at their peak, where the planner knew it."""
        if not (self.artifacts / PLAN).exists(RATES):
            return {}
        rates = (self.artifacts / PLAN).read_table(RATES)
        columns = (rates[name].to_pylist() for name in ("topic", "partition", "write_rate_p95"))
        return {TopicPartition(*tp): rate for *tp, rate in zip(*columns, strict=True) if rate is not None}

    def preflight(self, cluster: Cluster, approved_digest: str, settings: Settings | None = None) -> Preflight:
        """Refuse what must not be executed; see `preflight`."""
        return preflight(cluster, self.job(approved_digest), settings)

    def progress(self, cluster: Cluster) -> Progress:
        """How far the plan has come."""
        plan, before = self.plan(), self.before()
        meter = Meter(plan, before)
        return meter.read(cluster, read_status(cluster, plan, before), cluster.alive_brokers().keys())[0]


def leader_sizes(snapshot: Snapshot) -> dict[TopicPartition, int]:
    """The bytes of each partition: those of its leader, or the most that a replica has."""
    names = ("topic", "partition", "size_bytes", "leader")
    columns = (snapshot.replicas[name].to_pylist() for name in names)
    sizes: dict[TopicPartition, int] = {}
    led: set[TopicPartition] = set()
    for topic, partition, size, leads in zip(*columns, strict=True):
        tp = TopicPartition(topic, partition)
        if size is not None and (leads or (tp not in led and size > sizes.get(tp, -1))):
            sizes[tp] = size
            led |= {tp} if leads else set()
    return sizes
