"""The history: one more snapshot, and what is too old."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from kafka_rebalance_airflow.clean_up import restore_stale
from kafka_rebalance_airflow.config import artifacts_uri, history_uri, keep_history, keep_runs, thin_history_after
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class RecordSnapshotOperator(BaseOperator):
    """Append a snapshot of a cluster to the history; throttles that dead runs left are restored first.

    What its consumer groups have committed is part of it; if they cannot be read, a warning says so.

    :param kafka_conn_id: connection to the cluster.
    """

    template_fields: Sequence[str] = ("kafka_conn_id",)
    ui_color = "#e3eefa"

    def __init__(self, *, kafka_conn_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kafka_conn_id = kafka_conn_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Take the snapshot."""
        from rebalance_lib.artifacts import Artifacts
        from rebalance_lib.cluster import groups_or_none, take_snapshot
        from rebalance_lib.history import append_snapshot

        with KafkaAdminHook(self.kafka_conn_id).get_conn() as cluster:
            restore_stale(cluster, context, self.log)
            snapshot = take_snapshot(cluster)
            groups = groups_or_none(cluster, tell=self.log.warning)
        file = append_snapshot(Artifacts(history_uri()), snapshot, groups)
        self.log.info("%s replicas are in %s", snapshot.replicas.num_rows, file.name)
        return {"cluster_id": snapshot.cluster_id, "file": file.name, "replicas": snapshot.replicas.num_rows}


class TidyOperator(BaseOperator):
    """Thin out and drop old history, and drop old runs, by the settings of the installation."""

    ui_color = "#f6e6e4"

    def execute(self, context: Context) -> dict[str, Any]:
        """Remove what is too old."""
        from rebalance_lib.artifacts import Artifacts
        from rebalance_lib.execution import drop_old_runs
        from rebalance_lib.history import thin_history

        now = datetime.now(UTC)
        history = thin_history(Artifacts(history_uri()), now=now, thin_after=thin_history_after(), keep=keep_history())
        dropped = drop_old_runs(Artifacts(artifacts_uri()), now - keep_runs())
        for problem in history.problems:
            self.log.warning("history: %s", problem)
        self.log.info("history: %s; runs dropped: %s", history, dropped)
        return {"history": history._asdict(), "runs": dropped}
