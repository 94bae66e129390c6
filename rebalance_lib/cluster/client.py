"""A live cluster, through kafka-python's admin client, in this project's words.

kafka-python returns most errors instead of raising them, and leaves out of its answer what the broker did not mention.
Here a call either did what it says for every item, or raises a `ClusterError` that names the items.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import kafka
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    ElectionNotNeededError,
    NoError,
    NoReassignmentInProgressError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
    for_code,
)

from rebalance_lib.cluster.offsets import RETRY_MS, Offsets, is_silence, list_offsets
from rebalance_lib.cluster.requests import ATTEMPTS, Requests, SilentError
from rebalance_lib.cluster.values import (
    Change,
    ConfigValue,
    Entries,
    HeldReplica,
    LogDir,
    PartitionMetadata,
    Reassignment,
    RefusedError,
    Replica,
    ReplicaLogDir,
)
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import Broker, TopicPartition, by_topic

NOT_ANSWERED = "not answered"
TOPICS_AT_ONCE = 50  # in a request that changes their settings: a list of throttled replicas may be long
BATCH = 1000  # partitions in one request: small enough for any broker's request limits
# A setting that every resource of a kind shows: where it is missing, the answer is an error.
ALWAYS_SET = {ConfigResourceType.BROKER: "node.id", ConfigResourceType.TOPIC: "cleanup.policy"}
NEEDED_ON_CLUSTER = frozenset({"DESCRIBE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
NEEDED_ON_TOPICS = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})


class Cluster(Requests):
    """An open connection to one cluster; use it as a context manager."""

    def describe(self) -> dict[str, Any]:
        """The cluster's id and all registered brokers, fenced ones marked, as kafka-python gives them."""
        return dict(self._ask("the cluster did not describe itself", "describe_cluster"))

    def kafka_version(self) -> str:
        """The release of Kafka that the brokers' requests tell, such as ``4.3``."""
        return ".".join(str(part) for part in self._network.get_broker_version())

    def cluster_id(self) -> str:
        """Kafka's id of the cluster."""
        return str(self.describe()["cluster_id"])

    def missing_operations(self, topics: Iterable[str] | None = None) -> list[str]:
        """What this user may not do of what a rebalance needs, as Kafka names it; nothing where Kafka does not tell.

        Args:
            topics: Those of interest; all that this user is shown, without names.
        """
        missing = [f"{name} on the cluster" for name in NEEDED_ON_CLUSTER - _allowed(self.describe())]
        names = None if topics is None else sorted(set(topics))
        what = "the cluster did not describe its topics"
        described = [] if names == [] else self._ask(what, "describe_topics", names)
        for topic in described:
            missing += [f"{name} on topic {topic['name']}" for name in NEEDED_ON_TOPICS - _allowed(topic)]
        return sorted(missing)

    def alive_brokers(self) -> dict[int, Broker]:
        """The brokers that are registered and not fenced."""
        return {
            entry["broker_id"]: Broker(entry["broker_id"], entry["rack"])
            for entry in self.describe()["brokers"]
            if not entry.get("is_fenced")
        }

    def registered_brokers(self) -> frozenset[int]:
        """The brokers that are registered, fenced ones included."""
        return frozenset(int(entry["broker_id"]) for entry in self.describe()["brokers"])

    def partitions(self, topics: Iterable[str] | None = None) -> dict[TopicPartition, PartitionMetadata]:
        """The state of every partition of these topics (of all, without names); unknown topics are left out."""
        names = None if topics is None else sorted(set(topics))
        if names == []:
            return {}
        described = self._ask("the cluster did not describe its topics", "describe_topics", names)
        for topic in described:
            if topic["error_code"] not in (NoError.errno, UnknownTopicOrPartitionError.errno):
                error = for_code(topic["error_code"])
                raise ClusterError(f"topic {topic['name']} could not be described: {error.__name__}")
        ids = {topic["name"]: _topic_id(topic) for topic in described}
        return {
            TopicPartition(topic["name"], entry["partition_index"]): PartitionMetadata(
                replicas=tuple(entry["replica_nodes"]),
                in_sync=frozenset(entry["isr_nodes"]),
                leader=entry["leader_id"] if entry["leader_id"] >= 0 else None,
                internal=topic["is_internal"],
                topic_id=ids[topic["name"]],
            )
            for topic in described
            for entry in topic["partitions"]
        }

    def log_dirs(
        self, broker: int, partitions: Iterable[TopicPartition] | None = None, *, attempts: int = ATTEMPTS
    ) -> list[LogDir]:
        """The log dirs of one broker with the replicas in them.

        Args:
            broker: The broker to ask.
            partitions: Those of interest, where it is not all.
            attempts: How often to ask; a broker that hangs costs a request's whole time-out each time.
        """
        what = f"broker {broker} did not describe its log dirs"
        wanted = None if partitions is None else by_topic(sorted(partitions))
        answer = self._ask_itself(broker, what, "describe_log_dirs", wanted, [broker], attempts=attempts)
        found = [_log_dir(entry) for one in answer for entry in one["log_dirs"]]
        if not found:  # every broker has one: kafka-python drops the error that came instead
            raise ClusterError(f"{what}: is this user allowed to describe the cluster?")
        return found

    def replica_log_dirs(
        self,
        brokers: Iterable[int],
        partitions: Iterable[TopicPartition] | None = None,
        *,
        silent: set[int] | None = None,
    ) -> dict[Replica, ReplicaLogDir]:
        """The log dir of each replica (of these partitions) that these brokers hold, and of its copy under way.

        Args:
            brokers: The brokers to ask.
            partitions: Those of interest, where it is not all.
            silent: Takes the brokers that do not answer; without it, one that does not is an error.
        """
        wanted = None if partitions is None else list(partitions)
        found: dict[Replica, ReplicaLogDir] = {}
        for broker in sorted(set(brokers)):
            try:
                log_dirs = self.log_dirs(broker, wanted, attempts=ATTEMPTS if silent is None else 2)
            except SilentError:
                if silent is None:
                    raise
                silent.add(broker)
                continue
            for log_dir in log_dirs:
                for held in log_dir.replicas:
                    replica = Replica(*held.partition, broker)
                    here = "future" if held.future else "current"
                    found[replica] = replace(found.get(replica, ReplicaLogDir(None, None)), **{here: log_dir.path})
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

    def reassign(self, targets: Mapping[TopicPartition, Sequence[int] | None], *, attempts: int = ATTEMPTS) -> None:
        """Submit new replica lists; None cancels.

        All are submitted, whatever becomes of some. A cancel of what has just ended is done. With one attempt, no list
        is sent twice: after a lost response, list the reassignments before you submit again.

        Raises:
            RefusedError: The controller did not accept some partitions.
            ClusterError: There was no response; the controller may have accepted the request or not.
        """
        refused: dict[TopicPartition, str] = {}
        for batch in _batches(targets.items()):
            request = {
                kafka.TopicPartition(*partition): None if replicas is None else list(replicas)
                for partition, replicas in batch
            }
            what = "the controller did not take the reassignment"
            answer = self._ask(what, "alter_partition_reassignments", request, attempts=attempts)
            for partition, replicas in request.items():
                error = answer.get(partition, NOT_ANSWERED)
                ended = replicas is None and error is NoReassignmentInProgressError
                if error is not None and not ended:
                    refused[TopicPartition(*partition)] = error if isinstance(error, str) else error.__name__
        if refused:
            listed = ", ".join(f"{partition}: {reason}" for partition, reason in sorted(refused.items())[:10])
            raise RefusedError(f"the controller refused {len(refused)} of {len(targets)} partitions: {listed}", refused)

    def broker_config(self, broker: int, keys: Sequence[str], *, attempts: int = ATTEMPTS) -> dict[str, ConfigValue]:
        """These settings of a broker, where they have a value; it is asked so often, as for its log dirs."""
        return self._describe_configs(ConfigResourceType.BROKER, [str(broker)], keys, attempts=attempts)[str(broker)]

    def topic_config(self, topic: str, keys: Sequence[str]) -> dict[str, ConfigValue]:
        """These settings of a topic, where they have a value."""
        return self._describe_configs(ConfigResourceType.TOPIC, [topic], keys)[topic]

    def topic_configs(self, topics: Iterable[str], keys: Sequence[str]) -> dict[str, dict[str, ConfigValue]]:
        """These settings of each topic, where they have a value; topics that are gone are left out."""
        found: dict[str, dict[str, ConfigValue]] = {}
        for batch in _batches(sorted(set(topics))):
            found |= self._describe_configs(ConfigResourceType.TOPIC, batch, keys, lenient=True)
        return found

    def alter_broker_config(self, broker: int, changes: Mapping[str, Change]) -> None:
        """Set these dynamic settings of one broker; None deletes."""
        self._alter_configs(ConfigResourceType.BROKER, {str(broker): changes})

    def alter_topic_config(self, topic: str, changes: Mapping[str, Change]) -> None:
        """Set these settings of one topic; None deletes."""
        self._alter_configs(ConfigResourceType.TOPIC, {topic: changes})

    def alter_topic_configs(self, changes: Mapping[str, Mapping[str, Change]]) -> None:
        """Set settings of many topics; None deletes. All are asked for, whatever becomes of some."""
        self._alter_configs(ConfigResourceType.TOPIC, changes)

    def offsets(self, leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offsets]:
        """Start and end offset of these partitions, asked of their leaders; what no leader told is left out."""

        def ask(wanted: dict[Any, Any]) -> dict[Any, Any]:
            what = "the leaders did not list offsets"
            return dict(self._ask(what, "list_partition_offsets", wanted, passing=is_silence, timeout_ms=RETRY_MS))

        return list_offsets(ask, leaders)

    def coordinated_groups(self, broker: int) -> list[dict[str, Any]]:
        """The groups of any kind that this broker coordinates, as kafka-python lists them."""
        return list(self._ask(f"broker {broker} did not list its groups", "list_groups", [broker]))

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Make the first replica of each partition its leader, where it is in sync and not the leader already.

        Returns:
            The partitions where the controller did not, with its reason.
        """
        refused: dict[TopicPartition, str] = {}
        for batch in _batches(sorted(partitions)):
            what = "the controller did not elect preferred leaders"
            answer = self._ask(what, "elect_leaders", 0, by_topic(batch), raise_errors=False)
            if (error := for_code(getattr(answer, "error_code", 0))) is not NoError:
                raise ClusterError(f"{what}: {error.__name__}")
            for result in answer.replica_election_results:
                for one in result.partition_result:
                    error = for_code(one.error_code)
                    if error not in (NoError, ElectionNotNeededError):
                        refused[TopicPartition(result.topic, one.partition_id)] = error.__name__
        return refused

    def _describe_configs(
        self,
        kind: ConfigResourceType,
        names: Sequence[str],
        keys: Sequence[str],
        *,
        lenient: bool = False,
        attempts: int = ATTEMPTS,
    ) -> dict[str, dict[str, ConfigValue]]:
        what = f"the settings of {kind.name.lower()} {names[0]} could not be read"
        always = ALWAYS_SET[kind]
        resources = [ConfigResource(kind, name, [*keys, always]) for name in names]
        if kind is ConfigResourceType.BROKER:
            asked = self._ask_itself(
                int(names[0]), what, "describe_configs", resources, config_filter="all", attempts=attempts
            )
        else:
            asked = self._ask(what, "describe_configs", resources, config_filter="all")
        answer = asked[kind.name.lower()]
        # Kafka-python drops the error of a resource: then not even the setting that all of them have is there.
        missing = [name for name in names if always not in answer.get(name, {})]
        if missing and not lenient:
            raise ClusterError(f"{what}: is it there, and is this user allowed to describe its settings?")
        return {
            name: {
                key: ConfigValue(answer[name][key]["value"], answer[name][key]["config_source"])
                for key in keys
                if key in answer[name] and answer[name][key]["value"] not in (None, "")
            }
            for name in names
            if name not in missing
        }

    def _alter_configs(self, kind: ConfigResourceType, changes: Mapping[str, Mapping[str, Change]]) -> None:
        refused: dict[str, str] = {}
        for batch in _batches(((name, wanted) for name, wanted in changes.items() if wanted), TOPICS_AT_ONCE):
            resources = [
                ConfigResource(kind, name, {key: _operation(change) for key, change in wanted.items()})
                for name, wanted in batch
            ]
            what = f"the settings of {kind.name.lower()} {batch[0][0]} could not be changed"
            # Kafka does not list throttle rates among a broker's known settings until one is set.
            answer = self._ask(what, "alter_configs", resources, raise_on_unknown=False)[kind.name.lower()]
            refused |= {name: answer.get(name, NOT_ANSWERED) for name, _ in batch if answer.get(name) != "OK"}
        if refused:
            listed = "; ".join(f"{kind.name.lower()} {name}: {why}" for name, why in sorted(refused.items())[:10])
            raise ClusterError(f"settings were not taken by {listed}")


def _allowed(described: Mapping[str, Any]) -> frozenset[str]:
    operations = described.get("authorized_operations")
    return NEEDED_ON_CLUSTER if operations is None else frozenset(operations)


def _topic_id(described: Mapping[str, Any]) -> str:
    """A topic's id as Kafka prints it, 22 characters of URL-safe base64; empty where brokers are too old for ids."""
    found = UUID(str(described.get("topic_id") or UUID(int=0)))
    return urlsafe_b64encode(found.bytes).rstrip(b"=").decode() if found.int else ""


def _operation(change: Change) -> tuple[str, str | None]:
    if change is None:
        return ("DELETE", None)
    if isinstance(change, Entries):
        return ("SUBTRACT" if change.out else "APPEND", ",".join(change.values))
    return ("SET", change)


def _log_dir(entry: Mapping[str, Any]) -> LogDir:
    return LogDir(
        path=entry["log_dir"],
        online=entry["error_code"] == NoError.errno,
        total_bytes=_known(entry.get("total_bytes")),
        usable_bytes=_known(entry.get("usable_bytes")),
        replicas=[
            HeldReplica(
                TopicPartition(topic["name"], part["partition_index"]), part["partition_size"], part["is_future_key"]
            )
            for topic in entry["topics"]
            for part in topic["partitions"]
        ],
    )


def _known(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


Item = TypeVar("Item")


def _batches(items: Iterable[Item], size: int = BATCH) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
