"""A controller with several partitions: deaths, deletions, and what is listed as moving."""

import doctest

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.reassignment import (
    KIP_455,
    Brokers,
    Controller,
    PartitionState,
    SkipReason,
    controller,
    state,
)
from rebalance_lib.reassignment.events import DeletionHeldOff, TopicDeleted
from rebalance_lib.topology import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def three_partitions(**kwargs) -> Controller:
    partitions = {
        A0: PartitionState.healthy(1, 2),
        A1: PartitionState.healthy(2, 3),
        B0: PartitionState.healthy(3, 1),
    }
    return Controller(partitions, Brokers.all_alive(1, 2, 3, 4), **kwargs)


@pytest.mark.parametrize("module", [controller, state])
def test_the_examples_of_the_modules(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_a_death_reaches_the_partitions_with_an_in_sync_replica_there_and_no_other():
    model = three_partitions()
    assert [transition.partition for transition in model.fence(1)] == [A0, B0]
    assert model.state(A0).leader == 2
    assert model.brokers.alive == {2, 3, 4}
    assert model.unfence(1) == ()
    assert model.fell_behind(A1, 3)[0].after.isr == (2,)


def test_a_partition_is_listed_as_moving_until_its_target_is_reached():
    model = three_partitions()
    model.reassign(A0, [1, 4])
    model.reassign(B0, [1, 4])
    assert model.reassigning == (A0, B0)
    model.caught_up(A0)
    model.cancel(B0)
    assert model.reassigning == ()
    assert model.partitions[A0].replicas == (1, 4)


def test_a_partition_already_moving_when_the_model_begins_is_listed():
    moving = PartitionState((1, 3, 2), (1, 2), 1, adding=(3,), removing=(2,))
    model = Controller({A0: moving}, Brokers.all_alive(1, 2, 3))
    assert model.reassigning == (A0,)


def test_kraft_deletes_a_topic_with_its_reassignments_at_once():
    model = three_partitions()
    model.reassign(A0, [1, 4])
    transitions = model.delete_topic("a")
    assert [(t.partition, t.after, t.events) for t in transitions] == [
        (A0, None, (TopicDeleted(),)),
        (A1, None, (TopicDeleted(),)),
    ]
    assert model.reassigning == ()
    assert model.reassign(A0, [1, 3])[0].refused.error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_older_controllers_hold_a_deletion_off_while_a_partition_moves():
    model = three_partitions(rules=KIP_455)
    model.reassign(A0, [1, 4])
    assert {t.events for t in model.delete_topic("a")} == {(DeletionHeldOff(),)}
    [skipped] = model.reassign(A1, [2, 4])
    assert skipped.events[0].reason is SkipReason.TOPIC_DELETED
    completed, *deleted = model.caught_up(A0)
    assert completed.after.replicas == (1, 4)
    assert [t.partition for t in deleted] == [A0, A1]
    assert list(model.partitions) == [B0]


def test_older_controllers_delete_a_topic_at_rest_at_once():
    model = three_partitions(rules=KIP_455)
    model.delete_topic("a")
    assert list(model.partitions) == [B0]


def test_a_broker_that_was_killed_is_no_eligible_leader_but_may_be_the_last_known_one():
    model = Controller({A0: PartitionState.healthy(1)}, Brokers.all_alive(1))
    model.fence(1)
    lost, back = model.unfence(1, clean=False)
    assert (lost.after.elr, lost.after.leader) == ((), None)
    assert (back.after.isr, back.after.leader) == ((1,), 1)


def test_requests_for_what_does_not_exist_are_errors():
    model = three_partitions()
    with pytest.raises(InvalidInputError, match="b-7"):
        model.alter_partition(TopicPartition("b", 7), [1])
    with pytest.raises(InvalidInputError, match="topic c"):
        model.delete_topic("c")


def test_the_leader_may_ask_for_any_isr_and_the_preferred_leader_may_be_elected():
    model = three_partitions()
    assert model.alter_partition(A0, [1])[0].after.isr == (1,)
    model.reassign(B0, [1, 3])
    assert model.elect_preferred_leader(B0)[0].after.leader == 1
