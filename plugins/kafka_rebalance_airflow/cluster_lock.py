"""The cluster lock: one run per cluster, and which one holds it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.config import artifacts_uri

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.artifacts import Artifacts

ACTIVE = ["running", "queued", "restarting"]
SETTLING_SECONDS = 1.0


class ClusterLock:
    """The lock of a cluster, as one run sees it.

    It is a file beside the runs, named by Kafka's id of the cluster, so that DAGs and connections of one cluster share
    it. It holds for as long as Airflow calls the run that wrote it active: nothing has to be released, and a run that
    died holds up nobody.

    Args:
        cluster_id: Kafka's id of the cluster.
        context: Of a task.
        of: DAG and id of the run; those of the task if it is not said.
    """

    def __init__(self, cluster_id: str, context: Context, *, of: tuple[str, str] | None = None) -> None:
        self._file = f"{quote(cluster_id, safe='')}.json"
        self._ti: Any = context["ti"]
        dag_id, run_id = of or (context["dag"].dag_id, context["run_id"])
        self._mine = {
            "dag_id": dag_id,
            "run_id": run_id,
            "airflow": conf.get("api", "base_url", fallback=""),
        }

    @property
    def _directory(self) -> Artifacts:
        from rebalance_lib.artifacts import Artifacts

        return Artifacts(artifacts_uri()) / "claims"

    def _found(self) -> dict[str, str] | None:
        return self._directory.read_json(self._file) if self._directory.exists(self._file) else None

    def own(self) -> bool:
        """Whether it is this run's already."""
        return self._found() == self._mine

    def other(self) -> dict[str, str] | None:
        """``dag_id`` and ``run_id`` of the run that holds it; None if none does, or this one."""
        found = self._found()
        if found is None or found == self._mine or found["airflow"] != self._mine["airflow"]:
            return None
        active = self._ti.get_dr_count(dag_id=found["dag_id"], run_ids=[found["run_id"]], states=ACTIVE)
        return found if active else None

    def take(self) -> dict[str, str] | None:
        """Lock the cluster; returns the run that holds the lock, if another does.

        Of two runs that come in the same moment, the one that wrote last holds it: each reads it again a moment later.
        """
        if other := self.other():
            return other
        if not self.own():
            self._directory.write_json(self._file, self._mine)
            time.sleep(SETTLING_SECONDS)
        return self.other()


def lock_cluster(context: Context, cluster_id: str) -> None:
    """Lock a cluster for a run that is about to change it: one that was cleared may find another run on it.

    Raises:
        AirflowFailException: Another run holds the lock.
    """
    if other := ClusterLock(cluster_id, context).take():
        raise AirflowFailException(f"{describe(other)}: clear this task again when it has ended")


def describe(other: dict[str, str]) -> str:
    """Which run holds a cluster lock, in words."""
    return f"the run {other['run_id']} of {other['dag_id']} holds the cluster lock"
