"""Topics with real records, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from kafka import KafkaProducer
from kafka.errors import NoError, UnknownTopicOrPartitionError

from tests.everywhere import wait_until_gone, wait_until_made

RECORD = 10_000


def write_topic(admin: Any, bootstrap_servers: str, name: str, assignment: list[list[int]], size: int) -> None:
    """Create a topic with these replicas and write ``size`` bytes or a little more to each partition.

    Every broker knows the topic when this returns, also where there was one of the same name before.
    """
    [made] = admin.create_topics({name: {"assignments": dict(enumerate(assignment))}})["topics"]
    wait_until_made(admin, name, made["topic_id"], dict(enumerate(assignment)))
    if size > 0:
        write_records(bootstrap_servers, name, range(len(assignment)), size)


def write_records(bootstrap_servers: str, name: str, partitions: Iterable[int], size: int) -> None:
    """Write ``size`` bytes or a little more to each of these partitions; they are in sync when this returns."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers.split(","), acks="all")
    sent = [
        producer.send(name, os.urandom(RECORD), partition=partition)
        for partition in partitions
        for _ in range(-(-size // RECORD))
    ]
    producer.flush()
    producer.close()
    failed = [future.exception for future in sent if not future.succeeded()]
    assert not failed, f"{len(failed)} of {len(sent)} records of {name} were not written: {failed[0]!r}"


def delete_topics(admin: Any, names: Iterable[str]) -> None:
    """Delete those of the topics that are still there, and wait until no broker knows them."""
    wanted = sorted(names)
    if not wanted:
        return
    answer = admin.delete_topics(wanted, raise_errors=False)["topics"]
    failed = {topic["name"]: topic["error_code"] for topic in answer}
    failed = {
        name: code for name, code in failed.items() if code not in (NoError.errno, UnknownTopicOrPartitionError.errno)
    }
    assert not failed, f"not deleted, with Kafka's error codes: {failed}"
    for name in wanted:
        wait_until_gone(admin, name)
