"""Members of consumer groups, for tests: of kafka-python in threads, of Kafka's own console consumer in a JVM."""

from __future__ import annotations

import subprocess
import threading
import time
from contextlib import ExitStack
from typing import Any, Self

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import CoordinatorNotAvailableError, NoError
from kafka.structs import OffsetAndMetadata

from rebalance_lib.cluster import Cluster, take_groups
from sandbox import Sandbox
from sandbox.cluster import LIBS
from sandbox.node import java

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SECONDS = 120  # on a busy machine
SESSION_MS = 60_000  # a client that is late for its heartbeats is put out of its group, and may not come back


class Consumers:
    """Consumers that read until this is closed, from the beginning."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let all of them leave their groups."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._stack.close()

    def join(self, group: str, topic: str, **settings: Any) -> None:
        """Add a consumer of kafka-python's to a group."""
        thread = threading.Thread(target=self._read, args=(group, topic), kwargs=settings)
        self._threads.append(thread)
        thread.start()

    def join_java(self, group: str, topic: str, **settings: str) -> None:
        """Add a Java consumer to a group; settings have Kafka's names, with underscores for dots."""
        words = ["--bootstrap-server", self._sandbox.bootstrap_servers, "--group", group, "--topic", topic]
        words.append("--from-beginning")
        for name, value in settings.items():
            words += ["--consumer-property", f"{name.replace('_', '.')}={value}"]
        process = subprocess.Popen(
            java(LIBS, CONSOLE_CONSUMER, *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)

    def _read(self, group: str, topic: str, **settings: Any) -> None:
        servers = self._sandbox.bootstrap_servers.split(",")
        settings = {"auto_offset_reset": "earliest", "session_timeout_ms": SESSION_MS, **settings}
        consumer = KafkaConsumer(bootstrap_servers=servers, group_id=group, **settings)
        # A leader that has not heard of its topic yet gives nobody anything, and may not look again for long.
        while not self._stop.is_set() and not consumer.partitions_for_topic(topic):
            time.sleep(0.1)
        consumer.subscribe([topic])
        while not self._stop.is_set():
            consumer.poll(100)
        consumer.close()


def commit(sandbox: Sandbox, group: str, topic: str, offsets: dict[int, int]) -> None:
    """Commit offsets for a group that has no members."""
    committed = {TopicPartition(topic, index): OffsetAndMetadata(at, "", None) for index, at in offsets.items()}
    broker, deadline = coordinator(sandbox, group), time.monotonic() + SECONDS
    with sandbox.admin() as admin:
        while set(found := admin.alter_group_offsets(group, committed, broker).values()) != {NoError}:
            assert time.monotonic() < deadline, found  # the coordinator has just begun to be one
            time.sleep(0.2)


def coordinator(sandbox: Sandbox, group: str) -> int:
    """The broker that coordinates a group; the first question ever makes Kafka create its topic of offsets."""
    deadline = time.monotonic() + SECONDS
    with sandbox.admin() as admin:
        while True:
            try:
                return int(admin._manager.run(admin._find_coordinator_id, group))
            except CoordinatorNotAvailableError:
                assert time.monotonic() < deadline
                time.sleep(0.2)


def rows(groups: Any, group: str) -> list[dict[str, Any]]:
    """What is told of the members of a group."""
    return [row for row in groups.members.to_pylist() if row["group"] == group]


def settled(
    cluster: Cluster, group: str, members: int, state: str = "Stable", partitions: int | None = None
) -> list[dict[str, Any]]:
    """The rows of a group as soon as it has this state, and so many members and partitions."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = rows(take_groups(cluster), group)
        there = [row for row in found if row["member"] is not None]
        held = sum(len(entry["partitions"]) for row in there for entry in row["assignment"] or ())
        is_so = {row["state"] for row in found} == {state} and len(there) == members
        if is_so and partitions in (None, held):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
