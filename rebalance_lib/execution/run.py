"""A run as its steps see it: everything a step needs, read from the run's artifacts and the live cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rebalance_lib.artifacts import AFTER, PLAN, SNAPSHOT, Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import DriftError
from rebalance_lib.execution.progress import Progress, measure_progress
from rebalance_lib.execution.status import PlanStatus, plan_status
from rebalance_lib.execution.submission import preflight
from rebalance_lib.plan import Plan, current_assignment, parse_plan
from rebalance_lib.topology import Snapshot


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
        kept = self.artifacts / name
        return Snapshot.from_tables(kept.read_table("brokers.parquet"), kept.read_table("replicas.parquet"))

    def write_after(self, snapshot: Snapshot) -> None:
        """Keep the snapshot of the end."""
        self.write_snapshot(snapshot, AFTER)

    def plan(self) -> Plan:
        """What is to change."""
        return parse_plan((self.artifacts / PLAN).read_text("plan.json"))

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
        return dict((self.artifacts / PLAN).read_json("summary.json"))

    def review(self) -> str:
        """The plan for the person who approves it."""
        return (self.artifacts / PLAN).read_text("review.md")

    def before(self) -> Plan:
        """The assignment that the plan was made for."""
        return current_assignment(self.snapshot())

    def status(self, cluster: Cluster) -> PlanStatus:
        """Where each planned partition stands now."""
        return plan_status(cluster, self.plan(), self.before())

    def preflight(self, cluster: Cluster, approved_digest: str) -> PlanStatus:
        """Refuse what must not be executed; see `preflight`."""
        plan, snapshot = self.approved_plan(approved_digest), self.snapshot()
        return preflight(cluster, plan, current_assignment(snapshot), cluster_id=snapshot.cluster_id)

    def progress(self, cluster: Cluster) -> Progress:
        """How far the plan has come."""
        plan, before = self.plan(), self.before()
        return measure_progress(cluster, plan, before, plan_status(cluster, plan, before))
