"""How runs end before their time: the way out of what has begun, wishes to end, and what dead runs left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.claims import Claim, told
from kafka_rebalance_airflow.config import artifacts_uri, run_uri
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from rebalance_lib.cluster import Cluster
    from rebalance_lib.execution import Run


def take_way_out(
    run: Run, context: Context, log: Any, *, kafka_conn_id: str | None = None, of: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Cancel the moves of a run that are under way, and put back its throttles; nothing, if it has begun nothing.

    While another run has the cluster, moves to the same brokers are that one's: none is cancelled, but throttles that
    this run left are put back.

    Args:
        run: The run.
        context: Of the task.
        log: The task's.
        kafka_conn_id: Connection to its cluster; the one that the run began with if it is not said.
        of: DAG and id of the run; those of the context if it is not said.

    Raises:
        AirflowFailException: Another run has the cluster.
        RuntimeError: Throttles are left.
    """
    from rebalance_lib.artifacts import RUN
    from rebalance_lib.execution import leave, restore_stale_throttles

    if not run.has_begun():
        log.info("the run had begun nothing")
        return {"topics": 0, "brokers": []}
    conn_id = kafka_conn_id or run.artifacts.read_json(RUN)["kafka_conn_id"]
    with KafkaAdminHook(conn_id).get_conn() as cluster:
        if other := Claim(cluster.cluster_id(), context, of=of).other():
            found = restore_stale_throttles(cluster, run.artifacts)
            throttles = "".join(f"; throttles of this run {restored}" for restored in found.values())
            raise AirflowFailException(
                f"{told(other)}, so that no move is cancelled: clear this task again when it has ended{throttles}"
            )
        restored = leave(cluster, run.job(), run.settings(), tell=log.warning)
    if restored.left:
        raise RuntimeError(f"throttles are left on the cluster: {restored.left}")
    return {"topics": len(restored.topics), "brokers": restored.brokers}


def put_right(cluster: Cluster, context: Context, log: Any) -> None:
    """Put back throttles that dead runs left on a cluster; those of a run that has it now are its own."""
    from rebalance_lib.artifacts import Artifacts
    from rebalance_lib.execution import restore_stale_throttles

    root = Artifacts(artifacts_uri())
    other = Claim(cluster.cluster_id(), context).other()
    alive = [run_uri(other["dag_id"], other["run_id"])] if other else []
    for directory in root.directories():
        for uri, restored in restore_stale_throttles(cluster, root / directory, alive=alive).items():
            log.warning("throttles that %s had left: %s", uri, restored)


def refuse_if_cancelled(context: Context, run: Run) -> None:
    """Fail if somebody asked to end this run; what was asked before it was cleared, and so began anew, is forgotten.

    Raises:
        AirflowFailException: It shall end.
    """
    from rebalance_lib.execution import asked_to_cancel, forget_cancel

    if asked := asked_to_cancel(run.artifacts, since=context["dag_run"].start_date):
        raise AirflowFailException(f"{asked}: it ends here; clear its tasks when it has ended, and it begins anew")
    forget_cancel(run.artifacts)
