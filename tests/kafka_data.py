"""Topics with real records, for tests."""

from __future__ import annotations

import os
from typing import Any

from kafka import KafkaProducer

RECORD = 10_000


def write_topic(admin: Any, bootstrap_servers: str, name: str, assignment: list[list[int]], size: int) -> None:
    """Create a topic with these replicas and write ``size`` bytes or a little more to each partition."""
    admin.create_topics({name: {"assignments": dict(enumerate(assignment))}}, wait_for_metadata=True)
    if size == 0:
        return
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers.split(","), acks="all")
    for partition in range(len(assignment)):
        for _ in range(-(-size // RECORD)):
            producer.send(name, os.urandom(RECORD), partition=partition)
    producer.flush()
    producer.close()
