"""A live cluster, through kafka-python's admin client, in this project's words.

kafka-python returns most errors instead of raising them, and leaves out of its answer what the broker did not mention.
Here a call either did what it says for every item, or raises a `ClusterError` that names the items.

It also may ask a broker that has just gone. Every request here can be made twice to the same effect, so one that failed
for a passing reason is made again, a few times, with growing pauses.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

import kafka
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    KafkaError,
    NoError,
    NoReassignmentInProgressError,
    ReplicaNotAvailableError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
    for_code,
)

from rebalance_lib.cluster.settings import check_settings
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import Broker, TopicPartition, by_topic

ATTEMPTS = 5  # of a request, some 3 seconds in all
NOT_ANSWERED = "not answered"
BATCH = 1000  # partitions in one request: small enough for any broker's request limits
# A setting that every resource of a kind shows: where it is missing, the answer is an error.
ALWAYS_SET = {ConfigResourceType.BROKER: "node.id", ConfigResourceType.TOPIC: "cleanup.policy"}
DYNAMIC = frozenset({"DYNAMIC_BROKER_CONFIG", "DYNAMIC_TOPIC_CONFIG"})


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the cluster says of a partition now; ``leader`` is None while there is none."""

    replicas: tuple[int, ...]
    in_sync: frozenset[int]
    leader: int | None
    internal: bool


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment under way."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas it ends with."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


class Replica(NamedTuple):
    """A replica of a partition, named as Kafka prints it: topic, partition and broker."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"


@dataclass(frozen=True, slots=True)
class ReplicaLogDir:
    """Where a broker keeps a replica, and where it is copying it to; None for neither."""

    current: str | None
    future: str | None


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A setting as it stands: its value and Kafka's name of the place it comes from."""

    value: str
    source: str

    @property
    def dynamic(self) -> bool:
        """Set on this very broker or topic, not inherited."""
        return self.source in DYNAMIC


