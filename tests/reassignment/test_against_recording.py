"""The model takes the steps of a real 4.3.1 controller, whose log ``record_transitions`` has recorded."""

import json
from pathlib import Path

import pytest

from rebalance_lib.reassignment import KRAFT, Brokers, Controller, PartitionState, TopicSettings
from rebalance_lib.reassignment import inputs as given
from rebalance_lib.reassignment.events import RequestRefused
from rebalance_lib.topology import TopicPartition

RECORDING = json.loads((Path(__file__).parent / "kraft_4_3_1.json").read_text())
WITHOUT_DELETION = sorted(set(RECORDING) - {"deleted-in-flight"})


def state_of(registration: dict) -> PartitionState:
    lists = ("replicas", "isr", "adding", "removing", "elr", "last_known_elr")
    values = {name: tuple(registration[name]) for name in lists}
    return PartitionState(leader=registration["leader"], leader_epoch=registration["leader_epoch"], **values)


def comparable(state: PartitionState) -> dict:
    """Of the ISR only the members count: its order is the leader's choice and means nothing."""
    return {
        "replicas": state.replicas,
        "adding": state.adding,
        "removing": state.removing,
        "isr": sorted(state.isr),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "elr": sorted(state.elr),
        "last_known_elr": state.last_known_elr,
    }


def input_of(step: dict) -> given.Input:
    if "reassign" in step:
        return given.Reassign(tuple(step["reassign"]), step.get("allow_replication_factor_change", True))
    kinds = {
        "cancel": lambda _: given.Cancel(),
        "alter_partition": lambda isr: given.AlterPartition(tuple(isr)),
        "elect_preferred": lambda _: given.ElectPreferredLeader(),
        "fenced": given.FenceBroker,
        "unfenced": given.UnfenceBroker,
        "unclean_shutdown": given.UncleanShutdown,
    }
    [(kind, value)] = [(kind, step[kind]) for kind in kinds if kind in step]
    return kinds[kind](value)


def settings_of(scenario: dict) -> TopicSettings:
    return TopicSettings(
        min_insync_replicas=scenario["settings"].get("min_insync_replicas", 1),
        unclean_leader_election=scenario["settings"].get("unclean_leader_election_enable", False),
    )


@pytest.mark.parametrize("name", WITHOUT_DELETION)
def test_every_step_ends_where_the_real_controller_ended(name):
    scenario = RECORDING[name]
    state = state_of(scenario["first"])
    brokers = Brokers.all_alive(1, 2, 3, 4)
    for number, step in enumerate(scenario["steps"]):
        request = input_of(step)
        outcome = KRAFT.step(state, request, brokers, settings_of(scenario))
        assert comparable(outcome.state) == comparable(state_of(step["after"])), f"step {number}: {request}"
        errors = [event.error for event in outcome.events if isinstance(event, RequestRefused)]
        assert errors == ([step["error"]] if "error" in step else []), f"step {number}: {request}"
        state = outcome.state
        if isinstance(request, given.FenceBroker):
            brokers = brokers.fence(request.broker)
        elif isinstance(request, given.UnfenceBroker):
            brokers = brokers.unfence(request.broker)


def test_a_topic_deleted_in_flight_is_gone_with_its_reassignment():
    scenario = RECORDING["deleted-in-flight"]
    partition = TopicPartition("deleted-in-flight", 0)
    controller = Controller({partition: state_of(scenario["first"])}, Brokers.all_alive(1, 2, 3, 4))
    started, deleted, refused = scenario["steps"]
    [transition] = controller.reassign(partition, started["reassign"])
    assert comparable(transition.after) == comparable(state_of(started["after"]))
    [transition] = controller.delete_topic(partition.topic)
    assert (deleted["after"], transition.after) == ({}, None)
    [transition] = controller.reassign(partition, refused["reassign"])
    assert transition.refused.error == refused["error"]
