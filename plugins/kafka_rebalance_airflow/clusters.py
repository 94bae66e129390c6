"""The file of clusters: which there are, when each is rebalanced, and how.

    snapshots: "*/5 * * * *"            # when snapshots of all of them are taken
    clusters:
      production:
        kafka_conn_id: kafka_production
        schedule: "0 20 * * sat"        # or snapshot: after each snapshot; left out: only by hand
        quiet_hours: 07:00-20:00 Europe/Berlin
        threshold_bytes: 0.1            # and any other field of the form (`form`)
        review: automatic
        max_bytes: 500_000_000_000

It is checked when it is read: what is wrong is told with the file, the cluster and the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kafka_rebalance_airflow.config import clusters_file
from kafka_rebalance_airflow.form import rebalance_params

SNAPSHOTS = "*/5 * * * *"
AFTER_SNAPSHOT = "snapshot"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_HOURS = re.compile(r"(\d{1,2}:\d{2})-(\d{1,2}:\d{2})( \S+)?")


@dataclass(frozen=True)
class ClusterEntry:
    """One cluster of the file.

    Args:
        name: how people call it; part of the ids of its DAG and tasks.
        kafka_conn_id: its connection.
        schedule: when it is rebalanced: a cron expression, ``snapshot``, or None.
        fields: defaults for the form, all checked.
    """

    name: str
    kafka_conn_id: str
    schedule: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Clusters:
    """What the file says."""

    snapshots: str | None
    clusters: tuple[ClusterEntry, ...]


def read_clusters(otherwise: Path | None = None) -> Clusters:
    """The clusters of this installation.

    Args:
        otherwise: The file to read if none is configured; if that one is missing, there is just ``kafka_default``.

    Raises:
        ValueError: Something in the file is wrong.
    """
    file = clusters_file() or otherwise
    if file is None or (file == otherwise and not file.is_file()):
        return Clusters(SNAPSHOTS, (ClusterEntry("default", "kafka_default"),))
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: this is no YAML: {error}") from error
    try:
        return _clusters(document)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _clusters(document: object) -> Clusters:
    given = _mapping(document, "the file", "an object with clusters in it")
    if unknown := sorted(set(given) - {"snapshots", "clusters"}):
        raise ValueError(f"there is no {unknown[0]!r}: use snapshots and clusters")
    listed = _mapping(given.get("clusters"), "clusters", "an object with a name for each cluster")
    return Clusters(given.get("snapshots", SNAPSHOTS), tuple(_cluster(str(name), one) for name, one in listed.items()))


def _cluster(name: str, document: object) -> ClusterEntry:
    if not _NAME.fullmatch(name):
        raise ValueError(f"cluster {name!r}: a name has letters, digits, dashes and underscores")
    given = _mapping(document, f"cluster {name}", "an object with kafka_conn_id in it")
    conn_id, schedule = given.pop("kafka_conn_id", None), given.pop("schedule", None)
    quiet = given.pop("quiet_hours", None)
    if not isinstance(conn_id, str) or not conn_id:
        raise ValueError(f"cluster {name}: give kafka_conn_id, the name of an Airflow connection")
    if not isinstance(schedule, str | None):
        raise ValueError(f"cluster {name}: schedule cannot be {schedule!r}: give a cron expression, or snapshot")
    if quiet is not None:
        if "window" in given:
            raise ValueError(f"cluster {name}: give quiet_hours or window, not both")
        given["window"] = _window(name, str(quiet))
    if given.get("review") == "automatic" and given.get("max_bytes") is None:
        raise ValueError(f"cluster {name}: automatic review needs a limit in bytes: set max_bytes")
    fields = {**given, "kafka_conn_id": conn_id}
    try:
        rebalance_params(fields)
    except ValueError as error:
        raise ValueError(f"cluster {name}: {error}") from error
    return ClusterEntry(name, conn_id, schedule, fields)


def _window(name: str, quiet: str) -> str:
    """When moves may begin: outside the quiet hours."""
    hours = _HOURS.fullmatch(quiet.strip())
    if hours is None:
        raise ValueError(f"cluster {name}: quiet_hours cannot be {quiet!r}: write them as 07:00-20:00 Europe/Berlin")
    return f"{hours[2]}-{hours[1]}{hours[3] or ''}"


def _mapping(value: object, what: str, wanted: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {value!r}: give {wanted}")
    return {str(key): one for key, one in value.items()}
