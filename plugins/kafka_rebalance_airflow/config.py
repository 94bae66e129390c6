"""What is set for the whole installation: the section ``[kafka_rebalance]`` of Airflow's configuration.

Each option can also be an environment variable, such as ``AIRFLOW__KAFKA_REBALANCE__ARTIFACTS``. Every part of Airflow
(workers, triggerer, api-server, dag-processor) must see the same values.
"""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from pathlib import Path

from airflow.configuration import AIRFLOW_HOME, conf

from rebalance_lib.errors import InvalidInputError

SECTION = "kafka_rebalance"
MOST_DAYS = 36_500


def artifacts_uri() -> str:
    """Below which URI runs keep their artifacts: ``artifacts``, or a directory in ``AIRFLOW_HOME``."""
    return _text("artifacts").rstrip("/") or f"file://{Path(AIRFLOW_HOME, 'kafka-rebalance').absolute()}"


def history_uri() -> str:
    """Where the history of all snapshots is kept: ``history``, or beside the runs, so that all of them share it."""
    return _text("history").rstrip("/") or f"{artifacts_uri()}/history"


def run_uri(dag_id: str, run_id: str) -> str:
    """Where a run keeps its artifacts. A run id may hold characters that are no good in a path, hence the digest.

    Raises:
        InvalidInputError: Airflow has no such DAG id, and it could lead out of the directory.
    """
    if not re.fullmatch(r"[\w.-]+", dag_id) or not dag_id.strip("."):
        raise InvalidInputError(f"{dag_id!r} is no DAG id: it has letters, digits, dots, dashes and underscores")
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", run_id)
    digest = hashlib.sha256(run_id.encode()).hexdigest()[:8]
    return f"{artifacts_uri()}/{dag_id}/{readable}-{digest}"


def clusters_file() -> Path | None:
    """The file that lists the clusters: ``clusters``; None if it is not set."""
    return Path(_text("clusters")) if _text("clusters") else None


def keep_runs() -> timedelta:
    """How long runs are kept after their last sign of life: ``keep_runs_days``, or 90 days."""
    return _days("keep_runs_days", 90)


def keep_history() -> timedelta:
    """How long snapshots stay in the history: ``keep_history_days``, or 30 days."""
    return _days("keep_history_days", 30)


def thin_history_after() -> timedelta:
    """From which age one snapshot an hour is enough: ``thin_history_after_days``, or 2 days."""
    return _days("thin_history_after_days", 2)


def _days(option: str, default: float) -> timedelta:
    text = _text(option) or str(default)
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 0 < days <= MOST_DAYS:
        raise InvalidInputError(
            f"[{SECTION}] {option} is {text!r}: give a number of days above 0 and up to {MOST_DAYS}"
        )
    return timedelta(days=days)


def spark_ui() -> str:
    """Where Spark's jobs can be seen, ``spark_ui``: a history server or a master; empty if nobody said."""
    return _text("spark_ui").rstrip("/")


def _text(option: str) -> str:
    return str(conf.get(SECTION, option, fallback="") or "").strip()
