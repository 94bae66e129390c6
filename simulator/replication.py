"""Replicas over time: brokers do what the controller's metadata says, and the controller hears what became of it.

Goal: after each step of the controller, the right logs are on the right brokers; and whatever happens by itself as time
passes (a replica catches up, falls behind, fills its log dir) happens at its own moment, in order.

Algorithm. `advance` goes from one event to the next:

1. If anything has changed, compute all rates, and with them the time of the next event.
2. If that is later than where time is to go, go there: sizes are straight lines, nothing has to be done.
3. Else go to the event, let happen what is due, and begin again.

A broker that is down or hangs does nothing; what it missed, it does when it works again: create the logs of replicas
that were added meanwhile, delete those of replicas that were removed. While no controller is active, what brokers tell
it waits.

A broker that hangs leaves the ISR of the partitions it follows after ``replica.lag.time.max.ms``, unless nothing is
written to them. The partitions that it leads are stuck until it is fenced: nobody but the leader asks for another ISR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from rebalance_lib.cluster.values import PartitionMetadata
from rebalance_lib.reassignment import Brokers, Controller, Transition
from rebalance_lib.topology import Broker, TopicPartition
from simulator.brokers import SimulatedBroker
from simulator.configs import Configs
from simulator.copying import Copying
from simulator.metadata import BrokerList, Metadata
from simulator.network import Network
from simulator.replicas import Log, Partition

LAG_SECONDS = 30.0  # replica.lag.time.max.ms
DELETE_SECONDS = 60.0  # file.delete.delay.ms
BURST_SECONDS = 10.0  # the window over which Kafka measures the rate of a throttle is 11 s
SAME_TIME = 1e-9  # two events this close are one: computed times differ by rounding
EVENTS_AT_ONCE = 10_000  # more in one step of time is a fault of the simulator


class Replication:
    """Brokers, partitions and their logs, moved through time.

    Attributes:
        now: Simulated seconds, as far as the cluster has come.
        controller: Replicas, ISR, leaders and reassignments.
        controller_back_at: Until then no controller is active.
        brokers: All brokers that there ever were, by id.
        partitions: All partitions that exist.
        configs: Configurations of topics and brokers.
        metadata: What each broker knows.
        network: Faults of requests.
        delete_seconds: How long a log that was removed still takes its space.
        bursts: Whether throttled replicas show their progress every ten seconds only, as they do in Kafka.
        on_transition: Called as ``(time, transition)`` after every change of a partition.
    """

    def __init__(self, *, delete_seconds: float = DELETE_SECONDS, bursts: bool = False) -> None:
        self.now = 0.0
        self.controller = Controller({}, Brokers(frozenset(), frozenset()))
        self.controller_back_at = 0.0
        self.brokers: dict[int, SimulatedBroker] = {}
        self.partitions: dict[TopicPartition, Partition] = {}
        self.configs = Configs()
        self.metadata = Metadata()
        self.network = Network()
        self.delete_seconds = delete_seconds
        self.bursts = bursts
        self.on_transition: list[Callable[[float, Transition], None]] = []
        self._copying = Copying(self.brokers, self.configs)
        self._up_to_date = False
        self._next = inf
        self._deferred: list[Callable[[], None]] = []

    @property
    def controller_active(self) -> bool:
        """Whether a controller is active."""
        return self.now >= self.controller_back_at

    def advance(self, start: float, end: float) -> None:
        """Let time pass; to be called before the clock of the scheduler does."""
        if self._up_to_date and self._next > end and not self.bursts:
            self.now = end
            return
        self.now = max(self.now, start)
        burst = int(self.now / BURST_SECONDS)
        for _ in range(EVENTS_AT_ONCE):
            if not self._up_to_date:
                self._update()
            if self._next > end:
                break
            self.now = max(self.now, self._next)
            self._happen()
        else:
            raise AssertionError(f"the cluster does not get beyond second {self.now}")
        self.now = max(self.now, end)
        if self.bursts and int(self.now / BURST_SECONDS) > burst:
            for partition in self.partitions.values():
                for log in partition.logs.values():
                    log.reported = partition.size_at(log, self.now)

    def _changed(self) -> None:
        """Something changed that rates or the next event depend on."""
        self._up_to_date = False

    def _with_controller(self, action: Callable[[], Iterable[Transition]]) -> None:
        """Have the controller do this, now or as soon as one is active."""
        if self.controller_active:
            self._apply(action())
        else:
            self._deferred.append(lambda: self._apply(action()))
        self._changed()

    def _update(self) -> None:
        """Compute rates, and when something happens next."""
        partitions = list(self.partitions.values())
        upcoming = self._copying.update(partitions, self.now)
        informed = max(self.now, self.controller_back_at)
        if self._deferred:
            upcoming = min(upcoming, informed)
        for partition in partitions:
            if _all_in_sync(partition):
                continue
            joining, leaving_at = self._isr_changes(partition)
            if joining:
                upcoming = min(upcoming, informed)
            upcoming = min(upcoming, max(informed, leaving_at))
        for broker in self.brokers.values():
            if broker.working:
                upcoming = min(upcoming, broker.full_at(self.now)[0])
        self._next = upcoming
        self._up_to_date = True

    def _happen(self) -> None:
        """Let happen what is due now."""
        due = self.now + SAME_TIME
        deferred, self._deferred = (self._deferred, []) if self.controller_active else ([], self._deferred)
        for action in deferred:
            action()
        for broker in sorted(self.brokers):
            full_at, path = self.brokers[broker].full_at(self.now) if self.brokers[broker].working else (inf, "")
            if full_at <= due:
                self.fail_log_dir(broker, path)
        for partition in list(self.partitions.values()):
            for log in partition.logs.values():
                if not log.synced and log.caught_up_at <= due:
                    partition.catch_up(log)
                if log.future is not None and log.future.done_at <= due:
                    self._swap(partition, log)
            if not _all_in_sync(partition) and self.controller_active:
                self._ask_for_isr(partition)
        self._changed()

    def _isr_changes(self, partition: Partition) -> tuple[list[int], float]:
        """The replicas that are to join the ISR, and when the next one is to leave it."""
        state = partition.state
        joining: list[int] = []
        leaving_at = inf
        if state.leader is None or not self._copying.can_copy(state.leader, partition):
            return joining, leaving_at
        for broker in state.replicas:
            log = partition.logs.get(broker)
            if log is None:
                continue
            if log.synced:
                if broker not in state.isr and broker in self.controller.brokers.alive and self.brokers[broker].working:
                    joining.append(broker)
            elif broker in state.isr and partition.end_at(self.now) > log.bytes + 1.0:
                leaving_at = min(leaving_at, log.lagging_since + LAG_SECONDS)
            elif broker in state.isr and partition.growth:
                leaving_at = min(leaving_at, max(log.lagging_since + LAG_SECONDS, self.now + 2.0 / partition.growth))
        return joining, leaving_at

    def _ask_for_isr(self, partition: Partition) -> None:
        joining, _ = self._isr_changes(partition)
        if joining:
            self._apply(self.controller.caught_up(partition.name, *joining))
        state = partition.state
        behind = [
            broker
            for broker in state.isr
            if (log := partition.logs.get(broker)) is not None
            and not log.synced
            and log.lagging_since + LAG_SECONDS <= self.now + SAME_TIME
            and partition.end_at(self.now) > log.bytes + 1.0
        ]
        if behind and state.leader is not None and self._copying.can_copy(state.leader, partition):
            self._apply(self.controller.fell_behind(partition.name, *behind))

    def _apply(self, transitions: Iterable[Transition]) -> None:
        """Let the brokers do what the controller has decided."""
        for transition in transitions:
            before, after = transition.before, transition.after
            if before is after or before is None:
                continue
            partition = self.partitions[transition.partition]
            if after is None:
                self._delete_partition(partition)
            else:
                partition.state = after
                for broker in after.replicas:
                    if broker not in before.replicas:
                        self._create_log(self.brokers[broker], partition)
                for broker in before.replicas:
                    if broker not in after.replicas:
                        self._delete_log(self.brokers[broker], partition)
                if after.leader is not None and after.leader != before.leader:
                    partition.lead(after.leader, self.now)
                self._publish(partition)
            for listener in self.on_transition:
                listener(self.now, transition)
        self._changed()

    def _publish(self, partition: Partition) -> None:
        state = partition.state
        topic = partition.name.topic
        known = PartitionMetadata(
            state.replicas, frozenset(state.isr), state.leader, topic.startswith("__"), partition.topic_id
        )
        self.metadata.record(partition.name, known, self.now)

    def _publish_brokers(self) -> None:
        brokers = self.controller.brokers
        registered = {broker: Broker(broker, self.brokers[broker].rack) for broker in sorted(brokers.registered)}
        self.metadata.record_brokers(BrokerList(registered, brokers.alive), self.now)

    def _create_log(self, broker: SimulatedBroker, partition: Partition, path: str | None = None) -> None:
        if broker.id in partition.logs or not broker.working:
            return
        path = path or broker.log_dir_for(partition.name)
        if path is not None:
            partition.logs[broker.id] = Log(broker.id, path, partition.topic_id, self.now)
            broker.partitions[partition.name] = partition

    def _delete_log(self, broker: SimulatedBroker, partition: Partition) -> None:
        if broker.working and broker.id in partition.logs:
            log = partition.logs[broker.id]
            freed = self.now + self.delete_seconds
            broker.log_dirs[log.path].free_later(freed, partition.size_at(log, self.now), self.now)
            if log.future is not None:
                broker.log_dirs[log.future.path].free_later(freed, log.future.size_at(self.now), self.now)
            del partition.logs[broker.id]
            del broker.partitions[partition.name]

    def _delete_partition(self, partition: Partition) -> None:
        del self.partitions[partition.name]
        partition.grow(0.0, self.now)
        for broker in list(partition.logs):
            self._delete_log(self.brokers[broker], partition)
        self.metadata.record(partition.name, None, self.now)

    def _reconcile(self, broker: SimulatedBroker) -> None:
        """Let a broker that works again do what it missed."""
        for name, partition in list(broker.partitions.items()):
            if self.partitions.get(name) is not partition or broker.id not in partition.state.replicas:
                self._delete_log(broker, partition)
        for partition in self.partitions.values():
            if broker.id in partition.state.replicas:
                self._create_log(broker, partition)
        self._changed()

    def _swap(self, partition: Partition, log: Log) -> None:
        """The copy in the other log dir takes the place of the original."""
        if log.future is not None:
            size = partition.size_at(log, self.now)
            self.brokers[log.broker].log_dirs[log.path].free_later(self.now + self.delete_seconds, size, self.now)
            log.path, log.future = log.future.path, None

    def fail_log_dir(self, broker: int, path: str) -> None:
        """A log dir fails; its replicas leave the ISR, and a broker that has no other stops."""
        one = self.brokers[broker]
        if not one.log_dirs[path].online:
            return
        one.log_dirs[path].online = False
        failed = []
        for name, partition in sorted(one.partitions.items()):
            log = partition.logs[broker]
            if log.path == path:
                failed.append(name)
                partition.stop(log, self.now)
            if log.future is not None and path in (log.path, log.future.path):
                log.future = None
        if any(log_dir.online for log_dir in one.log_dirs.values()):
            self._with_controller(lambda: self.controller.fail_log_dir(broker, self._assigned(broker, failed)))
        else:
            self.kill_broker(broker)

    def kill_broker(self, broker: int) -> None:
        """A broker dies, and is fenced."""
        one = self.brokers[broker]
        if not one.up:
            return
        one.up = one.hung = False
        one.queued.clear()
        for partition in one.partitions.values():
            partition.stop(partition.logs[broker], self.now)
        self._with_controller(lambda: self._fence(broker))

    def _fence(self, broker: int) -> Iterable[Transition]:
        transitions = self.controller.fence(broker)
        self._publish_brokers()
        return transitions

    def _assigned(self, broker: int, names: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of the partitions that exist and have a replica on this broker."""
        return [name for name in names if name in self.partitions and broker in self.partitions[name].state.replicas]


def _all_in_sync(partition: Partition) -> bool:
    state = partition.state
    if len(state.isr) != len(state.replicas):
        return False
    return all(log.synced for log in partition.logs.values())
