"""A controller with its partitions: broker deaths reach all of them, deletions reach a topic.

Goal: drive many partitions through one set of rules and get back, for each input, what changed where, so
that a dry run can show it and a simulator can add sizes and time.

Constraints: the steps themselves are pure (``Rules.step``); this class only keeps which state each partition
is in, and hands out ``Transition`` values that hold the states before and after. It keeps no history: who
wants a timeline collects the transitions.

Example: partition t-0 on 1,2,3 moves to 2,3,4, and broker 4 dies before it has caught up.

>>> from rebalance_lib.topology import TopicPartition
>>> t0 = TopicPartition("t", 0)
>>> controller = Controller({t0: PartitionState.healthy(1, 2, 3)}, Brokers.all_alive(1, 2, 3, 4))
>>> for transition in (*controller.reassign(t0, (2, 3, 4)), *controller.fence(4), *controller.unfence(4)):
...     print(transition.after.replicas, transition.after.isr, transition.after.leader)
(2, 3, 4, 1) (1, 2, 3) 1
>>> [transition] = controller.caught_up(t0)
>>> transition.after.replicas, transition.after.isr, transition.after.leader
((2, 3, 4), (2, 3, 4), 2)

A partition that is not touched by a broker's death or return yields no transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.reassignment import inputs
from rebalance_lib.reassignment.events import (
    DeletionHeldOff,
    Event,
    RequestRefused,
    RequestSkipped,
    SkipReason,
    TopicDeleted,
)
from rebalance_lib.reassignment.kraft import KRAFT
from rebalance_lib.reassignment.state import Brokers, PartitionState, TopicSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rebalance_lib.reassignment.inputs import Input
    from rebalance_lib.reassignment.rules import Rules
    from rebalance_lib.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """DeleteTopics, as it reaches one partition of the topic."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One input to one partition: state before, state after (None once deleted), and what came about."""

    partition: TopicPartition
    request: Input | DeleteTopic
    before: PartitionState | None
    after: PartitionState | None
    events: tuple[Event, ...]

    @property
    def refused(self) -> RequestRefused | None:
        """The error the request was answered with, if any."""
        return next((event for event in self.events if isinstance(event, RequestRefused)), None)


