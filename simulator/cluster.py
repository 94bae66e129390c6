"""The simulated cluster: what is true, whatever clients can see of it.

Goal: a cluster that answers and fails like Kafka, in simulated time, at some microseconds for each request.

Every change of replicas, ISR, leader and reassignments is a step of `rebalance_lib.reassignment.Controller`: there is
no second set of rules. `Replication` adds bytes, log dirs, rates and time. Here is what is done to the cluster:
requests as the controller and the brokers apply them, faults of brokers and log dirs, topics that come and go, and
what other tools do (``foreign_...``), which is applied at once and is no request of a process of ours.

Example: ``foo-0`` of 1 GB moves from broker 1 to broker 2, over NICs of 100 MB/s.

>>> cluster = SimulatedCluster()
>>> for broker in (1, 2):
...     cluster.add_broker(broker, log_dirs={"/d0": 1e12}, nic=100e6)
>>> [foo] = cluster.create_topic("foo", [NewPartition((1,), size=1e9)])
>>> cluster.foreign_reassign(foo, (2,))
True
>>> cluster.advance(0.0, 5.0)
>>> cluster.state(foo).replicas, round(cluster.replica_bytes(foo, 2) / 1e6)
((2, 1), 500)
>>> cluster.advance(5.0, 20.0)
>>> cluster.state(foo).replicas
(2,)
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from rebalance_lib.cluster.values import Change, Reassignment, Replica
from rebalance_lib.reassignment import PartitionState, Transition
from rebalance_lib.reassignment.state import TopicSettings
from rebalance_lib.topology import TopicPartition
from simulator.brokers import NIC, SimulatedBroker
from simulator.configs import MIN_ISR, RATES, REPLICA_LISTS, UNCLEAN
from simulator.replicas import Future, Partition
from simulator.replication import DELETE_SECONDS, Replication

# Kafka's errors by the name that kafka-python gives them.
ERRORS = {
    "INVALID_REPLICA_ASSIGNMENT": "InvalidReplicationAssignmentError",
    "INVALID_REPLICATION_FACTOR": "InvalidReplicationFactorError",
    "NO_REASSIGNMENT_IN_PROGRESS": "NoReassignmentInProgressError",
    "UNKNOWN_TOPIC_OR_PARTITION": "UnknownTopicOrPartitionError",
    "ELECTION_NOT_NEEDED": "ElectionNotNeededError",
    "PREFERRED_LEADER_NOT_AVAILABLE": "PreferredLeaderNotAvailableError",
}


class NewPartition(NamedTuple):
    """A partition to be created: its replicas, bytes, and bytes that producers write to it each second."""

    replicas: tuple[int, ...]
    size: float = 0.0
    write_rate: float = 0.0
    log_dirs: tuple[str, ...] | None = None


class Request:
    """A request that changes something, as a client made it.

    Attributes:
        time: When it was sent.
        process: The name of the process that sent it.
        name: The method of the client.
        changes: What was requested, by partition, topic, broker or replica.
        applied: Whether it reached the cluster.
        answered: Whether the client got the answer.
        refused: What was refused, with the reason.
    """

    __slots__ = ("answered", "applied", "changes", "name", "process", "refused", "time")

    def __init__(self, time: float, process: str, name: str, changes: Mapping[Any, object]) -> None:
        self.time = time
        self.process = process
        self.name = name
        self.changes = dict(changes)
        self.applied = False
        self.answered = False
        self.refused: dict[Any, str] = {}

    def __repr__(self) -> str:
        outcome = "answered" if self.answered else "applied" if self.applied else "lost"
        return f"<{self.time:.3f} {self.process} {self.name} {self.changes} {outcome}>"


class SimulatedCluster(Replication):
    """A cluster.

    Attributes:
        cluster_id: Kafka's id of it.
        requests: Every request of a client that was to change something, in order.
    """

    def __init__(
        self,
        cluster_id: str = "simulated-cluster-0001",
        *,
        delete_seconds: float = DELETE_SECONDS,
        bursts: bool = False,
    ) -> None:
        super().__init__(delete_seconds=delete_seconds, bursts=bursts)
        self.cluster_id = cluster_id
        self.requests: list[Request] = []
        self._topics_created = 0

    # What there is

    def state(self, partition: TopicPartition) -> PartitionState:
        """Replicas, ISR and leader of a partition, as the controller has them."""
        return self.partitions[partition].state

    def replica_bytes(self, partition: TopicPartition, broker: int) -> float:
        """The bytes of a replica; none if the broker has no log of it."""
        one = self.partitions[partition]
        log = one.logs.get(broker)
        return 0.0 if log is None else one.size_at(log, self.now)

    def reassignments(self) -> dict[TopicPartition, Reassignment]:
        """ListPartitionReassignments."""
        return {
            name: Reassignment(state.replicas, state.adding, state.removing)
            for name in self.controller.reassigning
            for state in (self.partitions[name].state,)
        }

    def add_broker(
        self, broker: int, rack: str | None = None, *, log_dirs: Mapping[str, float], nic: float = NIC
    ) -> None:
        """A new broker registers."""
        self.brokers[broker] = SimulatedBroker(broker, rack, log_dirs, nic)
        self._with_controller(lambda: self._unfence(broker, clean=True))

    # Topics

    def create_topic(
        self, topic: str, partitions: Sequence[NewPartition], configs: Mapping[str, str] | None = None
    ) -> list[TopicPartition]:
        """Create a topic under a new id, all its replicas in sync where their brokers work."""
        self._topics_created += 1
        digest = sha256(f"{topic} {self._topics_created}".encode()).digest()[:16]
        topic_id = urlsafe_b64encode(digest).decode().rstrip("=")
        if configs:
            self.configs.alter_topic(topic, configs, self.now)
        self._configure(topic)
        return self._add(topic, topic_id, partitions)

    def add_partitions(self, topic: str, partitions: Sequence[NewPartition]) -> list[TopicPartition]:
        """Give a topic more partitions."""
        return self._add(topic, self.partitions[TopicPartition(topic, 0)].topic_id, partitions)

    def topic_partitions(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic; none if it does not exist."""
        return sorted(name for name in self.partitions if name.topic == topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with its configuration and its reassignments, if it exists."""
        if self.topic_partitions(topic):
            self._apply(self.controller.delete_topic(topic))
            self.configs.delete_topic(topic, self.now)

    def _add(self, topic: str, topic_id: str, partitions: Sequence[NewPartition]) -> list[TopicPartition]:
        alive = self.controller.brokers.alive
        first = len(self.topic_partitions(topic))
        names = []
        for number, new in enumerate(partitions, first):
            name = TopicPartition(topic, number)
            isr = tuple(broker for broker in new.replicas if broker in alive) or new.replicas[:1]
            state = PartitionState(new.replicas, isr, isr[0] if isr[0] in alive else None)
            self.controller.add_partitions({name: state})
            partition = self.partitions[name] = Partition(name, topic_id, state, new.size, new.write_rate)
            partition.since = self.now
            paths: Sequence[str | None] = new.log_dirs or (None,) * len(new.replicas)
            for broker, path in zip(new.replicas, paths, strict=True):
                self._create_log(self.brokers[broker], partition, path)
            for log in partition.logs.values():
                partition.catch_up(log)
            self._publish(partition)
            names.append(name)
        self._changed()
        return names

    def _configure(self, topic: str) -> None:
        values = self.configs.topics.get(topic, {})
        settings = TopicSettings(
            min_insync_replicas=int(values.get(MIN_ISR) or 1), unclean_leader_election=values.get(UNCLEAN) == "true"
        )
        self.controller.configure_topic(topic, settings)

    # Requests as they are applied

    def alter_reassignments(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> dict[TopicPartition, str]:
        """AlterPartitionReassignments; returns what was refused, with the name of the error."""
        refused: dict[TopicPartition, str] = {}
        for name, replicas in targets.items():
            reason = None if replicas is None else self.network.refusal(name, self.now)
            if reason is None:
                step = self.controller.cancel(name) if replicas is None else self.controller.reassign(name, replicas)
                reason = self._step(step)
            if reason is not None:
                refused[name] = reason
        return refused

    def elect_preferred_leader(self, partition: TopicPartition) -> str | None:
        """ElectLeaders; returns the name of the error, if it was refused."""
        if partition not in self.partitions:
            return ERRORS["UNKNOWN_TOPIC_OR_PARTITION"]
        return self._step(self.controller.elect_preferred_leader(partition))

    def alter_topic_config(self, topic: str, changes: Mapping[str, Change]) -> str | None:
        """IncrementalAlterConfigs of a topic; returns why it was refused."""
        if not self.topic_partitions(topic):
            return ERRORS["UNKNOWN_TOPIC_OR_PARTITION"]
        refused = self.configs.alter_topic(topic, changes, self.now)
        self._configure(topic)
        self._changed()
        return refused

    def alter_broker_config(self, broker: int, changes: Mapping[str, Change]) -> str | None:
        """IncrementalAlterConfigs of a broker; returns why it was refused."""
        self._changed()
        return self.configs.alter_broker(broker, changes, self.now)

    def alter_replica_log_dir(self, replica: Replica, path: str) -> str | None:
        """AlterReplicaLogDirs; returns the name of the error.

        A replica that is not on the broker yet gets its log dir noted, and ``ReplicaNotAvailableError``. To name the
        log dir that the replica is in ends a copy to another.
        """
        broker = self.brokers[replica.broker]
        if path not in broker.log_dirs:
            return "LogDirNotFoundError"
        if not broker.log_dirs[path].online:
            return "KafkaStorageError"
        name = TopicPartition(replica.topic, replica.partition)
        partition = broker.partitions.get(name)
        if partition is None:
            if name not in self.partitions:
                return ERRORS["UNKNOWN_TOPIC_OR_PARTITION"]
            broker.noted[name] = path
            return "ReplicaNotAvailableError"
        log = partition.logs[broker.id]
        if not broker.log_dirs[log.path].online:
            return "KafkaStorageError"
        if log.future is not None and log.future.path != path:
            freed = self.now + self.delete_seconds
            broker.log_dirs[log.future.path].free_later(freed, log.future.size_at(self.now), self.now)
            log.future = None
        if log.path != path and log.future is None:
            log.future = Future(path, self.now)
        self._changed()
        return None

    def _step(self, transitions: tuple[Transition, ...]) -> str | None:
        self._apply(transitions)
        refused = transitions[0].refused if transitions else None
        return None if refused is None else ERRORS.get(refused.error, refused.error)

    # Faults of brokers and of the controller; `kill_broker` and `fail_log_dir` are inherited

    def start_broker(self, broker: int, *, clean: bool = True) -> None:
        """A broker that died is back; not ``clean`` if it was killed rather than shut down."""
        one = self.brokers[broker]
        if one.up or not any(log_dir.online for log_dir in one.log_dirs.values()):
            return
        one.up = True
        one.noted.clear()
        self._reconcile(one)
        self._with_controller(lambda: self._unfence(broker, clean=clean))

    def hang_broker(self, broker: int) -> None:
        """A broker hangs: it stays alive for the controller, and does nothing else."""
        one = self.brokers[broker]
        if not one.working:
            return
        one.hung = True
        for partition in one.partitions.values():
            if partition.state.leader != broker:
                partition.stop(partition.logs[broker], self.now)
        self._changed()

    def expire_session(self, broker: int) -> None:
        """A broker that hangs is fenced, as Kafka does when ``broker.session.timeout.ms`` is over."""
        if self.brokers[broker].hung:
            self._with_controller(lambda: self._fence(broker))

    def resume_broker(self, broker: int) -> None:
        """A broker that hung works again; if it was fenced meanwhile, it is not any more."""
        one = self.brokers[broker]
        if one.hung:
            one.hung = False
            self._reconcile(one)
            if broker not in self.controller.brokers.alive:
                self._with_controller(lambda: self._unfence(broker, clean=True))
            queued, one.queued = one.queued, []
            for apply in queued:
                apply(one)

    def unregister_broker(self, broker: int) -> None:
        """A broker dies and is removed from the cluster for good; its replicas stay assigned to it."""
        self.kill_broker(broker)

        def unregister() -> tuple[Transition, ...]:
            transitions = self.controller.unregister(broker)
            self._publish_brokers()
            return transitions

        self._with_controller(unregister)

    def repair_log_dir(self, broker: int, path: str) -> None:
        """A log dir that failed is replaced by an empty one; its replicas are copied again."""
        one = self.brokers[broker]
        if one.log_dirs[path].online:
            return
        one.log_dirs[path].online, one.log_dirs[path].deleted = True, []
        lost = [name for name, partition in sorted(one.partitions.items()) if partition.logs[broker].path == path]
        for name in lost:
            del one.partitions.pop(name).logs[broker]
        if one.working:
            self._reconcile(one)
        self._with_controller(lambda: self.controller.restore_log_dir(broker, self._assigned(broker, lost)))

    def fail_controller(self, seconds: float) -> None:
        """The controller fails over: for that long, none is active."""
        self.controller_back_at = max(self.controller_back_at, self.now + seconds)
        self._changed()

    def set_metadata_lag(self, broker: int, seconds: float) -> None:
        """Let a broker's metadata be behind by that much."""
        self.metadata.lag[broker] = seconds

    def _unfence(self, broker: int, *, clean: bool) -> tuple[Transition, ...]:
        transitions = self.controller.unfence(broker, clean=clean)
        self._publish_brokers()
        return transitions

    # Other tools

    def foreign_reassign(self, partition: TopicPartition, replicas: Sequence[int]) -> bool:
        """Another tool starts a reassignment, or gives one another target; returns whether it was accepted."""
        return self.controller_active and not self.alter_reassignments({partition: tuple(replicas)})

    def foreign_cancel(self, partition: TopicPartition) -> bool:
        """Another tool cancels a reassignment; returns whether it was accepted."""
        return self.controller_active and not self.alter_reassignments({partition: None})

    def foreign_set_throttle(
        self, rates: Mapping[int, Mapping[str, Change]], lists: Mapping[str, Mapping[str, Change]]
    ) -> bool:
        """Another tool sets rates by broker, and lists of throttled replicas by topic; returns whether it could."""
        if not self.controller_active:
            return False
        for topic, changes in lists.items():
            self.alter_topic_config(topic, changes)
        for broker, values in rates.items():
            if self.brokers[broker].working:
                self.alter_broker_config(broker, values)
        return True

    def foreign_delete_throttles(self, topics: Sequence[str]) -> bool:
        """Another tool deletes the lists of its topics and the rates of all brokers: Kafka's does at ``--verify``."""
        return self.foreign_set_throttle(
            {broker: dict.fromkeys(RATES) for broker in sorted(self.brokers)},
            {topic: dict.fromkeys(REPLICA_LISTS) for topic in topics},
        )
