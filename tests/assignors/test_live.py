"""Forecasts beside what real groups do when a topic gets more partitions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from rebalance_lib.assignors.effects import Effects
from rebalance_lib.assignors.impact import OF_BROKERS, forecast, impact
from rebalance_lib.assignors.live_group import LiveGroup
from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.topology import GROUP_OFFSETS
from sandbox import Sandbox
from tests.kafka_data import write_topic
from tests.kafka_groups import QUICK_HEARTBEATS, Consumers, groups_when, rows

MEMBERS = 3
BY_BROKER = 2  # members of groups whose broker assigns: a JVM each
BEFORE, AFTER = 7, 11
ENTRIES = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("replicas", pa.list_(pa.int32()))])
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
QUICKLY = 500  # milliseconds until a consumer looks whether topics have grown


@pytest.fixture(scope="module")
def kafka():
    """A cluster of these tests alone: groups leave Kafka's topic of offsets behind."""
    with Sandbox(brokers=1, config=QUICK_HEARTBEATS) as sandbox:
        yield sandbox


@pytest.fixture
def consumers(kafka):
    with Consumers(kafka) as joined:
        yield joined


@pytest.fixture
def cluster(kafka):
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as opened:
        yield opened


def make(kafka, topic):
    with kafka.admin() as admin:
        write_topic(admin, kafka.bootstrap_servers, topic, [[1]] * BEFORE, 0)


def partitions(row):
    return {(entry["topic"], n) for entry in row["assignment"] or () for n in entry["partitions"]}


def at_rest(cluster, group, members, count):
    """The group as it is once all partitions that the topic has are shared, each once."""

    def is_so(groups):
        found = rows(groups, group)
        if {row["state"] for row in found} != {"Stable"} or len(found) != members:
            return False
        held = [one for row in found for one in partitions(row)]
        return len(held) == len(set(held)) == count

    own = groups_when(cluster, group, is_so).members.filter(pc.field("group") == group)
    return LiveGroup.of(own, GROUP_OFFSETS.empty_table())


def by_client(live, assignment=None):
    """What each member has, or is to have, by its client id: a client that joins again has another member id."""
    given = assignment or {member.name: member.subscription.owned for member in live.members}
    return {member.client_id: set(given[member.name]) for member in live.members}


class Growing:
    """A group whose topic gets more partitions, before and after."""

    def __init__(self, cluster, group, topic, members):
        live = at_rest(cluster, group, members, BEFORE)
        self.before = by_client(live)
        listed = [{"topic": topic, "partition": n, "replicas": [1]} for n in range(BEFORE, AFTER)]
        effects = Effects(take_snapshot(cluster), pa.Table.from_pylist(listed, schema=ENTRIES))
        self.told, self.assignor = impact(live, effects), live.assignor
        strategy = OF_BROKERS[live.assignor] if live.broker_assigns else live.assignor
        expected, _ = forecast(strategy, live, effects)
        self.expected = by_client(live, expected)
        cluster.create_partitions(topic, AFTER, [[1]] * (AFTER - BEFORE))
        self.after = by_client(at_rest(cluster, group, members, AFTER))

    def sizes(self, assignment):
        return sorted(len(has) for has in assignment.values())

    def kept(self, assignment):
        return sum(len(has & self.before[name]) for name, has in assignment.items())


def told_sizes(told):
    return sorted(share["after"] for share in told["shares"])


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_group_of_kafka_python_reaches_what_was_forecast(kafka, cluster, consumers, assignor):
    topic = f"grows-{assignor}"
    make(kafka, topic)
    for number in range(MEMBERS):
        consumers.join(
            topic,
            topic,
            client_id=f"{assignor}-{number}",
            partition_assignment_strategy=[ASSIGNORS[assignor]],
            metadata_max_age_ms=QUICKLY,
        )
    group = Growing(cluster, topic, topic, MEMBERS)
    assert group.assignor == assignor
    assert told_sizes(group.told) == group.sizes(group.after) == [3, 4, 4]
    if "sticky" in assignor:  # who of equals gets one more is a matter of the client's language
        assert group.kept(group.expected) == group.kept(group.after) == BEFORE
        assert group.told["change_hands"] == 0
    else:
        assert group.expected == group.after
        assert group.told["change_hands"] == BEFORE - group.kept(group.after)


@pytest.mark.parametrize("assignor", ["uniform", pytest.param("range", marks=pytest.mark.long)])
def test_a_group_whose_broker_assigns_reaches_sizes_and_keeps_as_many_as_was_forecast(
    kafka, cluster, consumers, assignor
):
    topic = f"grows-by-broker-{assignor}"
    make(kafka, topic)
    for number in range(BY_BROKER):
        name = f"{assignor}-{number}"
        consumers.join_java(topic, topic, client_id=name, group_protocol="consumer", group_remote_assignor=assignor)
    group = Growing(cluster, topic, topic, BY_BROKER)
    assert group.assignor == assignor
    assert told_sizes(group.told) == group.sizes(group.after) == [5, 6]
    assert group.kept(group.expected) == group.kept(group.after)
