"""A call did what it says for every item, or raises with the items."""

from __future__ import annotations

import pytest

from rebalance_lib.cluster import Cluster, RefusedConfigsError, RefusedError
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.throttles.config import RATES, REPLICA_LISTS
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_until_gone
from tests.waiting import wait_for


def test_refused_partitions_are_named_with_the_reason(cluster, topic):
    name = topic("client-refused", [[1, 2]])
    refused = TopicPartition(name, 7)
    expected = "refused 1 of 2 partitions: client-refused-7: UnknownTopicOrPartition"
    with pytest.raises(RefusedError, match=expected) as raised:
        cluster.reassign({TopicPartition(name, 0): [1, 2], refused: [1]})
    assert raised.value.refused == {refused: "UnknownTopicOrPartitionError"}


def test_a_topic_that_is_created_again_has_another_id(cluster, kafka, topic):
    name = topic("client-ids", [[1], [2]])
    ids = {state.topic_id for state in cluster.partitions([name]).values()}
    with kafka.admin() as admin:
        admin.delete_topics([name])
        wait_until_gone(cluster, name)
    topic(name, [[1], [2]])
    again = {state.topic_id for state in cluster.partitions([name]).values()}
    assert [len(one) for one in [*ids, *again]] == [22, 22]
    assert ids != again


def test_unknown_topics_have_no_partitions_and_no_settings(cluster):
    assert cluster.partitions(["client-nothing"]) == {}
    with pytest.raises(ClusterError, match="settings of topic client-nothing could not be read"):
        cluster.topic_config("client-nothing", REPLICA_LISTS)


def test_settings_that_a_broker_does_not_take_are_named(cluster):
    with pytest.raises(ClusterError, match=r"not taken by broker 1: .*not-a-number"):
        cluster.alter_broker_config(1, {RATES[0]: "not-a-number"})


def test_topics_that_do_not_take_their_settings_are_named_and_the_others_take_them(cluster, topic):
    good, bad = topic("client-takes", [[1]]), topic("client-refuses", [[1]])
    with pytest.raises(RefusedConfigsError) as raised:
        cluster.alter_topic_configs({good: {REPLICA_LISTS[0]: "0:1"}, bad: {REPLICA_LISTS[0]: "not-a-replica"}})
    assert list(raised.value.refused) == [bad]
    wait_for(lambda: cluster.topic_config(good, REPLICA_LISTS).keys(), {REPLICA_LISTS[0]})
    assert cluster.topic_config(bad, REPLICA_LISTS) == {}


def test_no_topics_asked_for_are_no_topics(cluster, topic):
    name = topic("client-some", [[1, 2]])
    assert cluster.partitions([]) == {}
    assert list(cluster.partitions([name])) == [TopicPartition(name, 0)]


def test_a_cluster_that_is_not_there_is_one_clear_error():
    with pytest.raises(ClusterError, match=r"cannot reach a Kafka cluster at 127\.0\.0\.1:1"):
        Cluster({"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 500})
