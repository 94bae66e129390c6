"""Which partitions are short of in-sync replicas, and how seldom the whole cluster is read for that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rebalance_lib.cluster import ConfigValue, PartitionMetadata
from rebalance_lib.cluster.snapshot import MIN_INSYNC
from rebalance_lib.execution.min_isr import KEPT_SECONDS, WHOLE_CLUSTER_SECONDS, WHOLE_CLUSTER_SHARE, ClusterHealth
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.topology import TopicPartition
from tests.execution.running import StoppedClock

PLANNED, OTHER = TopicPartition("planned", 0), TopicPartition("other", 0)


def state(in_sync, *, replicas=(1, 2, 3)):
    return PartitionMetadata(replicas, frozenset(in_sync), min(in_sync, default=None), internal=False)


class FewBrokers:
    """A cluster with a partition of the plan and another one, which counts how often it is read."""

    def __init__(self):
        self.clock = StoppedClock()
        self.states = {PLANNED: state({1, 2, 3}), OTHER: state({1, 2, 3})}
        self.min_isr = {"planned": 2, "other": 2}
        self.seconds = 0.0  # that it takes to read all of it
        self.read = SimpleNamespace(partitions=0, topics=[])

    def partitions(self):
        self.read.partitions += 1
        self.clock.advance(self.seconds)
        return dict(self.states)

    def topic_configs(self, topics, keys):
        assert list(keys) == [MIN_INSYNC]
        self.read.topics += topics
        return {
            topic: {MIN_INSYNC: ConfigValue(str(self.min_isr[topic]), "DEFAULT_CONFIG")}
            for topic in topics
            if topic in self.min_isr
        }


@pytest.fixture
def cluster():
    return FewBrokers()


@pytest.fixture
def health(cluster):
    return ClusterHealth(cluster)


def short(health, cluster):
    """The partitions that are short at a check, which has just read those of the plan."""
    health.check(PlanStatus({PLANNED: Status.MOVING}, {PLANNED: cluster.states[PLANNED]}, {}))
    return health.short


def test_all_in_sync_is_fine_and_takes_no_setting(health, cluster):
    assert short(health, cluster) == []
    assert cluster.read.topics == []


@pytest.mark.parametrize(
    ("in_sync", "min_isr", "found"),
    [
        ({1, 2}, 2, []),
        ({1}, 2, [PLANNED]),
        ({1}, 1, []),
        ((), 1, [PLANNED]),  # no leader
        ({1, 2}, 5, [PLANNED]),  # it counts by its three replicas
    ],
)
def test_a_partition_is_short_by_its_min_isr(health, cluster, in_sync, min_isr, found):
    cluster.states[PLANNED], cluster.min_isr["planned"] = state(in_sync), min_isr
    assert short(health, cluster) == found


def test_others_are_read_now_and_then_and_the_plans_own_at_every_check(health, cluster):
    short(health, cluster)
    cluster.states = {PLANNED: state({1}), OTHER: state({1})}
    cluster.clock.advance(WHOLE_CLUSTER_SECONDS - 1)
    assert short(health, cluster) == [PLANNED]
    cluster.clock.advance(2)
    assert short(health, cluster) == [OTHER, PLANNED]
    assert cluster.read.partitions == 2


def test_others_are_read_at_every_check_while_one_of_them_is_short(health, cluster):
    cluster.states[OTHER] = state({1})
    assert short(health, cluster) == [OTHER]
    cluster.clock.advance(1)
    cluster.states[OTHER] = state({1, 2})
    assert short(health, cluster) == []
    assert cluster.read.partitions == 2


def test_a_cluster_that_takes_long_to_read_is_read_less_often(health, cluster):
    cluster.seconds = 10.0
    short(health, cluster)
    cluster.clock.advance(WHOLE_CLUSTER_SHARE * cluster.seconds - cluster.seconds - 1)
    short(health, cluster)
    assert cluster.read.partitions == 1
    cluster.clock.advance(2)
    short(health, cluster)
    assert cluster.read.partitions == 2


def test_a_setting_is_looked_up_once_in_a_while(health, cluster):
    cluster.states[PLANNED] = state({1, 2})
    for _ in range(3):
        short(health, cluster)
    assert cluster.read.topics == ["planned"]
    cluster.clock.advance(KEPT_SECONDS)
    short(health, cluster)
    assert cluster.read.topics == ["planned", "planned"]


def test_a_topic_whose_setting_is_not_shown_counts_as_one_that_needs_one_replica(health, cluster):
    del cluster.min_isr["planned"]
    cluster.states[PLANNED] = state({1})
    assert short(health, cluster) == []
