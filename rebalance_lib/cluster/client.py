"""A live cluster, through kafka-python's admin client, in this project's words.

kafka-python returns most errors instead of raising them, and leaves out of its answer what the broker did not mention.
Here a call either did what it says for every item, or raises a `ClusterError` that names the items.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import kafka
from kafka.errors import (
    ElectionNotNeededError,
    NoError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
    for_code,
)

from rebalance_lib.cluster.configs import ConfigRequests
from rebalance_lib.cluster.log_dirs import LogDirRequests
from rebalance_lib.cluster.offsets import RETRY_MS, Offsets, is_silence, list_offsets
from rebalance_lib.cluster.requests import ATTEMPTS, NOT_ANSWERED, batches
from rebalance_lib.cluster.values import PartitionMetadata, Reassignment, RefusedError
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import Broker, TopicPartition, by_topic

NEEDED_ON_CLUSTER = frozenset({"DESCRIBE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
NEEDED_ON_TOPICS = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})


class Cluster(ConfigRequests, LogDirRequests):
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

    def create_partitions(
        self, topic: str, total: int, assignment: Sequence[Sequence[int]], *, validate_only: bool = False
    ) -> None:
        """Give a topic more partitions, so that it has ``total``; ``assignment`` has the replicas of the new ones."""
        wanted = {topic: {"count": total, "assignments": [list(replicas) for replicas in assignment]}}
        what = f"the controller did not add partitions to {topic}"
        self._ask(what, "create_partitions", wanted, validate_only=validate_only)

    def reassignments(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, Reassignment]:
        """The reassignments under way (of these partitions), whoever started them."""
        wanted = None if partitions is None else by_topic(sorted(partitions))
        if wanted == {}:
            return {}
        what = "the cluster did not list its reassignments"
        listed = self._ask(what, "list_partition_reassignments", wanted)
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
        for batch in batches(targets.items()):
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

    def offsets(self, leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offsets]:
        """Start and end offset of these partitions, requested of their leaders.

        Left out is what no leader answered; one that has just not answered gets no request.
        """

        def ask(wanted: dict[Any, Any]) -> dict[Any, Any]:
            what = "the leaders did not list offsets"
            return dict(self._ask(what, "list_partition_offsets", wanted, passing=is_silence, timeout_ms=RETRY_MS))

        return list_offsets(ask, {tp: leader for tp, leader in leaders.items() if not self._is_silent(leader)})

    def coordinated_groups(self, broker: int) -> list[dict[str, Any]]:
        """The groups of any kind that this broker coordinates, as kafka-python lists them."""
        return list(self._ask(f"broker {broker} did not list its groups", "list_groups", [broker]))

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Make the first replica of each partition its leader, where it is in sync and not the leader already.

        Returns:
            The partitions where the controller did not, with its reason.
        """
        refused: dict[TopicPartition, str] = {}
        for batch in batches(sorted(partitions)):
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


def _allowed(described: Mapping[str, Any]) -> frozenset[str]:
    operations = described.get("authorized_operations")
    return NEEDED_ON_CLUSTER if operations is None else frozenset(operations)


def _topic_id(described: Mapping[str, Any]) -> str:
    """A topic's id as Kafka prints it, 22 characters of URL-safe base64; empty where brokers are too old for ids."""
    found = UUID(str(described.get("topic_id") or UUID(int=0)))
    return urlsafe_b64encode(found.bytes).rstrip(b"=").decode() if found.int else ""
