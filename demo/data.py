"""A dozen topics of different sizes, with real records in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer

RECORD_BYTES = 50_000


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic and how much is written to it."""

    name: str
    partitions: int
    replication_factor: int
    megabytes: float


TOPICS = (
    DemoTopic("orders", 12, 3, 36),
    DemoTopic("payments", 6, 3, 24),
    DemoTopic("clicks", 16, 2, 20),
    DemoTopic("page-views", 12, 2, 12),
    DemoTopic("inventory", 6, 3, 8),
    DemoTopic("shipments", 4, 3, 6),
    DemoTopic("customers", 3, 3, 4),
    DemoTopic("audit-log", 1, 3, 4),
    DemoTopic("emails", 4, 2, 2),
    DemoTopic("metrics", 8, 1, 2),
    DemoTopic("prices", 3, 3, 1),
    DemoTopic("flags", 1, 3, 0.1),
)


def create_topics(admin: Any) -> None:
    """Create the dozen."""
    admin.create_topics(
        {
            topic.name: {"num_partitions": topic.partitions, "replication_factor": topic.replication_factor}
            for topic in TOPICS
        },
        wait_for_metadata=True,
    )


def write_records(bootstrap_servers: str, progress: Callable[[str], None]) -> None:
    """Fill the topics, each partition with its share, and wait until all in-sync replicas have every record."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap_servers.split(","), acks="all", linger_ms=20, batch_size=500_000
    )
    try:
        for topic in TOPICS:
            for number in range(max(topic.partitions, int(topic.megabytes * 1e6 / RECORD_BYTES))):
                producer.send(topic.name, os.urandom(RECORD_BYTES), partition=number % topic.partitions)
        producer.flush()
    finally:
        producer.close()
    progress(f"{sum(topic.megabytes for topic in TOPICS):.0f} MB of records written to {len(TOPICS)} topics")
