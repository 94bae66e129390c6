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

It is checked when it is read: an error names the file, the cluster and the field. What is wrong in one entry has no
effect on the others, and none on runs that are under way: the cluster keeps its snapshots and its DAG, without a
schedule, and new runs are refused (`ClusterEntry.problem`). `check_clusters` makes an import error of it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from airflow.sdk import CronTriggerTimetable

from kafka_rebalance_airflow.cluster_blocks import BadBlockError, Entries, compose, construct
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
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ClusterEntry:
    """One cluster of the file.

    Args:
        name: how people call it; part of the ids of its DAG and tasks.
        kafka_conn_id: its connection; empty only where the entry is wrong.
        schedule: when it is rebalanced: a cron expression, ``snapshot``, or None.
        fields: defaults for the form, all checked.
        of_brokers: ``capacities`` and ``broker_sets``, those that are given, checked as far as they can be without the
            cluster; JSON can hold it.
        spark: what Spark jobs about it are given, checked.
        problem: what is wrong with the entry. It then has no schedule, and of its values those that can be read.
    """

    name: str
    kafka_conn_id: str
    schedule: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    of_brokers: Mapping[str, Any] = field(default_factory=dict)
    spark: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Clusters:
    """What the file says.

    ``spark`` is what all Spark jobs are given, ``approval`` who may approve plans, None if that cannot be told, and
    ``problem`` what is wrong beside the entries.
    """

    snapshots: str | None
    clusters: tuple[ClusterEntry, ...]
    spark: Mapping[str, Any] = field(default_factory=dict)
    approval: ApprovalPolicies | None = field(default_factory=ApprovalPolicies)
    problem: str = ""

    def problems(self) -> list[str]:
        """All that is wrong with the file."""
        return [problem for problem in (self.problem, *(one.problem for one in self.clusters)) if problem]

    def connected(self) -> list[ClusterEntry]:
        """The clusters that have a connection, as all but wrong entries do."""
        return [one for one in self.clusters if one.kafka_conn_id]

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
        ValueError: The file cannot be read, or has no clusters. What else is wrong is noted where it is.
    """
    file = clusters_file() or otherwise
    if file is None or (file == otherwise and not file.is_file()):
        return Clusters(SNAPSHOTS, (ClusterEntry("default", "kafka_default"),))
    try:
        found = _clusters(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    for problem in found.problems():
        log.warning("%s: %s", file, problem)
    return replace(
        found,
        problem=found.problem and f"{file}: {found.problem}",
        clusters=tuple(replace(one, problem=one.problem and f"{file}: {one.problem}") for one in found.clusters),
    )


def check_clusters(otherwise: Path | None = None) -> None:
    """Raise ValueError with all that is wrong in the file of clusters, as `read_clusters` finds it."""
    if problems := read_clusters(otherwise).problems():
        raise ValueError("\n".join(problems))


def _clusters(text: str) -> Clusters:
    file, entries, problem = compose(text)
    wrong: list[str] = [problem] if problem else []

    def tried(read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except ValueError as error:
            wrong.append(str(error))
            return otherwise

    if file is not None and not isinstance(file, yaml.MappingNode):
        _mapping(construct(file), "the file", "an object with clusters in it")
    given = tried(lambda: _beside_entries(file, entries), {})
    if unknown := sorted(set(given) - {"snapshots", "spark", "approval", "clusters"}):
        wrong.append(f"there is no {unknown[0]!r}: use snapshots, spark, approval and clusters")
    if not entries:
        if wrong:
            raise ValueError("; ".join(wrong))
        _mapping(given.get("clusters"), "clusters", "an object with a name for each cluster")
    snapshots = tried(lambda: _schedule("snapshots", given.get("snapshots", SNAPSHOTS)), SNAPSHOTS)
    spark = tried(lambda: checked(given.get("spark")), {})
    # What is wrong beside the entries, or no YAML, may hide the policies, or a part of them.
    is_whole = not wrong and not any(isinstance(node, BadBlockError) for _, node in entries)
    approval = tried(lambda: _approval(given), None) if is_whole else None
    found: dict[str, ClusterEntry] = {}
    for name, node in entries:
        if not _NAME.fullmatch(name):
            wrong.append(f"cluster {name!r}: a name has letters, digits, dashes and underscores")
        elif name in found:
            found[name] = replace(found[name], schedule=None, problem=f"clusters: {name} is there twice: keep one")
        else:
            found[name] = _cluster(name, node, list(found.values()))
    return Clusters(snapshots, tuple(found.values()), spark, approval, "; ".join(wrong))


def _approval(given: dict[str, Any]) -> ApprovalPolicies:
    """The approval policies, which the key alone calls for: one that is empty was meant to say something."""
    try:
        return ApprovalPolicies.from_dict(given["approval"]) if "approval" in given else ApprovalPolicies()
    except InvalidInputError as error:
        raise ValueError(str(error)) from error


def _cluster(name: str, node: yaml.Node | BadBlockError, others: list[ClusterEntry]) -> ClusterEntry:
    """The entry of a cluster; one that is wrong as far as it can be read."""
    given: dict[str, Any] = {}
    try:
        if isinstance(node, BadBlockError):
            given = {"kafka_conn_id": node.kafka_conn_id}
            raise node
        given = _mapping(construct(node), "it", "an object with kafka_conn_id in it")
        _check_keys(node, "")
        entry = _entry(name, dict(given))
        _refuse_both(entry, [one for one in others if entry.of_brokers and one.of_brokers], "says it of its brokers")
        _refuse_both(entry, [one for one in others if entry.spark and one.spark], "has spark")
    except ValueError as error:
        return _wrong_entry(name, given, f"cluster {name}: {error}", others)
    return entry


def _wrong_entry(name: str, given: dict[str, Any], problem: str, others: list[ClusterEntry]) -> ClusterEntry:
    """What runs under way and snapshots need of an entry that is wrong.

    What it says of brokers stays, wrong or not: a snapshot for a plan is refused by it, rather than taken without it.
    """
    conn_id = given.get("kafka_conn_id")
    conn_id = conn_id if isinstance(conn_id, str) else ""
    fields = {}
    for key, value in given.items():
        try:
            rebalance_params({key: value})
        except ValueError:
            continue
        fields[key] = value
    said = {key: given[key] for key in ("capacities", "broker_sets") if given.get(key) is not None}
    if any(one.kafka_conn_id == conn_id and one.of_brokers for one in others):
        said = {}
    return ClusterEntry(name, conn_id, None, fields, json.loads(json.dumps(said, default=str)), {}, problem)


def _refuse_both(entry: ClusterEntry, others: list[ClusterEntry], what: str) -> None:
    """A job that is about a connection could not tell whose words count."""
    for other in others:
        if other.kafka_conn_id == entry.kafka_conn_id:
            raise ValueError(f"{other.name} has the same kafka_conn_id and {what}: once")


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


def _beside_entries(file: yaml.Node | None, entries: Entries) -> dict[str, Any]:
    """What the file says beside the entries. YAML itself takes the last one of equal keys, and tells nobody."""
    found = {}
    for key, value in _keys(file, ""):
        if key in ("spark", "approval"):
            _check_keys(value, f"{key}: ")
        if key != "clusters" or not entries:
            found[key] = construct(value)
    return found


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
