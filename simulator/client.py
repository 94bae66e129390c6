"""The cluster as one process sees it: the methods of `rebalance_lib.cluster.Cluster`, over simulated requests.

- Metadata and the configurations of topics come from any broker, as far as that broker knows (`simulator.metadata`).
- Reassignments, and changes of partitions and topics, go to the active controller.
- Log dirs and the configuration of a broker are asked of the broker itself.

Values and errors are those of the real client. How requests fail is in `simulator.requests`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rebalance_lib.cluster.requests import ATTEMPTS, SilentError
from rebalance_lib.cluster.values import (
    Change,
    ConfigValue,
    LogDir,
    PartitionMetadata,
    Reassignment,
    RefusedConfigsError,
    RefusedError,
    Replica,
    ReplicaLogDir,
)
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import Broker, TopicPartition
from simulator.brokers import SimulatedBroker
from simulator.cluster import NewPartition
from simulator.requests import SimulatedRequests

CONFIG_LAG_SECONDS = 1.0  # configurations are never further behind


class SimulatedClient(SimulatedRequests):
    """The methods of `rebalance_lib.cluster.Cluster` that planning and execution use."""

    # The cluster

    def describe(self) -> dict[str, Any]:
        """The cluster's id and all registered brokers, fenced ones marked."""

        def answer(broker: int) -> dict[str, Any]:
            known = self._cluster.metadata.brokers(self._view(broker))
            brokers = [
                {"broker_id": one.id, "host": f"broker-{one.id}", "port": 9092, "rack": one.rack}
                | {"is_fenced": one.id not in known.alive}
                for one in known.registered.values()
            ]
            return {"cluster_id": self._cluster.cluster_id, "brokers": brokers}

        return self._ask_any("describe", "the cluster did not describe itself", answer)

    def kafka_version(self) -> str:
        """The release of Kafka."""
        return "4.3"

    def cluster_id(self) -> str:
        """Kafka's id of the cluster."""
        return str(self.describe()["cluster_id"])

    def missing_operations(self, topics: Iterable[str] | None = None) -> list[str]:
        """Nothing: this user may do everything."""
        self.describe()
        self.partitions(topics)
        return []

    def alive_brokers(self) -> dict[int, Broker]:
        """The brokers that are registered and not fenced."""
        return {
            entry["broker_id"]: Broker(entry["broker_id"], entry["rack"])
            for entry in self.describe()["brokers"]
            if not entry["is_fenced"]
        }

    def registered_brokers(self) -> frozenset[int]:
        """The brokers that are registered, fenced ones included."""
        return frozenset(entry["broker_id"] for entry in self.describe()["brokers"])

    # Partitions

    def partitions(self, topics: Iterable[str] | None = None) -> dict[TopicPartition, PartitionMetadata]:
        """The state of every partition of these topics (of all, without names); unknown topics are left out."""
        names = None if topics is None else sorted(set(topics))
        if names == []:
            return {}

        def answer(broker: int) -> dict[TopicPartition, PartitionMetadata]:
            return self._cluster.metadata.partitions(names, self._view(broker))

        return self._ask_any("partitions", "the cluster did not describe its topics", answer)

    def reassignments(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, Reassignment]:
        """The reassignments under way (of these partitions), whoever started them."""
        wanted = None if partitions is None else frozenset(partitions)
        if wanted is not None and not wanted:
            return {}

        def answer() -> dict[TopicPartition, Reassignment]:
            found = self._cluster.reassignments()
            return found if wanted is None else {name: one for name, one in found.items() if name in wanted}

        return self._ask_controller("reassignments", "the cluster did not list its reassignments", answer)

    def reassign(self, targets: Mapping[TopicPartition, Sequence[int] | None], *, attempts: int = ATTEMPTS) -> None:
        """Submit new replica lists; None cancels."""
        if not targets:
            return
        wanted = {name: None if replicas is None else tuple(replicas) for name, replicas in targets.items()}

        def apply() -> dict[Any, str]:
            return dict(self._cluster.alter_reassignments(wanted))

        what = "the controller did not take the reassignment"
        answer = self._change("reassign", wanted, what, apply, attempts=attempts)
        refused = {
            name: reason
            for name, reason in answer.items()
            if wanted[name] is not None or reason != "NoReassignmentInProgressError"
        }
        if refused:
            listed = ", ".join(f"{name}: {reason}" for name, reason in sorted(refused.items())[:10])
            raise RefusedError(f"the controller refused {len(refused)} of {len(targets)} partitions: {listed}", refused)

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Make the first replica of each partition its leader; returns where the controller did not, and why."""
        names = sorted(partitions)
        if not names:
            return {}

        def apply() -> dict[Any, str]:
            reasons = {name: self._cluster.elect_preferred_leader(name) for name in names}
            return {name: why for name, why in reasons.items() if why is not None and why != "ElectionNotNeededError"}

        what = "the controller did not elect preferred leaders"
        return self._change("elect_preferred_leaders", dict.fromkeys(names), what, apply)

    def create_partitions(
        self, topic: str, total: int, assignment: Sequence[Sequence[int]], *, validate_only: bool = False
    ) -> None:
        """Give a topic more partitions, so that it has ``total``."""

        def apply() -> dict[Any, str]:
            existing = self._cluster.topic_partitions(topic)
            if not existing:
                return {topic: "UnknownTopicOrPartitionError"}
            if total <= len(existing) or total - len(existing) != len(assignment):
                return {topic: "InvalidPartitionsError"}
            factor = len(self._cluster.partitions[existing[0]].state.replicas)
            if any(len(replicas) != factor for replicas in assignment):
                return {topic: "InvalidReplicationAssignmentError"}
            if not validate_only:
                self._cluster.add_partitions(topic, [NewPartition(tuple(replicas)) for replicas in assignment])
            return {}

        what = f"the controller did not add partitions to {topic}"
        refused = self._change("create_partitions", {topic: total}, what, apply)
        if refused:
            raise ClusterError(f"{what}: {refused[topic]}")

    # Log dirs

    def log_dirs(
        self, broker: int, partitions: Iterable[TopicPartition] | None = None, *, attempts: int = ATTEMPTS
    ) -> list[LogDir]:
        """The log dirs of one broker with the replicas in them."""
        wanted = None if partitions is None else frozenset(partitions)
        what = f"broker {broker} did not describe its log dirs"
        return self._ask_broker("log_dirs", broker, what, lambda one: self._log_dirs_of(one, wanted), attempts=attempts)

    def describe_log_dirs(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> dict[int, list[LogDir]]:
        """The log dirs of these brokers, asked side by side; those that do not answer in time are left out."""
        wanted = None if partitions is None else frozenset(partitions)
        return self._ask_all("describe_log_dirs", brokers, lambda one: self._log_dirs_of(one, wanted))[0]

    def replica_log_dirs(
        self,
        brokers: Iterable[int],
        partitions: Iterable[TopicPartition] | None = None,
        *,
        silent: set[int] | None = None,
    ) -> dict[Replica, ReplicaLogDir]:
        """The log dir of each replica (of these partitions) that these brokers hold, and of its copy under way."""
        wanted = None if partitions is None else frozenset(partitions)
        described, missing = self._ask_all(
            "replica_log_dirs", brokers, lambda one: self._log_dirs_of(one, wanted), skip_silent=silent is not None
        )
        if silent is None and missing:
            raise SilentError(f"broker {min(missing)} did not describe its log dirs: {missing[min(missing)]}")
        if silent is not None:
            silent.update(missing)
        current: dict[Replica, str] = {}
        future: dict[Replica, str] = {}
        for broker, log_dirs in described.items():
            for log_dir in log_dirs:
                for held in log_dir.replicas:
                    (future if held.future else current)[Replica(*held.partition, broker)] = log_dir.path
        return {
            replica: ReplicaLogDir(current.get(replica), future.get(replica)) for replica in sorted({*current, *future})
        }

    def alter_replica_log_dirs(self, targets: Mapping[Replica, str]) -> list[Replica]:
        """Have each broker keep its replica in this log dir; returns the replicas that it does not hold yet."""
        if not targets:
            return []
        request = self._log("alter_replica_log_dirs", targets)

        def apply(one: SimulatedBroker) -> dict[Replica, str | None]:
            request.applied = True
            own = {replica: path for replica, path in sorted(targets.items()) if replica.broker == one.id}
            return {replica: self._cluster.alter_replica_log_dir(replica, path) for replica, path in own.items()}

        brokers = {replica.broker for replica in targets}
        answers, missing = self._ask_all(request.name, brokers, apply, changing=True, skip_silent=False)
        request.answered = not missing
        errors = {replica: why for answer in answers.values() for replica, why in answer.items() if why is not None}
        refused = {replica: why for replica, why in errors.items() if why != "ReplicaNotAvailableError"}
        refused |= {replica: missing[replica.broker] for replica in targets if replica.broker in missing}
        request.refused.update(refused)
        if refused:
            listed = ", ".join(f"{name} to {targets[name]}: {why}" for name, why in sorted(refused.items())[:10])
            raise ClusterError(f"Failed to alter dir for {listed}")
        return sorted(errors)

    def _log_dirs_of(self, broker: SimulatedBroker, wanted: frozenset[TopicPartition] | None) -> list[LogDir]:
        return broker.describe_log_dirs(wanted, self._cluster.now, bursts=self._cluster.bursts)

    # Configurations

    def topic_config(self, topic: str, keys: Sequence[str]) -> dict[str, ConfigValue]:
        """These settings of a topic, where they have a value."""
        found = self.topic_configs([topic], keys)
        if topic not in found:
            raise ClusterError(f"the settings of topic {topic} could not be read: is it there?")
        return found[topic]

    def topic_configs(self, topics: Iterable[str], keys: Sequence[str]) -> dict[str, dict[str, ConfigValue]]:
        """These settings of each topic, where they have a value; topics that are gone are left out."""
        names = sorted(set(topics))
        if not names:
            return {}

        def answer(broker: int) -> dict[str, dict[str, ConfigValue]]:
            view = max(self._view(broker), self._cluster.now - CONFIG_LAG_SECONDS)
            existing = {name for name, _ in self._cluster.metadata.partitions(names, view)}
            return {name: self._cluster.configs.topic_values(name, keys, view) for name in names if name in existing}

        return self._ask_any("topic_configs", f"the settings of topic {names[0]} could not be read", answer)

    def alter_topic_config(self, topic: str, changes: Mapping[str, Change]) -> None:
        """Set these settings of one topic; None deletes."""
        self.alter_topic_configs({topic: changes})

    def alter_topic_configs(self, changes: Mapping[str, Mapping[str, Change]]) -> None:
        """Set settings of many topics; None deletes. All are asked for, whatever becomes of some."""
        wanted = {topic: dict(values) for topic, values in changes.items() if values}
        if not wanted:
            return

        def apply() -> dict[Any, str]:
            reasons = {topic: self._cluster.alter_topic_config(topic, values) for topic, values in wanted.items()}
            return {topic: reason for topic, reason in reasons.items() if reason is not None}

        what = f"the settings of topic {next(iter(wanted))} could not be changed"
        refused = self._change("alter_topic_configs", wanted, what, apply)
        if refused:
            listed = "; ".join(f"topic {name}: {why}" for name, why in sorted(refused.items())[:10])
            raise RefusedConfigsError(f"settings were not taken by {listed}", refused)

    def broker_config(self, broker: int, keys: Sequence[str], *, attempts: int = ATTEMPTS) -> dict[str, ConfigValue]:
        """These settings of a broker, where they have a value."""
        what = f"the settings of broker {broker} could not be read"
        return self._ask_broker(
            "broker_config", broker, what, lambda one: self._config_of(one, keys), attempts=attempts
        )

    def broker_configs(self, brokers: Iterable[int], keys: Sequence[str]) -> dict[int, dict[str, ConfigValue]]:
        """These settings of the brokers, asked side by side; those that do not answer in time are left out."""
        return self._ask_all("broker_configs", brokers, lambda one: self._config_of(one, keys))[0]

    def alter_broker_config(self, broker: int, changes: Mapping[str, Change]) -> None:
        """Set these dynamic settings of one broker; None deletes."""
        if not changes:
            return
        request = self._log("alter_broker_config", {broker: dict(changes)})

        def apply(one: SimulatedBroker) -> str | None:
            request.applied = True
            return self._alter(one, changes)

        what = f"the settings of broker {broker} could not be changed"
        reason = self._ask_broker(request.name, broker, what, apply, attempts=ATTEMPTS)
        request.answered = True
        if reason is not None:
            request.refused[broker] = reason
            raise ClusterError(f"settings were not taken by broker {broker}: {reason}")

    def alter_broker_configs(self, changes: Mapping[int, Mapping[str, Change]]) -> dict[int, str]:
        """Set dynamic settings of many brokers side by side; returns the reason for each where it was not done."""
        wanted = {broker: dict(values) for broker, values in sorted(changes.items()) if values}
        if not wanted:
            return {}
        request = self._log("alter_broker_configs", wanted)

        def apply(one: SimulatedBroker) -> str | None:
            request.applied = True
            return self._alter(one, wanted[one.id])

        answers, missing = self._ask_all(request.name, wanted, apply, changing=True, skip_silent=False)
        request.answered = not missing
        refused = missing | {broker: reason for broker, reason in answers.items() if reason is not None}
        request.refused = dict(sorted(refused.items()))
        return dict(sorted(refused.items()))

    def _alter(self, broker: SimulatedBroker, changes: Mapping[str, Change]) -> str | None:
        if not self._cluster.controller_active:  # which the broker forwards it to
            return "NotControllerError"
        return self._cluster.alter_broker_config(broker.id, changes)

    def _config_of(self, broker: SimulatedBroker, keys: Sequence[str]) -> dict[str, ConfigValue]:
        view = max(self._view(broker.id), self._cluster.now - CONFIG_LAG_SECONDS)
        return self._cluster.configs.broker_values(broker.id, keys, view)
