"""The log dirs of brokers: what is in them, how much space is left, and where a broker is to keep a replica.

Only the broker itself knows. So these requests go to each broker concerned, at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafka.errors import NoError, ReplicaNotAvailableError, for_code
from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

from rebalance_lib.cluster.requests import ATTEMPTS, NOT_ANSWERED, Requests
from rebalance_lib.cluster.values import HeldReplica, LogDir, Replica, ReplicaLogDir
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import TopicPartition, by_topic

CORDONED_SINCE = 5  # version of the response; older ones do not have the field
NOT_ALTERED = "broker {broker} did not take the log dirs of its replicas"
NOT_DESCRIBED = "broker {broker} did not describe its log dirs"


class LogDirRequests(Requests):
    """Requests about log dirs."""

    def log_dirs(
        self, broker: int, partitions: Iterable[TopicPartition] | None = None, *, attempts: int = ATTEMPTS
    ) -> list[LogDir]:
        """The log dirs of one broker with the replicas in them.

        Args:
            broker: The broker that is asked.
            partitions: Those of interest, where it is not all.
            attempts: How often to try; a broker that hangs costs a request's whole time-out each time.
        """
        request = _describe_request(_topics(partitions))
        what = NOT_DESCRIBED.format(broker=broker)
        return _log_dirs(broker, self._request_broker(broker, what, request, attempts=attempts))

    def describe_log_dirs(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> dict[int, list[LogDir]]:
        """The log dirs of these brokers with the replicas in them; brokers that do not answer in time are left out.

        One that did not answer is left out without a request for `SILENT_SECONDS`.

        Args:
            brokers: The brokers that are asked, at the same time.
            partitions: Those of interest, where it is not all.

        Raises:
            ClusterError: A broker refuses, or no broker of the cluster can be reached.
        """
        return self._describe_log_dirs(brokers, partitions, skip_silent=True)[0]

    def replica_log_dirs(
        self,
        brokers: Iterable[int],
        partitions: Iterable[TopicPartition] | None = None,
        *,
        silent: set[int] | None = None,
    ) -> dict[Replica, ReplicaLogDir]:
        """The log dir of each replica (of these partitions) that these brokers hold, and of its copy under way.

        Args:
            brokers: The brokers that are asked, at the same time.
            partitions: Those of interest, where it is not all.
            silent: Takes the brokers that do not answer; without it, one that does not is an error.
        """
        described, unanswered = self._describe_log_dirs(brokers, partitions, skip_silent=silent is not None)
        if silent is None and unanswered:
            raise unanswered[min(unanswered)]
        if silent is not None:
            silent.update(unanswered)
        found: dict[Replica, ReplicaLogDir] = {}
        for broker, log_dirs in described.items():
            for log_dir in log_dirs:
                for held in log_dir.replicas:
                    replica = Replica(*held.partition, broker)
                    here = "future" if held.future else "current"
                    found[replica] = replace(found.get(replica, ReplicaLogDir(None, None)), **{here: log_dir.path})
        return found

    def alter_replica_log_dirs(self, targets: Mapping[Replica, str]) -> list[Replica]:
        """Have each broker keep its replica in this log dir; returns the replicas that it does not hold yet.

        A broker that does not hold the replica notes the log dir, and puts the replica there if it comes. All brokers
        concerned get their request, at the same time, whatever becomes of some.
        """
        responses = self._request_brokers(NOT_ALTERED, _alter_requests(targets), skip_silent=False)
        errors = {
            Replica(topic.topic_name, part.partition_index, broker): for_code(part.error_code)
            for broker, response in responses.received.items()
            for topic in response.results
            for part in topic.partitions
        }
        refused = {
            replica: error.__name__
            for replica, error in errors.items()
            if error not in (NoError, ReplicaNotAvailableError)
        }
        for replica in targets:
            if replica not in errors:
                refused[replica] = str(responses.missing.get(replica.broker, NOT_ANSWERED))
        if refused:
            listed = ", ".join(f"{name} to {targets[name]}: {why}" for name, why in sorted(refused.items())[:10])
            raise ClusterError(f"Failed to alter dir for {listed}")
        return sorted(replica for replica, error in errors.items() if error is ReplicaNotAvailableError)

    def _describe_log_dirs(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] | None, *, skip_silent: bool
    ) -> tuple[dict[int, list[LogDir]], dict[int, ClusterError]]:
        """The log dirs of the brokers that answered, and the errors of those that did not."""
        topics = _topics(partitions)
        requests = {broker: _describe_request(topics) for broker in sorted(set(brokers))}
        responses = self._request_brokers(NOT_DESCRIBED, requests, skip_silent=skip_silent)
        received = responses.received_or_silent()
        return {broker: _log_dirs(broker, received[broker]) for broker in sorted(received)}, responses.missing


def _topics(partitions: Iterable[TopicPartition] | None) -> list[tuple[str, list[int]]] | None:
    return None if partitions is None else list(by_topic(sorted(partitions)).items())


def _describe_request(topics: list[tuple[str, list[int]]] | None) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=topics)


def _alter_requests(targets: Mapping[Replica, str]) -> dict[int, AlterReplicaLogDirsRequest]:
    """For each broker a request with its own replicas, by log dir."""
    paths: dict[int, dict[str, list[TopicPartition]]] = {}
    for replica, path in sorted(targets.items()):
        partition = TopicPartition(replica.topic, replica.partition)
        paths.setdefault(replica.broker, {}).setdefault(path, []).append(partition)
    return {
        broker: AlterReplicaLogDirsRequest(dirs=[(path, list(by_topic(own).items())) for path, own in held.items()])
        for broker, held in paths.items()
    }


def _log_dirs(broker: int, response: Any) -> list[LogDir]:
    if not response.results:  # every broker has one: older ones send no error with it
        error = for_code(response.error_code or 0)
        reason = "" if error is NoError else f"{error.__name__}: "
        hint = "is this user allowed to describe the cluster?"
        raise ClusterError(f"{NOT_DESCRIBED.format(broker=broker)}: {reason}{hint}")
    knows_cordoned = response.API_VERSION >= CORDONED_SINCE
    return [_log_dir(result, knows_cordoned) for result in response.results]


def _log_dir(result: Any, knows_cordoned: bool) -> LogDir:
    return LogDir(
        path=result.log_dir,
        online=result.error_code == NoError.errno,
        total_bytes=_known(result.total_bytes),
        usable_bytes=_known(result.usable_bytes),
        replicas=[
            HeldReplica(TopicPartition(topic.name, part.partition_index), part.partition_size, part.is_future_key)
            for topic in result.topics
            for part in topic.partitions
        ],
        cordoned=bool(result.is_cordoned) if knows_cordoned else None,
    )


def _known(value: int | None) -> int | None:
    return None if value is None or value < 0 else value