class Cluster:
    """An open connection to one cluster; use it as a context manager.

    Args:
        settings: What kafka-python's clients take: ``bootstrap_servers`` at least, and security settings.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        check_settings(settings)
        self._settings = {"client_id": "kafka-rebalance", "bootstrap_timeout_ms": 10_000, **settings}
        self._admin = self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()

    def _connect(self) -> KafkaAdminClient:
        servers = self._settings.get("bootstrap_servers")
        try:
            return KafkaAdminClient(**self._settings)
        except (KafkaError, OSError) as error:
            message = f"cannot reach a Kafka cluster at {servers}: {type(error).__name__}: {error}"
            raise ClusterError(message) from error

    def _ask(self, what: str, request: str, *arguments: Any, **options: Any) -> Any:
        """Make a request of the admin client, again if it failed for a passing reason; else raise a `ClusterError`.

        A client that took a broker for the controller goes on asking it after it died: a new one asks anew.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return getattr(self._admin, request)(*arguments, **options)
            except KafkaError as error:
                passing = error.retriable or isinstance(error, UnknownBrokerIdError)
                if attempt == ATTEMPTS or not passing:
                    raise ClusterError(f"{what}: {type(error).__name__}: {error}") from error
            time.sleep(0.1 * 2**attempt)
            self._admin.close()
            self._admin = self._connect()
        raise AssertionError("unreachable")

    def describe(self) -> dict[str, Any]:
        """The cluster's id and all registered brokers, fenced ones marked, as kafka-python gives them."""
        return dict(self._ask("the cluster did not describe itself", "describe_cluster"))

    def cluster_id(self) -> str:
        """Kafka's id of the cluster."""
        return str(self.describe()["cluster_id"])

    def alive_brokers(self) -> dict[int, Broker]:
        """The brokers that are registered and not fenced."""
        return {
            entry["broker_id"]: Broker(entry["broker_id"], entry["rack"])
            for entry in self.describe()["brokers"]
            if not entry.get("is_fenced")
        }

    def partitions(self, topics: Iterable[str] | None = None) -> dict[TopicPartition, PartitionState]:
        """The state of every partition of these topics (of all, without names); unknown topics are left out."""
        names = None if topics is None else sorted(set(topics))
        if names == []:
            return {}
        described = self._ask("the cluster did not describe its topics", "describe_topics", names)
        for topic in described:
            if topic["error_code"] not in (NoError.errno, UnknownTopicOrPartitionError.errno):
                error = for_code(topic["error_code"])
                raise ClusterError(f"topic {topic['name']} could not be described: {error.__name__}")
        return {
            TopicPartition(topic["name"], entry["partition_index"]): PartitionState(
                replicas=tuple(entry["replica_nodes"]),
                in_sync=frozenset(entry["isr_nodes"]),
                leader=entry["leader_id"] if entry["leader_id"] >= 0 else None,
                internal=topic["is_internal"],
            )
            for topic in described
            for entry in topic["partitions"]
        }

    def log_dirs(self, broker: int, topics: Mapping[str, Sequence[int]] | None = None) -> list[dict[str, Any]]:
        """The log dirs of one broker with the sizes of their replicas, as kafka-python gives them.

        Args:
            broker: The broker to ask.
            topics: Partitions by topic, where only some are of interest.
        """
        what = f"broker {broker} did not describe its log dirs"
        answer = self._ask(what, "describe_log_dirs", topics, [broker])
        found = [log_dir for entry in answer for log_dir in entry["log_dirs"]]
        if not found:  # every broker has one: kafka-python drops the error that came instead
            raise ClusterError(f"{what}: is this user allowed to describe the cluster?")
        return found

    def replica_log_dirs(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> dict[Replica, ReplicaLogDir]:
        """The log dir of each replica (of these partitions) that these brokers hold, and of its copy under way."""
        wanted = None if partitions is None else by_topic(partitions)
        found: dict[Replica, ReplicaLogDir] = {}
        for broker in sorted(set(brokers)):
            for log_dir in self.log_dirs(broker, wanted):
                for entry in log_dir["topics"]:
                    for part in entry["partitions"]:
                        replica = Replica(entry["name"], part["partition_index"], broker)
                        here = "future" if part["is_future_key"] else "current"
                        found[replica] = replace(
                            found.get(replica, ReplicaLogDir(None, None)), **{here: log_dir["log_dir"]}
                        )
        return found

    def alter_replica_log_dirs(self, targets: Mapping[Replica, str]) -> list[Replica]:
        """Ask each broker to keep its replica in this log dir; returns the replicas that it does not hold yet.

        A broker that does not hold the replica notes the log dir, and puts the replica there if it comes.
        """
        answer: dict[Any, Any] = {}
        for broker in sorted({replica.broker for replica in targets}):
            request = {
                kafka.TopicPartitionReplica(*replica): log_dir
                for replica, log_dir in targets.items()
                if replica.broker == broker
            }
            what = f"broker {broker} did not take the log dirs of its replicas"
            answer |= self._ask(what, "alter_replica_log_dirs", request)
        errors = {replica: answer.get(kafka.TopicPartitionReplica(*replica)) for replica in targets}
        refused = {
            replica: "not answered" if error is None else error.__name__
            for replica, error in errors.items()
            if error not in (NoError, ReplicaNotAvailableError)
        }
        if refused:
            listed = ", ".join(f"{name} to {targets[name]}: {why}" for name, why in sorted(refused.items())[:10])
            raise ClusterError(f"Failed to alter dir for {listed}")
        return sorted(replica for replica, error in errors.items() if error is ReplicaNotAvailableError)

    def create_partitions(
        self, topic: str, total: int, assignment: Sequence[Sequence[int]], *, validate_only: bool = False
    ) -> None:
        """Give a topic more partitions, so that it has ``total``; ``assignment`` has the replicas of the new ones."""
        wanted = {topic: {"count": total, "assignments": [list(replicas) for replicas in assignment]}}
        what = f"the controller did not add partitions to {topic}"
        self._ask(what, "create_partitions", wanted, validate_only=validate_only)

    def reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Every reassignment under way, whoever started it."""
        listed = self._ask("the cluster did not list its reassignments", "list_partition_reassignments")
        return {
            TopicPartition(*partition): Reassignment(
                replicas=tuple(entry["replicas"]),
                adding=tuple(entry["adding_replicas"]),
                removing=tuple(entry["removing_replicas"]),
            )
            for partition, entry in listed.items()
        }

    def reassign(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        """Submit new replica lists; None cancels. Raises with every partition that the controller did not accept.

        All are submitted, whatever becomes of some. A cancel of what has just ended is done.
        """
        refused: dict[TopicPartition, str] = {}
        for batch in _batches(targets.items()):
            request = {
                kafka.TopicPartition(*partition): None if replicas is None else list(replicas)
                for partition, replicas in batch
            }
            what = "the controller did not take the reassignment"
            answer = self._ask(what, "alter_partition_reassignments", request)
            for partition, replicas in request.items():
                error = answer.get(partition, NOT_ANSWERED)
                ended = replicas is None and error is NoReassignmentInProgressError
                if error is not None and not ended:
                    refused[TopicPartition(*partition)] = error if isinstance(error, str) else error.__name__
        if refused:
            listed = ", ".join(f"{partition}: {reason}" for partition, reason in sorted(refused.items())[:10])
            raise ClusterError(f"the controller refused {len(refused)} of {len(targets)} partitions: {listed}")

    def broker_config(self, broker: int, keys: Sequence[str]) -> dict[str, ConfigValue]:
        """These settings of a broker, where they have a value."""
        return self._describe_config(ConfigResourceType.BROKER, str(broker), keys)

    def topic_config(self, topic: str, keys: Sequence[str]) -> dict[str, ConfigValue]:
        """These settings of a topic, where they have a value."""
        return self._describe_config(ConfigResourceType.TOPIC, topic, keys)

    def alter_broker_config(self, broker: int, changes: Mapping[str, str | None]) -> None:
        """Set these dynamic settings of one broker; None deletes."""
        self._alter_config(ConfigResourceType.BROKER, str(broker), changes)

    def alter_topic_config(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Set these settings of one topic; None deletes."""
        self._alter_config(ConfigResourceType.TOPIC, topic, changes)

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Make the first replica of each partition its leader, where it is in sync and not the leader already."""
        for batch in _batches(sorted(partitions)):
            what = "the controller did not elect preferred leaders"
            self._ask(what, "elect_leaders", 0, by_topic(batch), raise_errors=False)

    def _describe_config(self, kind: ConfigResourceType, name: str, keys: Sequence[str]) -> dict[str, ConfigValue]:
        what = f"the settings of {kind.name.lower()} {name} could not be read"
        always = ALWAYS_SET[kind]
        resource = ConfigResource(kind, name, [*keys, always])
        answer = self._ask(what, "describe_configs", [resource], config_filter="all")
        entries = answer[kind.name.lower()].get(name, {})
        if always not in entries:  # kafka-python drops the error that came instead
            raise ClusterError(f"{what}: is it there, and is this user allowed to describe its settings?")
        return {
            key: ConfigValue(entries[key]["value"], entries[key]["config_source"])
            for key in keys
            if key in entries and entries[key]["value"] not in (None, "")
        }

    def _alter_config(self, kind: ConfigResourceType, name: str, changes: Mapping[str, str | None]) -> None:
        if not changes:
            return
        operations = {key: ("DELETE", None) if value is None else ("SET", value) for key, value in changes.items()}
        what = f"the settings of {kind.name.lower()} {name} could not be changed"
        resource = ConfigResource(kind, name, operations)
        # Kafka does not list throttle rates among a broker's known settings until one is set.
        answer = self._ask(what, "alter_configs", [resource], raise_on_unknown=False)
        result = answer[kind.name.lower()].get(name, "not answered")
        if result != "OK":
            raise ClusterError(f"{kind.name.lower()} {name} did not take {dict(changes)}: {result}")


Item = TypeVar("Item")


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch
