"""How a KRaft controller moves a partition, from the request to the last replica stopped."""

import pytest

from rebalance_lib.reassignment import KRAFT, Assignment, Brokers, PartitionState, SkipReason, TopicSettings
from rebalance_lib.reassignment.events import (
    IsrChanged,
    LeaderChanged,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentOverridden,
    ReassignmentStarted,
    ReassignmentStuck,
    ReplicasReordered,
    ReplicasStarted,
    ReplicasStopped,
    RequestRefused,
    RequestSkipped,
    TargetDiffers,
    TargetsNotAlive,
)
from rebalance_lib.reassignment.inputs import (
    AlterPartition,
    Cancel,
    ElectPreferredLeader,
    FenceBroker,
    Reassign,
    UnfenceBroker,
    caught_up,
    fell_behind,
)
from rebalance_lib.reassignment.kraft import complete, propose

SIX = Brokers.all_alive(1, 2, 3, 4, 5, 6)
PLAIN = TopicSettings()


def after(state, *requests, brokers=SIX, topic=PLAIN):
    """The last outcome of these requests, one after the other."""
    for request in requests:
        outcome = KRAFT.step(state, request, brokers, topic)
        state = outcome.state
    return outcome


def test_the_worked_example_of_the_module():
    started = after(PartitionState.healthy(1, 2, 3), Reassign((2, 3, 4)))
    assert started.state == PartitionState((2, 3, 4, 1), (1, 2, 3), 1, adding=(4,), removing=(1,))
    assert started.events == (
        ReassignmentStarted((1, 2, 3), Assignment((2, 3, 4, 1), (4,), (1,))),
        ReplicasStarted((4,)),
    )
    completed = after(started.state, caught_up(started.state))
    assert completed.state == PartitionState((2, 3, 4), (2, 3, 4), 2, leader_epoch=1)
    assert completed.events == (
        LeaderChanged(1, 2),
        IsrChanged((1, 2, 3), (2, 3, 4)),
        ReplicasStopped((1,)),
        ReassignmentCompleted(Assignment((2, 3, 4, 1), (4,), (1,)), (1, 2, 3, 4)),
    )


def test_a_larger_replica_set_is_the_union_on_the_way():
    moving = after(PartitionState.healthy(1, 2, 3), Reassign((3, 4, 5, 6))).state
    assert moving.assignment == Assignment((3, 4, 5, 6, 1, 2), adding=(4, 5, 6), removing=(1, 2))
    assert set(moving.replicas) == {1, 2, 3, 4, 5, 6}
    for follower in (5, 4):
        moving = after(moving, caught_up(moving, follower)).state
        assert moving.reassigning
    done = after(moving, caught_up(moving, 6)).state
    assert (done.replicas, sorted(done.isr), done.leader) == ((3, 4, 5, 6), [3, 4, 5, 6], 3)


def test_a_leader_within_the_target_stays():
    moving = after(PartitionState.healthy(1, 2, 3), Reassign((4, 3, 1))).state
    done = after(moving, caught_up(moving))
    assert done.state.leader == 1
    assert not [event for event in done.events if isinstance(event, LeaderChanged)]


def test_another_order_is_done_at_once_and_moves_neither_data_nor_leader():
    outcome = after(PartitionState.healthy(1, 2, 3), Reassign((3, 1, 2)))
    assert outcome.events == (ReplicasReordered((1, 2, 3), (3, 1, 2)),)
    assert (outcome.state.leader, outcome.state.leader_epoch) == (1, 0)
    assert after(outcome.state, ElectPreferredLeader()).state.leader == 3


def test_fewer_replicas_in_sync_are_done_at_once():
    outcome = after(PartitionState.healthy(1, 2, 3), Reassign((2,)))
    assert outcome.state == PartitionState((2,), (2,), 2, leader_epoch=1)
    assert isinstance(outcome.events[0], ReassignmentStarted)
    assert isinstance(outcome.events[-1], ReassignmentCompleted)


def test_fewer_replicas_wait_until_all_that_stay_are_in_sync():
    lagging = after(PartitionState.healthy(1, 2, 3), fell_behind(PartitionState.healthy(1, 2, 3), 3)).state
    waiting = after(lagging, Reassign((1, 3))).state
    assert waiting.assignment == Assignment((1, 3, 2), removing=(2,))
    assert after(waiting, caught_up(waiting, 3)).state.replicas == (1, 3)


def test_an_unmoved_replica_out_of_sync_does_not_block_a_move_of_equal_size():
    lagging = after(PartitionState.healthy(1, 2, 3), fell_behind(PartitionState.healthy(1, 2, 3), 3)).state
    moving = after(lagging, Reassign((1, 3, 4))).state
    done = after(moving, caught_up(moving, 4)).state
    assert (done.replicas, sorted(done.isr)) == ((1, 3, 4), [1, 4])


