"""Topics of a sandbox: created with replicas of one's choice, filled with records, deleted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from kafka import KafkaProducer

from sandbox.cluster import Sandbox, SandboxError

RECORD = 10_000  # bytes, with what Kafka adds to it
OVERHEAD = 100


def create_topic(kafka: Sandbox, name: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str]) -> None:
    """Create a topic; brokers learn of it in their own time."""
    assignments = {number: list(one) for number, one in enumerate(replicas)}
    admin = kafka.admin()
    try:
        admin.create_topics({name: {"assignments": assignments, "configs": dict(configs)}})
    finally:
        admin.close()


def delete_topics(kafka: Sandbox, names: Sequence[str]) -> None:
    """Delete those of the topics that are there."""
    admin = kafka.admin()
    try:
        admin.delete_topics(list(names), raise_errors=False)
    finally:
        admin.close()


def write_records(kafka: Sandbox, sizes: Mapping[tuple[str, int], int]) -> None:
    """Write about so many bytes to each partition, by topic and number; they are in sync when this returns."""
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers.split(","), acks="all", linger_ms=5)
    try:
        sent = [
            producer.send(topic, os.urandom(RECORD - OVERHEAD), partition=number)
            for (topic, number), size in sizes.items()
            for _ in range(size // RECORD)
        ]
        producer.flush()
    finally:
        producer.close()
    failed = [future.exception for future in sent if not future.succeeded()]
    if failed:
        raise SandboxError(f"{len(failed)} of {len(sent)} records were not written: {failed[0]!r}")
