"""One run per cluster: wait until the cluster lock is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.clean_up import refuse_if_cancelled
from kafka_rebalance_airflow.cluster_lock import ClusterLock, describe
from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.cluster import Cluster


class ClusterLockSensor(BaseSensorOperator):
    """Lock a cluster for this run; as long as another run holds the lock, or another tool moves replicas, wait or fail.

    Runs of this Airflow are known by their locks; who moves replicas from outside, from another Airflow too, is seen
    in Kafka. The first poll must succeed; of later ones, those that fail are logged, and the next one comes.

    :param kafka_conn_id: connection to the cluster.
    :param on_busy: ``wait`` or ``fail``.
    """

    template_fields: Sequence[str] = ("kafka_conn_id", "on_busy")
    ui_color = "#e3eefa"

    def __init__(self, *, kafka_conn_id: str, on_busy: str = "wait", **kwargs: Any) -> None:
        super().__init__(mode="reschedule", **kwargs)
        self.kafka_conn_id = kafka_conn_id
        self.on_busy = on_busy

    def execute(self, context: Context) -> Any:
        """Poll once; a cluster that could be reached is waited for, whatever happens to it meanwhile."""
        self.silent_fail = context["ti"].get_first_reschedule_date(context) is not None
        return super().execute(context)

    def poke(self, context: Context) -> bool:
        """Lock the cluster if it is free, unless somebody asked to cancel the run meanwhile."""
        from rebalance_lib.execution import Run

        refuse_if_cancelled(context, Run(run_uri(context["dag"].dag_id, context["run_id"])))
        with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
            lock = ClusterLock(cluster.cluster_id(), context)
            busy = self._moves(cluster, lock)
            if busy is None and (other := lock.take()):
                busy = describe(other)
        if busy is None:
            return True
        if self.on_busy == "fail":
            raise AirflowFailException(f"{busy}: try again when it has ended, or choose to wait")
        self.log.info("waiting: %s", busy)
        return False

    def _moves(self, cluster: Cluster, lock: ClusterLock) -> str | None:
        """Who moves replicas though no run holds the lock; moves of this one, cleared and run again, are its own."""
        moving = [] if lock.own() or lock.other() else sorted(map(str, cluster.reassignments()))
        if not moving:
            return None
        named = ", ".join(moving[:5]) + (", ..." if len(moving) > 5 else "")
        return f"reassignments that no run here has begun are under way: {named}"