def test_the_same_replicas_and_the_target_in_flight_are_skipped():
    at_rest = PartitionState.healthy(1, 2, 3)
    [skipped] = after(at_rest, Reassign((1, 2, 3))).events
    assert isinstance(skipped, RequestSkipped)
    assert skipped.reason is SkipReason.SAME_REPLICAS
    outcome = after(at_rest, Reassign((2, 3, 4)), Reassign((2, 3, 4)))
    [skipped] = outcome.events
    assert skipped.reason is SkipReason.ALREADY_MOVING
    assert outcome.state.target == (2, 3, 4)


def test_a_new_target_drops_the_older_but_its_replicas_stop_only_at_the_end():
    overridden = after(PartitionState.healthy(1, 2), Reassign((1, 3)), Reassign((1, 4)))
    assert overridden.state.assignment == Assignment((1, 4, 2, 3), adding=(4,), removing=(2, 3))
    assert overridden.events == (
        ReassignmentOverridden((1, 3), Assignment((1, 4, 2, 3), (4,), (2, 3))),
        ReplicasStarted((4,)),
    )
    done = after(overridden.state, caught_up(overridden.state))
    assert done.state.replicas == (1, 4)
    assert ReplicasStopped((2, 3)) in done.events


def test_a_cancel_after_an_override_keeps_the_replicas_of_the_dropped_target():
    outcome = after(PartitionState.healthy(1, 2), Reassign((1, 3)), Reassign((1, 4)), Cancel())
    assert outcome.state.replicas == (1, 2, 3)


def test_going_back_by_a_target_gets_stuck_where_a_cancel_does_not():
    moving = after(PartitionState.healthy(1, 2, 3), Reassign((2, 3, 4))).state
    back = after(moving, Reassign((1, 2, 3)))
    assert ReassignmentStuck((4,)) in back.events
    assert after(back.state, caught_up(back.state, 4)).state.reassigning
    assert after(back.state, Cancel()).state.replicas == (1, 2, 3)


def test_a_target_of_all_replicas_in_flight_has_no_effect():
    moving = after(PartitionState.healthy(1, 2, 3), Reassign((2, 3, 4))).state
    outcome = after(moving, Reassign((2, 3, 4, 1)))
    assert outcome.state == moving
    assert TargetDiffers((2, 3, 4, 1), (2, 3, 4)) in outcome.events


def test_a_cancel_gives_back_the_original_set_in_the_order_in_flight():
    outcome = after(PartitionState.healthy(1, 2, 3), Reassign((2, 3, 4)), Cancel())
    assert outcome.state == PartitionState((2, 3, 1), (1, 2, 3), 1, leader_epoch=1)
    assert outcome.events == (ReassignmentCancelled((2, 3, 4), (2, 3, 1)), ReplicasStopped((4,)))


def test_a_cancel_moves_the_leader_off_a_replica_that_was_being_added():
    moving = after(PartitionState.healthy(1, 2), Reassign((3, 4))).state
    led_by_new = after(moving, caught_up(moving, 3), ElectPreferredLeader()).state
    assert led_by_new.leader == 3
    assert after(led_by_new, Cancel()).state.leader in {1, 2}


def test_a_cancel_without_a_reassignment_is_refused():
    assert after(PartitionState.healthy(1, 2), Cancel()).refused == RequestRefused(
        "NO_REASSIGNMENT_IN_PROGRESS", "no reassignment is in progress"
    )


def only_new_replicas_in_sync(topic=PLAIN):
    """{4} moves to {1,2}; 1 has caught up, then 4 dies."""
    moving = after(PartitionState.healthy(4), Reassign((1, 2)), topic=topic).state
    return after(moving, caught_up(moving, 1), FenceBroker(4), topic=topic).state


def test_a_cancel_is_refused_where_no_original_replica_is_in_sync():
    state = only_new_replicas_in_sync()
    assert (state.isr, state.leader) == ((1,), 1)
    outcome = after(state, Cancel(), brokers=SIX.fence(4))
    assert outcome.refused.error == "INVALID_REPLICA_ASSIGNMENT"
    assert outcome.state == state


def test_where_unclean_election_is_allowed_such_a_cancel_loses_the_leader():
    topic = TopicSettings(unclean_leader_election=True)
    outcome = after(only_new_replicas_in_sync(topic), Cancel(), brokers=SIX.fence(4), topic=topic)
    assert (outcome.state.replicas, outcome.state.leader) == ((4,), None)
    assert outcome.state.last_known_elr == (1,)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Reassign(()), "INVALID_REPLICA_ASSIGNMENT"),
        (Reassign((1, 1)), "INVALID_REPLICA_ASSIGNMENT"),
        (Reassign((1, 99)), "INVALID_REPLICA_ASSIGNMENT"),
        (Reassign((1, 2), allow_replication_factor_change=False), "INVALID_REPLICATION_FACTOR"),
        (AlterPartition(()), "INVALID_REQUEST"),
        (AlterPartition((2, 3)), "INVALID_REQUEST"),
        (AlterPartition((1, 4)), "INVALID_REQUEST"),
        (AlterPartition((1, 2, 2)), "INVALID_REQUEST"),
        (ElectPreferredLeader(), "ELECTION_NOT_NEEDED"),
    ],
)
def test_what_is_refused_changes_nothing(request_, error):
    state = PartitionState.healthy(1, 2, 3)
    outcome = after(state, request_)
    assert outcome.refused.error == error
    assert outcome.state == state


