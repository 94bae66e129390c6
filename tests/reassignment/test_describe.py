"""A dry run as text."""

import inspect

from rebalance_lib.reassignment import (
    KIP_455,
    Brokers,
    Controller,
    PartitionState,
    describe,
    phase_lines,
    timeline,
)
from rebalance_lib.topology import TopicPartition

T0 = TopicPartition("t", 0)


def controller(*replicas, **kwargs) -> Controller:
    return Controller({T0: PartitionState.healthy(*replicas)}, Brokers.all_alive(1, 2, 3, 4), **kwargs)


def test_the_worked_example_of_the_module():
    model = controller(1, 2, 3)
    lines = list(timeline(model.reassign(T0, (2, 3, 4)) + model.caught_up(T0)))
    example = [line.strip() for line in inspect.getdoc(describe).splitlines() if line.startswith("    t-0")]
    assert lines == example


def test_every_input_and_event_has_its_words():
    model = controller(1, 2, rules=KIP_455)
    run = [
        *model.cancel(T0),
        *model.reassign(T0, (2, 1)),
        *model.elect_preferred_leader(T0),
        *model.reassign(T0, (3, 4)),
        *model.reassign(T0, (1, 3)),
        *model.reassign(T0, (1, 3)),
        *model.fence(2),
        *model.delete_topic("t"),
        *model.cancel(T0),
        *model.caught_up(T0),
    ]
    assert list(timeline(run)) == [
        "t-0  cancel",
        "t-0    refused, NO_REASSIGNMENT_IN_PROGRESS: no reassignment is in progress",
        "t-0  reassign to 2,1",
        "t-0    order 1,2 to 2,1, no data moves",
        "t-0  elect the preferred leader",
        "t-0    leader 1 to 2",
        "t-0  reassign to 3,4",
        "t-0    starts: 2,1 to 3,4, adding 3,4, removing 2,1",
        "t-0    brokers 3,4 begin to fetch",
        "t-0  reassign to 1,3",
        "t-0    target 3,4 dropped for 1,3, adding 3, removing 2",
        "t-0    broker 4 stops and deletes its log",
        "t-0  reassign to 1,3",
        "t-0    skipped: already moving to 1,3",
        "t-0  broker 2 dies",
        "t-0    leader 2 to 1",
        "t-0    ISR 1,2 to 1",
        "t-0  delete the topic",
        "t-0    held off until no partition of the topic is moving",
        "t-0  cancel",
        "t-0    skipped: topic t is being deleted",
        "t-0  the leader asks for ISR 1,3",
        "t-0    ISR 1 to 1,3",
        "t-0    broker 2 stops and deletes its log",
        "t-0    complete: 1,3",
        "t-0  delete the topic",
        "t-0    deleted",
    ]


def test_what_the_kraft_controller_does_not_say_is_a_warning():
    model = controller(1, 2, 3)
    model.fence(4)
    lines = list(timeline(model.reassign(T0, (2, 3, 4)) + model.reassign(T0, (2, 3, 4, 1))))
    assert "t-0    warning: waits for broker 4, not alive" in lines
    assert "t-0    warning: heads for 2,3,4, not for 2,3,4,1" in lines
    lines = list(timeline(model.reassign(T0, (1, 2, 3)) + model.cancel(T0)))
    assert "t-0    warning: cannot complete, broker 4 both added and removed; cancel it" in lines
    assert "t-0    target 1,2,3 dropped, stays on 1,2,3" in lines


def test_a_partition_without_a_leader_is_said_to_have_none():
    model = controller(1)
    run = model.fence(1) + model.unfence(1, clean=False)
    assert list(timeline(run)) == [
        "t-0  broker 1 dies",
        "t-0    leader 1 to none",
        "t-0    ISR 1 to none",
        "t-0    eligible to lead outside the ISR none to 1",
        "t-0  broker 1 registers after an unclean shutdown",
        "t-0    eligible to lead outside the ISR 1 to none",
        "t-0  broker 1 is back",
        "t-0    leader none to 1",
        "t-0    ISR none to 1",
    ]


def test_the_phases_show_what_is_assigned_after_each():
    model = controller(1, 2, 3)
    lines = list(phase_lines(model.reassign(T0, (2, 3, 4)) + model.caught_up(T0)))
    assert lines[2] == ("A1    LeaderAndIsr to ORS + TRS: RS 2,3,4,1, adding 4, removing 1, ISR 1,2,3, leader 1")
    assert lines[-1] == "B8    UpdateMetadata to every broker: RS 2,3,4, ISR 2,3,4, leader 2"
