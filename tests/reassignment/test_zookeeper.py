"""How controllers on ZooKeeper moved a partition, since KIP-455 and before."""

import pytest

from rebalance_lib.reassignment import (
    BEFORE_KIP_455,
    KIP_455,
    Assignment,
    Brokers,
    PartitionState,
    SkipReason,
    TopicSettings,
)
from rebalance_lib.reassignment.events import (
    LeaderChanged,
    ReassignmentOverridden,
    ReplicasReordered,
    ReplicasStarted,
    ReplicasStopped,
)
from rebalance_lib.reassignment.inputs import (
    AlterPartition,
    Cancel,
    ElectPreferredLeader,
    FenceBroker,
    Reassign,
    UncleanShutdown,
    UnfenceBroker,
    caught_up,
)

BROKERS = Brokers.all_alive(*range(1, 9))
PLAIN = TopicSettings()


def after(state, *requests, rules=KIP_455, brokers=BROKERS, topic=PLAIN):
    for request in requests:
        outcome = rules.step(state, request, brokers, topic)
        state = outcome.state
    return outcome


def test_the_worked_example_of_the_module():
    started = after(PartitionState.healthy(1, 2, 3), Reassign((3, 4, 5, 6))).state
    assert started.assignment == Assignment((3, 4, 5, 6, 1, 2), (4, 5, 6), (1, 2))
    overridden = after(started, Reassign((3, 4, 7)))
    assert overridden.state.assignment == Assignment((3, 4, 7, 1, 2), (4, 7), (1, 2))
    assert overridden.events == (
        ReassignmentOverridden((3, 4, 5, 6), Assignment((3, 4, 7, 1, 2), (4, 7), (1, 2))),
        ReplicasStarted((7,)),
        ReplicasStopped((5, 6)),
    )
    done = after(overridden.state, caught_up(overridden.state))
    assert (done.state.replicas, done.state.leader) == ((3, 4, 7), 3)
    assert LeaderChanged(1, 3) in done.events


def test_the_whole_target_must_be_in_sync():
    lagging = after(PartitionState.healthy(1, 2, 3), AlterPartition((1, 2))).state
    moving = after(lagging, Reassign((1, 3, 4))).state
    assert after(moving, caught_up(moving, 4)).state.reassigning
    assert after(moving, caught_up(moving, 4, 3)).state.replicas == (1, 3, 4)


def test_start_and_completion_each_open_a_leader_epoch_even_if_the_leader_stays():
    moving = after(PartitionState.healthy(1, 2, 3), Reassign((1, 2, 4))).state
    assert moving.leader_epoch == 1
    done = after(moving, caught_up(moving)).state
    assert (done.leader, done.leader_epoch) == (1, 2)


def test_a_cancel_stops_what_was_being_added_at_once_and_keeps_no_leftover():
    outcome = after(PartitionState.healthy(1, 2), Reassign((1, 3)), Reassign((1, 4)), Cancel())
    assert set(outcome.state.replicas) == {1, 2}
    assert ReplicasStopped((4,)) in outcome.events


def test_going_back_by_a_target_completes_at_once():
    outcome = after(PartitionState.healthy(1, 2, 3), Reassign((2, 3, 4)), Reassign((1, 2, 3)))
    assert outcome.state.assignment == Assignment((1, 2, 3))
    assert ReplicasStopped((4,)) in outcome.events


def test_fewer_replicas_in_sync_are_done_at_once_and_another_order_too():
    assert after(PartitionState.healthy(1, 2, 3), Reassign((2,))).state.replicas == (2,)
    outcome = after(PartitionState.healthy(1, 2, 3), Reassign((3, 1, 2)))
    assert outcome.events == (ReplicasReordered((1, 2, 3), (3, 1, 2)),)


@pytest.mark.parametrize("rules", [KIP_455, BEFORE_KIP_455])
def test_same_replicas_and_dead_targets_are_skipped(rules):
    state = PartitionState.healthy(1, 2)
    [same] = after(state, Reassign((1, 2)), rules=rules).events
    assert same.reason is SkipReason.SAME_REPLICAS
    [dead] = after(state, Reassign((3, 4)), rules=rules, brokers=BROKERS.fence(3).fence(4)).events
    assert dead.reason is SkipReason.TARGETS_DEAD