class Controller:
    """The partitions of a cluster under one kind of controller; each method returns what it caused."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, PartitionState],
        brokers: Brokers,
        *,
        rules: Rules = KRAFT,
        topics: Mapping[str, TopicSettings] | None = None,
    ) -> None:
        self._partitions = dict(partitions)
        self._by_topic: dict[str, set[TopicPartition]] = {}
        for partition in self._partitions:
            self._by_topic.setdefault(partition.topic, set()).add(partition)
        self._brokers = brokers
        self._rules = rules
        self._topics = dict(topics or {})
        self._deleting: set[str] = set()
        self._offline: dict[TopicPartition, frozenset[int]] = {}
        self._reassigning = {partition for partition, state in self._partitions.items() if state.reassigning}

    @property
    def brokers(self) -> Brokers:
        """The brokers, registered and alive."""
        return self._brokers

    @property
    def reassigning(self) -> tuple[TopicPartition, ...]:
        """ListPartitionReassignments: the partitions that are moving."""
        return tuple(sorted(self._reassigning))

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """A copy of every partition's state."""
        return dict(self._partitions)

    def state(self, partition: TopicPartition) -> PartitionState:
        """The state of a partition; unknown ones are an error."""
        try:
            return self._partitions[partition]
        except KeyError:
            raise InvalidInputError(
                f"partition {partition} does not exist; known topics: {len(self._by_topic)}"
            ) from None

    def reassign(
        self,
        partition: TopicPartition,
        replicas: Iterable[int],
        *,
        allow_replication_factor_change: bool = True,
    ) -> tuple[Transition, ...]:
        """Move a partition to these replicas."""
        request = inputs.Reassign(tuple(replicas), allow_replication_factor_change)
        return self._requested(partition, request)

    def cancel(self, partition: TopicPartition) -> tuple[Transition, ...]:
        """Leave a moving partition on its original replicas."""
        return self._requested(partition, inputs.Cancel())

    def alter_partition(self, partition: TopicPartition, isr: Iterable[int]) -> tuple[Transition, ...]:
        """The leader asks for this ISR."""
        return self._step(partition, inputs.AlterPartition(tuple(isr)))

    def caught_up(self, partition: TopicPartition, *brokers: int) -> tuple[Transition, ...]:
        """The leader asks for an ISR with these followers; without brokers, with all that are being added."""
        return self._step(partition, inputs.caught_up(self.state(partition), *brokers))

    def fell_behind(self, partition: TopicPartition, *brokers: int) -> tuple[Transition, ...]:
        """The leader asks for an ISR without these followers."""
        return self._step(partition, inputs.fell_behind(self.state(partition), *brokers))

    def elect_preferred_leader(self, partition: TopicPartition) -> tuple[Transition, ...]:
        """The first replica is to lead."""
        return self._step(partition, inputs.ElectPreferredLeader())

    def fence(self, broker: int) -> tuple[Transition, ...]:
        """A broker died."""
        transitions = self._step_all(inputs.FenceBroker(broker))
        self._brokers = self._brokers.fence(broker)
        return transitions

    def unfence(self, broker: int, *, clean: bool = True) -> tuple[Transition, ...]:
        """A broker is back, or new; not ``clean`` if it was killed rather than shut down."""
        lost = () if clean else self._step_all(inputs.UncleanShutdown(broker))
        transitions = self._step_all(inputs.UnfenceBroker(broker))
        self._brokers = self._brokers.unfence(broker)
        return lost + transitions

    def unregister(self, broker: int) -> tuple[Transition, ...]:
        """A broker is gone for good; its replicas stay assigned to it, and nothing more can be."""
        transitions = self.fence(broker)
        self._brokers = Brokers(self._brokers.registered - {broker}, self._brokers.alive)
        return transitions

    def fail_log_dir(self, broker: int, partitions: Iterable[TopicPartition]) -> tuple[Transition, ...]:
        """A log dir of a live broker failed: to the partitions in it, the broker is as good as dead.

        >>> from rebalance_lib.topology import TopicPartition
        >>> t0, t1 = TopicPartition("t", 0), TopicPartition("t", 1)
        >>> states = {t0: PartitionState.healthy(1, 2), t1: PartitionState.healthy(1, 2)}
        >>> controller = Controller(states, Brokers.all_alive(1, 2))
        >>> [transition] = controller.fail_log_dir(1, [t0])
        >>> transition.after.leader, controller.state(t1).leader
        (2, 1)
        """
        transitions: list[Transition] = []
        for partition in sorted(partitions):
            transitions += self._step(partition, inputs.FenceBroker(broker))
            self._offline[partition] = self._offline.get(partition, frozenset()) | {broker}
        return tuple(transition for transition in transitions if transition.events)

    def restore_log_dir(self, broker: int, partitions: Iterable[TopicPartition]) -> tuple[Transition, ...]:
        """The broker has these partitions again, in another log dir or in the one that failed."""
        transitions: list[Transition] = []
        for partition in sorted(partitions):
            self._offline[partition] = self._offline.get(partition, frozenset()) - {broker}
            transitions += self._step(partition, inputs.UnfenceBroker(broker)) if broker in self._brokers.alive else ()
        return tuple(transition for transition in transitions if transition.events)

    def add_partitions(self, partitions: Mapping[TopicPartition, PartitionState]) -> None:
        """Create topics, or give topics more partitions."""
        for partition, state in partitions.items():
            self._partitions[partition] = state
            self._by_topic.setdefault(partition.topic, set()).add(partition)

    def configure_topic(self, topic: str, settings: TopicSettings) -> None:
        """Change what a topic's configuration says, from the next step on."""
        self._topics[topic] = settings

    def delete_topic(self, topic: str) -> tuple[Transition, ...]:
        """Delete a topic: at once, or, before KRaft, when none of its partitions moves any more."""
        partitions = sorted(self._by_topic.get(topic, ()))
        if not partitions:
            raise InvalidInputError(f"topic {topic} does not exist")
        if self._rules.holds_off_deletion and not self._reassigning.isdisjoint(partitions):
            self._deleting.add(topic)
            states = ((partition, self._partitions[partition]) for partition in partitions)
            return tuple(Transition(p, DeleteTopic(), state, state, (DeletionHeldOff(),)) for p, state in states)
        return self._delete(topic)

    def _requested(self, partition: TopicPartition, request: Input) -> tuple[Transition, ...]:
        before = self._partitions.get(partition)
        if before is None:
            missing = RequestRefused("UNKNOWN_TOPIC_OR_PARTITION", f"partition {partition} does not exist")
            return (Transition(partition, request, None, None, (missing,)),)
        if partition.topic in self._deleting:
            skipped = RequestSkipped(SkipReason.TOPIC_DELETED, f"topic {partition.topic} is being deleted")
            return (Transition(partition, request, before, before, (skipped,)),)
        return self._step(partition, request)

    def _step_all(self, request: Input) -> tuple[Transition, ...]:
        transitions = [t for partition in sorted(self._partitions) for t in self._step(partition, request)]
        return tuple(transition for transition in transitions if transition.events)

    def _step(self, partition: TopicPartition, request: Input) -> tuple[Transition, ...]:
        before = self.state(partition)
        topic = self._topics.get(partition.topic, TopicSettings())
        brokers = self._brokers
        if offline := self._offline.get(partition):
            if isinstance(request, inputs.UnfenceBroker) and request.broker in offline:
                return ()  # the broker is back, this replica of it is not
            brokers = Brokers(brokers.registered, brokers.alive - offline)
        outcome = self._rules.step(before, request, brokers, topic)
        self._partitions[partition] = outcome.state
        if offline:
            self._offline[partition] = offline.intersection(outcome.state.replicas)
        if outcome.state.reassigning:
            self._reassigning.add(partition)
        else:
            self._reassigning.discard(partition)
        transition = Transition(partition, request, before, outcome.state, outcome.events)
        return (transition, *self._resume_deletion(partition.topic))

    def _resume_deletion(self, topic: str) -> tuple[Transition, ...]:
        if topic not in self._deleting or not self._reassigning.isdisjoint(self._by_topic[topic]):
            return ()
        return self._delete(topic)

    def _delete(self, topic: str) -> tuple[Transition, ...]:
        self._deleting.discard(topic)
        partitions = sorted(self._by_topic.pop(topic))
        self._reassigning.difference_update(partitions)
        for partition in partitions:
            self._offline.pop(partition, None)
        return tuple(
            Transition(partition, DeleteTopic(), self._partitions.pop(partition), None, (TopicDeleted(),))
            for partition in partitions
        )
