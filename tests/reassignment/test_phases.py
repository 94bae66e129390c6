"""A run, read in the phases U1 to B8 and in the twelve steps before them."""

import pytest

from rebalance_lib.reassignment import (
    KIP_455,
    KRAFT,
    Assignment,
    Brokers,
    Controller,
    OldStep,
    PartitionState,
    Phase,
    phases,
    twelve_steps,
)
from rebalance_lib.topology import TopicPartition

T0 = TopicPartition("t", 0)
START = [Phase.U1, Phase.U2, Phase.A1, Phase.A2]
FINISH = [Phase.B1, Phase.B2, Phase.B3, Phase.B4, Phase.B5, Phase.B6, Phase.B7, Phase.B8]


def controller(*replicas, rules=KRAFT) -> Controller:
    return Controller({T0: PartitionState.healthy(*replicas)}, Brokers.all_alive(*range(1, 8)), rules=rules)


@pytest.mark.parametrize("rules", [KRAFT, KIP_455])
def test_a_move_passes_through_every_phase_in_order(rules):
    model = controller(1, 2, 3, rules=rules)
    run = phases(model.reassign(T0, (3, 4, 5, 6)) + model.caught_up(T0, 4) + model.caught_up(T0))
    assert [step.phase for step in run] == [*START, Phase.WAIT, *FINISH]


def test_store_and_memory_differ_from_b2_until_b6():
    model = controller(1, 2, 3)
    run = {step.phase: step for step in phases(model.reassign(T0, (2, 3, 4)) + model.caught_up(T0))}
    moving, done = Assignment((2, 3, 4, 1), (4,), (1,)), Assignment((2, 3, 4))
    assert (run[Phase.U1].stored, run[Phase.U1].in_memory) == (moving, Assignment((1, 2, 3)))
    assert (run[Phase.U2].stored, run[Phase.U2].in_memory) == (moving, moving)
    for phase in (Phase.B2, Phase.B3, Phase.B4, Phase.B5):
        assert (run[phase].stored, run[phase].in_memory) == (moving, done)
    assert (run[Phase.B6].stored, run[Phase.B6].in_memory) == (done, done)


def test_the_leader_moves_in_b3_with_the_isr_unchanged_and_the_isr_shrinks_in_b4():
    model = controller(1, 2, 3)
    run = {step.phase: step for step in phases(model.reassign(T0, (2, 3, 4)) + model.caught_up(T0))}
    assert (run[Phase.B2].leader, run[Phase.B2].isr) == (1, (1, 2, 3, 4))
    assert (run[Phase.B3].leader, run[Phase.B3].isr) == (2, (1, 2, 3, 4))
    assert (run[Phase.B4].leader, run[Phase.B4].isr) == (2, (2, 3, 4))
    assert (run[Phase.A2].touched, run[Phase.B4].touched, run[Phase.B5].touched) == ((4,), (1,), (1,))


def test_the_twelve_steps_of_the_worked_example():
    model = controller(1, 2, 3)
    run = twelve_steps(model.reassign(T0, (2, 3, 4)) + model.caught_up(T0))
    assert run == (
        OldStep(1, "AR = OAR + RAR = {2,3,4,1} in ZooKeeper and in memory"),
        OldStep(2, "LeaderAndIsr to every replica of {2,3,4,1}, with a new leader epoch"),
        OldStep(3, "RAR - OAR = {4} become NewReplica"),
        OldStep(5, "RAR {2,3,4} become OnlineReplica"),
        OldStep(6, "AR = RAR = {2,3,4} in memory"),
        OldStep(7, "LeaderAndIsr to RAR {2,3,4}: new leader 2"),
        OldStep(8, "OAR - RAR = {1} become OfflineReplica, ISR {2,3,4}"),
        OldStep(9, "OAR - RAR = {1} become NonExistentReplica, their logs are deleted"),
        OldStep(10, "AR = RAR = {2,3,4} in ZooKeeper"),
        OldStep(11, "the partition leaves /admin/reassign_partitions"),
        OldStep(12, "UpdateMetadata to every broker"),
    )


def test_a_wait_is_the_fourth_of_the_twelve_steps():
    model = controller(1, 2)
    model.reassign(T0, (3, 4))
    assert twelve_steps(model.caught_up(T0, 3)) == (OldStep(4, "wait until RAR {3,4} is in the ISR, now {1,2,3}"),)


def test_the_twelve_steps_are_numbered_without_a_gap():
    assert sorted({phase.step for phase in Phase}) == list(range(1, 13))


def test_what_completes_at_once_skips_a1_and_a2():
    assert [step.phase for step in phases(controller(1, 2, 3).reassign(T0, (2,)))] == [*START[:2], *FINISH]


def test_an_override_stops_unwanted_replicas_in_u2_on_older_controllers_only():
    for rules, stopped in ((KIP_455, (3,)), (KRAFT, ())):
        model = controller(1, 2, rules=rules)
        model.reassign(T0, (1, 3))
        run = {step.phase: step for step in phases(model.reassign(T0, (1, 4)))}
        assert run[Phase.U2].touched == stopped


def test_a_cancel_is_an_update_and_a_completion():
    model = controller(1, 2, 3)
    model.reassign(T0, (2, 3, 4))
    run = phases(model.cancel(T0))
    assert [step.phase for step in run] == [*START[:2], *FINISH]
    assert run[-1].stored == Assignment((2, 3, 1))


def test_what_changes_no_reassignment_has_no_phase():
    model = controller(1, 2)
    assert phases(model.cancel(T0) + model.reassign(T0, (1, 2)) + model.fence(2) + model.delete_topic("t")) == ()
