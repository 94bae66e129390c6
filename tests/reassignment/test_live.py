"""The model against a controller at work: at each phase of a throttled move the cluster shows what the model says."""

from __future__ import annotations

import pytest

from rebalance_lib.execution.throttles.config import FOLLOWER_RATE, FOLLOWER_REPLICAS
from rebalance_lib.reassignment import Brokers, Controller, PartitionState
from rebalance_lib.topology import TopicPartition
from tests.everywhere import set_broker, set_topic
from tests.waiting import wait_for


def view(state: PartitionState):
    return {
        "replicas": state.replicas,
        "adding": set(state.adding),
        "removing": set(state.removing),
        "isr": set(state.isr),
        "leader": state.leader,
    }


@pytest.fixture
def moving(cluster, topic):
    """A partition of a megabyte on 1, 2, 3 whose copy to broker 4 takes its time, beside its model."""
    partition = TopicPartition(topic("model-live", [[1, 2, 3]], size=1_000_000), 0)
    set_topic(cluster, partition.topic, {FOLLOWER_REPLICAS: "0:4"})
    set_broker(cluster, 4, {FOLLOWER_RATE: "10000"})
    yield partition, Controller({partition: PartitionState.healthy(1, 2, 3)}, Brokers.all_alive(1, 2, 3, 4))
    set_broker(cluster, 4, {FOLLOWER_RATE: None})
    wait_for(cluster.reassignments, {})


@pytest.fixture
def agree(cluster, moving):
    """Wait until the brokers have heard of the controller's last step, and compare everything that they show."""
    partition, model = moving

    def live():
        shown = cluster.partitions([partition.topic])[partition]
        reassignment = cluster.reassignments().get(partition)
        return {
            "replicas": shown.replicas,
            "adding": set(reassignment.adding) if reassignment else set(),
            "removing": set(reassignment.removing) if reassignment else set(),
            "isr": set(shown.in_sync),
            "leader": shown.leader,
        }

    def compare():
        return wait_for(live, view(model.state(partition)))

    return compare


def test_a_move_is_overridden_in_flight_cancelled_and_carried_out(cluster, moving, agree):
    partition, model = moving
    assert agree() == {"replicas": (1, 2, 3), "adding": set(), "removing": set(), "isr": {1, 2, 3}, "leader": 1}

    def reassign(target):
        cluster.reassign({partition: target})
        model.reassign(partition, target)
        return agree()

    shown = reassign((2, 3, 4))
    assert (shown["adding"], shown["removing"], shown["isr"]) == ({4}, {1}, {1, 2, 3})

    shown = reassign((4, 1, 2))
    assert (shown["adding"], shown["removing"]) == ({4}, {3})

    cluster.reassign({partition: None})
    model.cancel(partition)
    shown = agree()
    assert set(shown["replicas"]) == {1, 2, 3}
    assert (shown["adding"], shown["removing"]) == (set(), set())

    reassign((4, 2, 3))
    set_broker(cluster, 4, {FOLLOWER_RATE: None})
    model.caught_up(partition)
    shown = agree()
    assert (shown["replicas"], shown["isr"]) == ((4, 2, 3), {2, 3, 4})
    assert shown["leader"] in (2, 3, 4)


def test_order_only_and_factor_changes_end_at_once(cluster, moving, agree):
    partition, model = moving
    for target in ((3, 2, 1), (3, 1), (1, 3)):
        cluster.reassign({partition: target})
        model.reassign(partition, target)
        assert agree()["replicas"] == target
