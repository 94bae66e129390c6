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
        capacities:                     # what brokers can take, see `rebalance_lib.topology.capacities`
          default: {network_in: 1_250_000_000, network_out: 1_250_000_000}
        broker_sets:
          payments: [1, 2, 3]
        spark: {executor_memory_overhead: 6g}   # for this cluster's jobs, see `spark`
    spark: {num_executors: 4}           # for the jobs of all clusters
    approval:                           # who may approve plans, see `rebalance_lib.approval.policy`
      default: {approvers: [anna, ben], approvals: 2}

It is checked when it is read: an error names the file, the cluster and the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from airflow.sdk import CronTriggerTimetable

from kafka_rebalance_airflow.config import clusters_file
from kafka_rebalance_airflow.fields import check_horizon, rebalance_params
from kafka_rebalance_airflow.spark import checked
from rebalance_lib.approval.policy import ApprovalPolicies
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.window import Window

SNAPSHOTS = "*/5 * * * *"
AFTER_SNAPSHOT = "snapshot"
_NO_CRON = ("@once", "@continuous")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True)
class ClusterEntry:
    """One cluster of the file.

    Args:
        name: how people call it; part of the ids of its DAG and tasks.
        kafka_conn_id: its connection.
        schedule: when it is rebalanced: a cron expression, ``snapshot``, or None.
        fields: defaults for the form, all checked.
        of_brokers: ``capacities`` and ``broker_sets``, those that are given, checked as far as they can be without the
            cluster; JSON can hold it.
        spark: what Spark jobs about it are given, checked.
    """

    name: str
    kafka_conn_id: str
    schedule: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    of_brokers: Mapping[str, Any] = field(default_factory=dict)
    spark: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Clusters:
    """What the file says; ``spark`` is what all Spark jobs are given, ``approval`` who may approve plans."""

    snapshots: str | None
    clusters: tuple[ClusterEntry, ...]
    spark: Mapping[str, Any] = field(default_factory=dict)
    approval: ApprovalPolicies = field(default_factory=ApprovalPolicies)

    def brokers_by_connection(self) -> dict[str, dict[str, Any]]:
        """By connection what is said of the cluster's brokers, where anything is."""
        return {one.kafka_conn_id: dict(one.of_brokers) for one in self.clusters if one.of_brokers}

    def spark_by_connection(self) -> dict[str, dict[str, Any]]:
        """By connection what Spark jobs about the cluster are given, where the file says so."""
        return {one.kafka_conn_id: dict(one.spark) for one in self.clusters if one.spark}


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
        text = file.read_text(encoding="utf-8")
        document, node = yaml.safe_load(text), yaml.compose(text, yaml.SafeLoader)
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: this is no YAML: {error}") from error
    try:
        _refuse_twice(node)
        return _clusters(document)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _clusters(document: object) -> Clusters:
    given = _mapping(document, "the file", "an object with clusters in it")
    if unknown := sorted(set(given) - {"snapshots", "spark", "approval", "clusters"}):
        raise ValueError(f"there is no {unknown[0]!r}: use snapshots, spark, approval and clusters")
    listed = _mapping(given.get("clusters"), "clusters", "an object with a name for each cluster")
    snapshots = _schedule("snapshots", given.get("snapshots", SNAPSHOTS))
    found = tuple(_cluster(str(name), one) for name, one in listed.items())
    _refuse_both([one for one in found if one.of_brokers], "says it of its brokers")
    _refuse_both([one for one in found if one.spark], "has spark")
    return Clusters(snapshots, found, checked(given.get("spark")), _approval(given))


def _approval(given: dict[str, Any]) -> ApprovalPolicies:
    """The approval policies, which the key alone calls for: one that is empty was meant to say something."""
    try:
        return ApprovalPolicies.from_dict(given["approval"]) if "approval" in given else ApprovalPolicies()
    except InvalidInputError as error:
        raise ValueError(str(error)) from error


def _refuse_both(clusters: list[ClusterEntry], what: str) -> None:
    """A job that is about a connection could not tell whose words count."""
    said: dict[str, str] = {}
    for one in clusters:
        if (other := said.setdefault(one.kafka_conn_id, one.name)) != one.name:
            raise ValueError(f"cluster {one.name}: {other} has the same kafka_conn_id and {what}: once")


