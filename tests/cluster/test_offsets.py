"""Offsets are the leaders', and a partition that has none costs no other its own."""

from __future__ import annotations

from types import SimpleNamespace

import kafka as kafka_python
from kafka.errors import KafkaConnectionError, UnsupportedVersionError
from kafka.protocol.consumer import OffsetSpec

from rebalance_lib.cluster import Offsets, offsets
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import TopicPartition


def test_offsets_begin_at_the_oldest_record_left(cluster, kafka, topic):
    name = topic("offsets-deleted", [[1, 2], [2, 1], [3, 1]], size=50_000)
    admin = kafka.admin()
    admin.delete_records({kafka_python.TopicPartition(name, 0): 3})
    admin.close()
    leaders = {TopicPartition(name, partition): broker for partition, broker in enumerate((1, 2, 3))}
    assert cluster.offsets(leaders) == {
        TopicPartition(name, 0): Offsets(3, 5),
        TopicPartition(name, 1): Offsets(0, 5),
        TopicPartition(name, 2): Offsets(0, 5),
    }
    assert cluster.offsets({}) == {}


def test_what_was_deleted_meanwhile_is_left_out_alone(cluster, topic, monkeypatch):
    monkeypatch.setattr(offsets, "BATCH", 8)
    name = topic("offsets-some", [[1]] * 13)
    there = {TopicPartition(name, partition): 1 for partition in range(13)}
    gone = {TopicPartition("offsets-gone", 0): 1, TopicPartition(name, 99): 1, TopicPartition("offsets-zz", 0): 2}
    assert cluster.offsets(there | gone) == dict.fromkeys(there, Offsets(0, 0))


def test_once_too_much_time_was_lost_no_more_is_asked(cluster, topic, monkeypatch):
    monkeypatch.setattr(offsets, "LOST_SECONDS", 0.0)
    name = topic("offsets-lost", [[1]])
    assert cluster.offsets({TopicPartition("offsets-gone", 0): 1, TopicPartition(name, 0): 1}) == {}
    assert cluster.offsets({TopicPartition(name, 0): 1}) == {TopicPartition(name, 0): Offsets(0, 0)}


def test_brokers_that_know_no_local_start_tell_the_earliest_offset():
    asked = []

    def ask(wanted):
        asked.append({partition: OffsetSpec(spec).name for partition, spec in wanted.items()})
        if OffsetSpec.EARLIEST_LOCAL in wanted.values():
            raise ClusterError("too old") from UnsupportedVersionError()
        return {partition: SimpleNamespace(offset=7) for partition in wanted}

    assert offsets.list_offsets(ask, {TopicPartition("t", 0): 1}) == {TopicPartition("t", 0): Offsets(7, 7)}
    assert [spec for request in asked for spec in request.values()] == ["EARLIEST_LOCAL", "EARLIEST", "LATEST"]


def test_a_leader_that_does_not_answer_costs_the_others_nothing():
    def ask(wanted):
        if kafka_python.TopicPartition("t", 0) in wanted:
            raise ClusterError("gone") from KafkaConnectionError()
        return {partition: SimpleNamespace(offset=7) for partition in wanted}

    leaders = {TopicPartition("t", 0): 1, TopicPartition("t", 1): 1, TopicPartition("t", 2): 2}
    assert offsets.list_offsets(ask, leaders) == {TopicPartition("t", 2): Offsets(7, 7)}
