"""The approval policy in Airflow: where it is read, who asks and who answers, and what the record of a review says.

What a policy means is `rebalance_lib.approval`. It is read when a review begins and again with each answer, from the
clusters' file, so that a run that waits is approved by the policy of today. If it cannot be read, nothing is approved.

Airflow keeps one answer of a task. So the answers of a review that goes on are in ``approvals.json`` of the run, those
that count and those that were refused, with the conditions of each; in the end they are part of ``review.json``. When
the review is cleared or tried again, they are void.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.clusters import read_clusters
from rebalance_lib.approval.conditions import Answer, Condition, Person, Requested
from rebalance_lib.approval.policy import ApprovalPolicy
from rebalance_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.artifacts import Artifacts

APPROVALS = "approvals.json"
TIME_IS_UP = "nobody: the time is up"


def read_policy(file: str, cluster_id: str) -> ApprovalPolicy:
    """The policy of a cluster, by Kafka's id.

    Args:
        file: The clusters' file, if the installation sets none; empty for none.
        cluster_id: Kafka's id, as the snapshot has it.

    Raises:
        AirflowFailException: It cannot be read, or there is none for this cluster among others.
    """
    try:
        clusters = read_clusters(Path(file) if file else None)
        if clusters.approval is None:
            raise ValueError("; ".join(clusters.problems()))
        return clusters.approval.of_cluster(cluster_id)
    except (ValueError, InvalidInputError) as error:
        raise AirflowFailException(
            f"the approval policy cannot be read, so that nothing is approved: {error}; "
            "repair the clusters' file, then clear review_plan"
        ) from error


def requested(context: Context, approvers: Iterable[str]) -> Requested:
    """What this run asks for: who triggered it is known to Airflow, and no form says it."""
    dag_run: Any = context["dag_run"]
    run_type = getattr(dag_run, "run_type", "")
    return Requested(
        getattr(dag_run, "triggering_user_name", None), str(getattr(run_type, "value", run_type)), tuple(approvers)
    )


def responder(event: Mapping[str, Any]) -> Person | None:
    """Who answered; None where Airflow took the default answer, because the time was up."""
    user = event.get("responded_by_user") or {}
    name = str(user.get("name") or "")
    id_ = str(user.get("id") or "")
    return Person(id_, name or id_) if id_ else None


def as_records(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Conditions for the record."""
    return [asdict(one) for one in conditions]


@dataclass
class Approvals:
    """The answers of a review that goes on.

    ``deadline`` is when it is rejected by itself, in ISO; None for never. Asking again does not put it off.
    ``automatic`` are the conditions of automatic approval, where the form asked for it; some did not hold.
    """

    deadline: str | None = None
    automatic: list[dict[str, Any]] = field(default_factory=list)
    counted: list[Answer] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, artifacts: Artifacts) -> Self:
        """Those of a run; none before the first."""
        if not artifacts.exists(APPROVALS):
            return cls()
        found = artifacts.read_json(APPROVALS)
        counted = [Answer(**{**one, "person": Person(**one["person"])}) for one in found["counted"]]
        return cls(found["deadline"], found["automatic"], counted, found["answers"])

    def write(self, artifacts: Artifacts) -> None:
        """Keep them with the run."""
        counted = [one.as_dict() for one in self.counted]
        content = {**vars(self), "counted": counted}
        artifacts.write_json(APPROVALS, content, durable=True)

    def note(self, answer: Answer, conditions: Iterable[Condition], *, counts: bool) -> None:
        """Write down an answer and what the policy says of it."""
        self.answers.append({**answer.as_dict(), "counts": counts, "conditions": as_records(conditions)})
        if counts:
            self.counted.append(answer)

    def seconds_left(self) -> float | None:
        """Until the deadline, a second at least; None if there is none."""
        if self.deadline is None:
            return None
        return max(1.0, (datetime.fromisoformat(self.deadline) - datetime.now(UTC)).total_seconds())
