"""Whatever happens to a partition, in whatever order, these hold."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rebalance_lib.reassignment import KIP_455, KRAFT, Brokers, PartitionState, TopicSettings
from rebalance_lib.reassignment.events import ReassignmentCompleted
from rebalance_lib.reassignment.inputs import (
    AlterPartition,
    Cancel,
    ElectPreferredLeader,
    FenceBroker,
    Reassign,
    UnfenceBroker,
    caught_up,
)
from rebalance_lib.reassignment.state import with_appended

BROKERS = range(1, 7)
replica_lists = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True).map(tuple)


class Partition(RuleBasedStateMachine):
    """One partition under requests, catching up, deaths and returns; no unclean elections."""

    controller = KRAFT

    @initialize(replicas=replica_lists, min_isr=st.integers(1, 3), elr=st.booleans())
    def create(self, replicas, min_isr, elr):
        self.topic = TopicSettings(min_insync_replicas=min_isr, eligible_leader_replicas=elr)
        self.brokers = Brokers.all_alive(*BROKERS)
        self.state = PartitionState.healthy(*replicas)

    def step(self, request):
        before = self.state
        outcome = self.controller.step(before, request, self.brokers, self.topic)
        if outcome.refused is not None:
            assert outcome.state == before
        for event in outcome.events:
            if isinstance(event, ReassignmentCompleted):
                self.completed_rightly(event, outcome.state)
        assert outcome.state.leader_epoch >= before.leader_epoch
        if outcome.state.leader != before.leader:
            assert outcome.state.leader_epoch > before.leader_epoch
            if not isinstance(request, ElectPreferredLeader | FenceBroker):
                assert before.leader not in outcome.state.isr, "the leader moved without need"
        survivors = frozenset(outcome.state.isr + outcome.state.elr)
        assert survivors, "no replica is left that is known to have all that was committed"
        if not isinstance(request, AlterPartition):
            assert survivors <= frozenset(before.isr + before.elr), "a replica joined the ISR without catching up"
        self.state = outcome.state
        return outcome

    def completed_rightly(self, event, state):
        adding, target = frozenset(event.assignment.adding), frozenset(event.assignment.target)
        assert state.replicas == event.assignment.target
        assert adding <= frozenset(state.isr), "a new replica counts before it has caught up"
        if len(adding) < len(event.assignment.removing):
            assert target == frozenset(state.isr), "fewer replicas, and not all of them in sync"

    @rule(replicas=replica_lists)
    def reassign(self, replicas):
        at_rest = not self.state.reassigning
        outcome = self.step(Reassign(replicas))
        if at_rest and not outcome.refused and self.state.reassigning:
            assert self.state.target == replicas
            assert frozenset(self.state.original) == frozenset(self.state.replicas) - frozenset(self.state.adding)

    @precondition(lambda self: self.state.reassigning)
    @rule()
    def cancel(self):
        original, adding = self.state.original, frozenset(self.state.adding)
        in_sync_originals = frozenset(self.state.isr) - adding
        outcome = self.step(Cancel())
        assert (outcome.refused is None) == bool(in_sync_originals)
        if outcome.refused is None:
            assert (self.state.replicas, self.state.reassigning) == (original, False)

    @precondition(lambda self: self.state.leader is not None)
    @rule(data=st.data())
    def followers_catch_up(self, data):
        live = [replica for replica in self.state.replicas if replica in self.brokers.alive]
        followers = data.draw(st.lists(st.sampled_from(live), unique=True))
        outcome = self.step(AlterPartition(with_appended(self.state.isr, tuple(followers))))
        assert outcome.refused is None

    @precondition(lambda self: self.state.leader is not None)
    @rule(data=st.data())
    def followers_fall_behind(self, data):
        staying = data.draw(st.sets(st.sampled_from(self.state.isr)))
        outcome = self.step(AlterPartition(tuple(b for b in self.state.isr if b in staying | {self.state.leader})))
        assert outcome.refused is None

    @rule(broker=st.sampled_from(BROKERS))
    def die(self, broker):
        self.step(FenceBroker(broker))
        self.brokers = self.brokers.fence(broker)

    @rule(broker=st.sampled_from(BROKERS))
    def come_back(self, broker):
        self.step(UnfenceBroker(broker))
        self.brokers = self.brokers.unfence(broker)

    @rule()
    def elect_preferred_leader(self):
        outcome = self.step(ElectPreferredLeader())
        assert outcome.refused or self.state.leader == self.state.replicas[0]

    @precondition(lambda self: self.state.reassigning and not self.state.assignment.stuck)
    @rule()
    def all_targets_return_and_catch_up(self):
        target = self.state.target
        for broker in BROKERS:
            self.come_back(broker)
        outcome = self.step(caught_up(self.state, *target))
        assert any(isinstance(event, ReassignmentCompleted) for event in outcome.events)
        assert (self.state.replicas, self.state.reassigning) == (target, False)
        assert frozenset(self.state.isr) == frozenset(target)
        assert self.state.leader in target

    @invariant()
    def in_sync_replicas_are_replicas(self):
        assert frozenset(self.state.isr) <= frozenset(self.state.replicas)
        assert len(frozenset(self.state.isr)) == len(self.state.isr)

    @invariant()
    def the_leader_is_alive_and_in_sync_or_there_is_none(self):
        if self.state.leader is not None:
            assert self.state.leader in self.state.isr
            assert self.state.leader in self.brokers.alive

    @invariant()
    def there_is_a_leader_if_one_in_sync_is_alive(self):
        if self.brokers.alive.intersection(self.state.isr):
            assert self.state.leader is not None

    @invariant()
    def replicas_are_original_and_target_and_each_broker_once(self):
        state = self.state
        assert len(frozenset(state.replicas)) == len(state.replicas)
        assert frozenset(state.adding) | frozenset(state.removing) <= frozenset(state.replicas)
        if not state.assignment.stuck:
            assert frozenset(state.adding).isdisjoint(state.removing)
            assert frozenset(state.replicas) == frozenset(state.original) | frozenset(state.target)
        assert state.target


class OlderPartition(Partition):
    """The same under a controller on ZooKeeper, which never gets stuck."""

    controller = KIP_455

    @invariant()
    def never_stuck(self):
        assert not self.state.assignment.stuck


TestKraft = Partition.TestCase
TestKraft.settings = settings(stateful_step_count=30)
TestZooKeeper = OlderPartition.TestCase
TestZooKeeper.settings = settings(stateful_step_count=30)