def test_before_kip_455_a_moving_partition_is_skipped_and_nothing_is_cancelled():
    moving = after(PartitionState.healthy(1, 2), Reassign((1, 3)), rules=BEFORE_KIP_455).state
    outcome = after(moving, Reassign((1, 4)), rules=BEFORE_KIP_455)
    assert outcome.state == moving
    assert outcome.events[0].reason is SkipReason.ALREADY_MOVING
    assert after(moving, Cancel(), rules=BEFORE_KIP_455).refused.error == "UNSUPPORTED_VERSION"


def test_since_kip_455_the_target_in_flight_is_skipped_and_a_dead_new_replica_is_an_error():
    moving = after(PartitionState.healthy(1, 2), Reassign((1, 3))).state
    assert after(moving, Reassign((1, 3))).events[0].reason is SkipReason.ALREADY_MOVING
    refused = after(moving, Reassign((1, 4)), brokers=BROKERS.fence(4)).refused
    assert refused.error == "INVALID_REPLICA_ASSIGNMENT"
    accepted = after(PartitionState.healthy(1, 2), Reassign((1, 4)), brokers=BROKERS.fence(4), rules=BEFORE_KIP_455)
    assert accepted.state.adding == (4,)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Reassign(()), "INVALID_REPLICA_ASSIGNMENT"),
        (Reassign((1, 1)), "INVALID_REPLICA_ASSIGNMENT"),
        (Cancel(), "NO_REASSIGNMENT_IN_PROGRESS"),
        (AlterPartition((2,)), "INVALID_REQUEST"),
        (ElectPreferredLeader(), "ELECTION_NOT_NEEDED"),
    ],
)
def test_what_is_refused_changes_nothing(request_, error):
    state = PartitionState.healthy(1, 2)
    outcome = after(state, request_)
    assert (outcome.refused.error, outcome.state) == (error, state)


def test_what_would_leave_no_replica_in_sync_is_refused():
    moving = after(PartitionState.healthy(4), Reassign((1, 2))).state
    stranded = after(moving, caught_up(moving, 1), FenceBroker(4)).state
    assert (stranded.isr, stranded.leader) == ((1,), 1)
    dead = BROKERS.fence(4)
    assert after(stranded, Cancel(), brokers=dead).refused.error == "INVALID_REPLICA_ASSIGNMENT"
    assert after(stranded, Reassign((2, 3)), brokers=dead).refused.error == "INVALID_REPLICA_ASSIGNMENT"


def test_the_last_replica_in_sync_stays_in_the_isr_when_it_dies_and_leads_when_it_is_back():
    leaderless = after(PartitionState.healthy(1), FenceBroker(1)).state
    assert (leaderless.isr, leaderless.leader) == ((1,), None)
    assert after(leaderless, UncleanShutdown(1)).state == leaderless
    assert after(leaderless, UnfenceBroker(1)).state.leader == 1


def test_an_unclean_election_takes_any_live_replica():
    topic = TopicSettings(unclean_leader_election=True)
    alone = after(PartitionState.healthy(1, 2), AlterPartition((1,)), topic=topic).state
    elected = after(alone, FenceBroker(1), topic=topic).state
    assert (elected.isr, elected.leader) == ((2,), 2)
    nobody = after(alone, FenceBroker(1), topic=topic, brokers=BROKERS.fence(2)).state
    assert nobody.leader is None


def test_the_preferred_leader_is_elected_if_it_is_in_sync():
    reordered = after(PartitionState.healthy(1, 2), Reassign((2, 1))).state
    assert after(reordered, ElectPreferredLeader()).state.leader == 2
    lagging = after(reordered, AlterPartition((1,))).state
    assert after(lagging, ElectPreferredLeader()).refused.error == "PREFERRED_LEADER_NOT_AVAILABLE"


def test_a_follower_that_dies_and_returns_leaves_the_leader_alone():
    state = PartitionState.healthy(1, 2)
    assert after(state, FenceBroker(2)).state.isr == (1,)
    assert after(state, FenceBroker(3)).events == ()
    assert after(state, UnfenceBroker(2)).events == ()
