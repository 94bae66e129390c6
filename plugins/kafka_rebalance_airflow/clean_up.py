"""How runs end before their time: clean-up of what has begun, requests to cancel, and throttles that dead runs left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.cluster_lock import ClusterLock, describe
from kafka_rebalance_airflow.config import artifacts_uri, run_uri
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook
from kafka_rebalance_airflow.run_lock import run_lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from rebalance_lib.artifacts import Artifacts
    from rebalance_lib.cluster import Cluster
    from rebalance_lib.execution import Run
    from rebalance_lib.execution.requests import Request

CANCEL_HONOURED = "cancel_honoured.json"


def clean_up_run(
    run: Run, context: Context, log: Any, *, kafka_conn_id: str | None = None, of: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Cancel the moves of a run that are under way, and restore throttles; nothing, if it has begun nothing.

    While another run holds the cluster lock, moves to the same brokers are that one's: none is cancelled, but throttles
    that this run left are restored.

    Args:
        run: The run.
        context: Of the task.
        log: The task's.
        kafka_conn_id: Connection to its cluster; the one that the run began with if it is not said.
        of: DAG and id of the run; those of the context if it is not said.

    Raises:
        AirflowFailException: Another run holds the cluster lock.
        InUseError: Another process executes the plan, and did not end in time.
        RuntimeError: Throttles are left.
    """
    from rebalance_lib.artifacts import RUN
    from rebalance_lib.execution import clean_up, restore_stale_throttles

    if not run.has_begun():
        log.info("the run had begun nothing")
        return {"topics": 0, "brokers": []}
    conn_id = kafka_conn_id or run.artifacts.read_json(RUN)["kafka_conn_id"]
    with KafkaAdminHook(conn_id).get_conn() as cluster:
        if other := ClusterLock(cluster.cluster_id(), context, of=of).other():
            found = restore_stale_throttles(cluster, run.artifacts)
            throttles = "".join(f"; throttles of this run {restored}" for restored in found.values())
            raise AirflowFailException(
                f"{describe(other)}, so that no move is cancelled: clear this task again when it has ended{throttles}"
            )
        by = f"the run {context['run_id']} of {context['dag'].dag_id}"
        with run_lock(run, cluster.clock):
            restored = clean_up(cluster, run.job(), run.settings(), by=by, log=log.warning)
    if restored.left:
        raise RuntimeError(f"throttles are left on the cluster: {restored.left}")
    return {"topics": len(restored.topics), "brokers": restored.brokers}


def restore_stale(cluster: Cluster, context: Context, log: Any) -> None:
    """Restore throttles that dead runs left on a cluster; those of the run that holds the cluster lock are its own.

    What cannot be restored is logged as an error, and stops no snapshot: neither the saved throttles of a run that are
    damaged, nor a directory that cannot be read.
    """
    from rebalance_lib.artifacts import Artifacts
    from rebalance_lib.errors import ClusterError, RebalanceError
    from rebalance_lib.execution import restore_stale_throttles

    root = Artifacts(artifacts_uri())
    other = ClusterLock(cluster.cluster_id(), context).other()
    alive = [run_uri(other["dag_id"], other["run_id"])] if other else []
    for directory in root.directories():
        try:
            found = restore_stale_throttles(cluster, root / directory, alive=alive)
        except ClusterError:
            raise
        except RebalanceError as error:
            log.error("throttles of dead runs in %s were not restored: %s", (root / directory).uri, error)
            continue
        for uri, restored in found.items():
            (log.error if restored.left else log.warning)("throttles that the dead run %s left: %s", uri, restored)


def refuse_if_cancelled(context: Context, run: Run) -> None:
    """Fail if somebody asked to cancel this run, unless it was cleared since.

    A request that a start of the run has ended by is honoured: after the run was cleared, Airflow starts it anew, and
    the request is removed. Starts are told apart by the text of their date, and no two clocks are compared: the machine
    of whoever asked may have any time.

    Raises:
        AirflowFailException: It is cancelled.
    """
    from rebalance_lib.execution.requests import forget_requests

    start = str(context["dag_run"].start_date)
    honoured = _honoured(run.artifacts)
    pending = pending_cancels(run)
    over = [request for request in pending if honoured.get(request.name, start) != start]
    forget_requests(run.artifacts, over)
    valid = [request for request in pending if request not in over]
    if valid:
        _note_honoured(run.artifacts, valid, start)
        raise AirflowFailException(f"{valid[0]}: the run ends here; clear its tasks to start it anew")
    if honoured:
        run.artifacts.remove_files([CANCEL_HONOURED])


def honour_cancels(context: Context, run: Run) -> None:
    """This start of the run was cleaned up: what it was cancelled by does not end the next one."""
    if valid := pending_cancels(run):
        _note_honoured(run.artifacts, valid, str(context["dag_run"].start_date))


def clean_up_mark(artifacts: Artifacts) -> str:
    """What the last clean-up of a run left; empty before the first. Another one is there after the next."""
    from rebalance_lib.execution.clean_up import CLEAN_UP

    return artifacts.read_text(CLEAN_UP) if artifacts.exists(CLEAN_UP) else ""


def pending_cancels(run: Run) -> list[Request]:
    """The requests to cancel a run that it has not ended by."""
    from rebalance_lib.execution.requests import Kind, read_requests

    return [request for request in read_requests(run.artifacts) if request.kind is Kind.CANCEL]


def _note_honoured(artifacts: Artifacts, requests: Sequence[Request], start: str) -> None:
    artifacts.write_json(CANCEL_HONOURED, {request.name: start for request in requests}, durable=True)


def _honoured(artifacts: Artifacts) -> Mapping[str, str]:
    """By the name of the request: the start of the run that ended by it; what cannot be read counts as none."""
    from rebalance_lib.errors import InvalidInputError

    if not artifacts.exists(CANCEL_HONOURED):
        return {}
    try:
        found = artifacts.read_json(CANCEL_HONOURED)
    except (InvalidInputError, ValueError):
        return {}
    return {str(name): str(start) for name, start in found.items()} if isinstance(found, dict) else {}