def _cluster(name: str, document: object) -> ClusterEntry:
    if not _NAME.fullmatch(name):
        raise ValueError(f"cluster {name!r}: a name has letters, digits, dashes and underscores")
    given = _mapping(document, f"cluster {name}", "an object with kafka_conn_id in it")
    try:
        return _entry(name, given)
    except ValueError as error:
        raise ValueError(f"cluster {name}: {error}") from error


def _entry(name: str, given: dict[str, Any]) -> ClusterEntry:
    conn_id, quiet = given.pop("kafka_conn_id", None), given.pop("quiet_hours", None)
    if not isinstance(conn_id, str) or not conn_id:
        raise ValueError("give kafka_conn_id, the name of an Airflow connection")
    schedule = given.pop("schedule", None)
    if schedule != AFTER_SNAPSHOT:
        schedule = _schedule("schedule", schedule)
    if quiet is not None:
        if "window" in given:
            raise ValueError("give quiet_hours or window, not both")
        hours = _hours("quiet_hours", quiet)
        given["window"] = str(Window(hours.end, hours.begin, hours.zone))
    of_brokers, spark = _of_brokers(given), checked(given.pop("spark", None))
    fields = {**given, "kafka_conn_id": conn_id}
    values = {field: param.value for field, param in rebalance_params(fields).items()}
    if values["window"]:
        _hours("window", values["window"])
    throttle, ceiling = values["throttle"], values["throttle_ceiling"]
    if throttle and ceiling and ceiling < throttle:
        raise ValueError(f"throttle_ceiling cannot be {ceiling}: it is below the throttle of {throttle}")
    check_horizon(values)
    if values["review"] == "automatic" and values["max_bytes"] is None:
        raise ValueError("automatic review needs a limit in bytes: set max_bytes")
    return ClusterEntry(name, conn_id, schedule, fields, of_brokers, spark)


def _of_brokers(given: dict[str, Any]) -> dict[str, Any]:
    """Take the sections about brokers out of an entry, checked."""
    said = {name: given.pop(name, None) for name in ("capacities", "broker_sets")}
    if all(section is None for section in said.values()):
        return {}
    from rebalance_lib.topology import BrokerSets, Capacities  # brings Arrow, which most files do not need

    try:
        Capacities.from_dict(said["capacities"])
        BrokerSets.from_dict(said["broker_sets"])
    except InvalidInputError as error:
        raise ValueError(str(error)) from error
    # Ids become text: an operator's arguments are JSON.
    return {name: json.loads(json.dumps(section)) for name, section in said.items() if section is not None}


def _schedule(field: str, schedule: object) -> str | None:
    if schedule is None:
        return None
    if not isinstance(schedule, str):
        raise ValueError(f"{field} cannot be {schedule!r}: give a cron expression as text")
    if schedule not in _NO_CRON:
        try:
            CronTriggerTimetable(schedule, timezone="UTC").validate()
        except Exception as error:
            raise ValueError(f"{field} cannot be {schedule!r}: it is no cron expression ({error})") from error
    return schedule


def _hours(field: str, text: object) -> Window:
    try:
        return Window.parse(str(text))
    except InvalidInputError as error:
        raise ValueError(f"{field} cannot be {text!r}: {error}") from error


def _refuse_twice(file: yaml.Node | None) -> None:
    """YAML itself takes the last one of equal keys, and tells nobody."""
    for key, value in _keys(file, ""):
        if key in ("spark", "approval"):
            _check_keys(value, f"{key}: ")
        if key == "clusters":
            for name, cluster in _keys(value, "clusters: "):
                _check_keys(cluster, f"cluster {name}: ")


def _check_keys(node: yaml.Node, where: str) -> None:
    for key, value in _keys(node, where):
        _check_keys(value, f"{where}{key}: ")


def _keys(node: yaml.Node | None, where: str) -> list[tuple[str, yaml.Node]]:
    """The keys of an object, none of them twice, with their values."""
    found: dict[str, yaml.Node] = {}
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if str(key.value) in found:
            raise ValueError(f"{where}{key.value} is there twice, in line {key.start_mark.line + 1} again: keep one")
        found[str(key.value)] = value
    return list(found.items())


def _mapping(value: object, what: str, wanted: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {value!r}: give {wanted}")
    return {str(key): one for key, one in value.items()}