def test_the_factor_in_flight_counts_when_the_factor_must_not_change():
    moving = after(PartitionState.healthy(1, 2), Reassign((1, 3))).state
    assert after(moving, Reassign((1, 4), allow_replication_factor_change=False)).refused is None
    assert after(moving, Reassign((1, 3, 4), allow_replication_factor_change=False)).refused is not None


def test_a_dead_broker_is_accepted_as_target_and_waited_for():
    outcome = after(PartitionState.healthy(1, 2), Reassign((4,)), brokers=SIX.fence(4))
    assert TargetsNotAlive((4,)) in outcome.events
    assert outcome.state.assignment == Assignment((4, 1, 2), adding=(4,), removing=(1, 2))
    assert after(outcome.state, caught_up(outcome.state), brokers=SIX.fence(4)).refused.error == "INELIGIBLE_REPLICA"
    done = after(outcome.state, UnfenceBroker(4), caught_up(outcome.state)).state
    assert (done.replicas, done.leader) == ((4,), 4)


def test_the_leader_moves_to_the_first_replica_in_sync_when_it_dies_on_the_way():
    moving = after(PartitionState.healthy(1, 2, 3), Reassign((4, 1, 3))).state
    outcome = after(moving, FenceBroker(1))
    assert (outcome.state.isr, outcome.state.leader) == ((2, 3), 3)
    assert outcome.events == (LeaderChanged(1, 3), IsrChanged((1, 2, 3), (2, 3)))


def test_a_preferred_leader_out_of_sync_is_not_elected():
    lagging = after(PartitionState.healthy(1, 2), Reassign((2, 1)), AlterPartition((1,))).state
    assert after(lagging, ElectPreferredLeader()).refused.error == "PREFERRED_LEADER_NOT_AVAILABLE"


def test_a_partition_whose_last_replica_died_is_led_by_it_again():
    eligible = after(PartitionState.healthy(1), FenceBroker(1)).state
    assert (eligible.isr, eligible.elr, eligible.leader) == ((), (1,), None)
    assert after(eligible, AlterPartition((1,))).refused.error == "INVALID_REQUEST"
    back = after(eligible, UnfenceBroker(1)).state
    assert (back.isr, back.elr, back.leader) == ((1,), (), 1)


def test_without_eligible_leader_replicas_the_last_one_stays_in_the_isr():
    older = TopicSettings(eligible_leader_replicas=False)
    leaderless = after(PartitionState.healthy(1), FenceBroker(1), topic=older).state
    assert (leaderless.isr, leaderless.elr, leaderless.leader) == ((1,), (), None)
    assert after(leaderless, UnfenceBroker(1), topic=older).state.leader == 1


def test_an_unclean_election_takes_any_live_replica():
    topic = TopicSettings(unclean_leader_election=True, eligible_leader_replicas=False)
    alone = after(PartitionState.healthy(1, 2), AlterPartition((1,)), topic=topic).state
    elected = after(alone, FenceBroker(1), topic=topic).state
    assert (elected.isr, elected.leader) == ((2,), 2)


def test_below_min_isr_who_leaves_stays_eligible_to_lead():
    topic = TopicSettings(min_insync_replicas=2)
    low = after(PartitionState.healthy(1, 2), FenceBroker(2), topic=topic).state
    assert (low.isr, low.elr) == ((1,), (2,))
    gone = after(low, FenceBroker(1), brokers=SIX.fence(2), topic=topic).state
    assert (gone.isr, gone.elr, gone.leader) == ((), (1, 2), None)
    led = after(gone, UnfenceBroker(2), brokers=SIX.fence(1).fence(2), topic=topic).state
    assert (led.isr, led.elr, led.leader) == ((2,), (1,), 2)


def test_adding_and_removing_are_by_broker_id_and_the_removing_come_last():
    assert propose(Assignment((9, 1, 5)), (7, 5, 3)) == Assignment((7, 5, 3, 1, 9), (3, 7), (1, 9))


@pytest.mark.parametrize(
    ("assignment", "isr", "expected"),
    [
        (Assignment((1, 2)), (1, 2), False),
        (Assignment((2, 3, 1), (3,), (1,)), (1, 3), True),
        (Assignment((2, 3, 1), (3,), (1,)), (1, 2), False),
        (Assignment((2, 1), (), (1,)), (1,), False),
        (Assignment((2, 3, 1), (), (1,)), (1, 2), False),
        (Assignment((2, 3, 1), (), (1,)), (2, 3), True),
        (Assignment((1, 2, 3), (3,), ()), (1, 3), True),
    ],
)
def test_when_an_isr_completes_a_reassignment(assignment, isr, expected):
    assert complete(assignment, isr) is expected
