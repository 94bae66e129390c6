"""Members of consumer groups, for tests: of kafka-python in threads, of Kafka's own console consumer in a JVM."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any, Self

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import CoordinatorNotAvailableError, KafkaError, NoError
from kafka.structs import OffsetAndMetadata

from rebalance_lib.cluster import Cluster, take_groups
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import Groups
from sandbox import Sandbox
from sandbox.cluster import LIBS
from sandbox.node import java

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SECONDS = 120  # on a busy machine
SESSION_MS = 60_000  # a client that is late for its heartbeats is put out of its group
LAST_ERRORS: dict[str, Exception] = {}  # of consumers, by their group: where a wait fails, this may be why


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
        """Read until all is closed, with a new consumer after each one that failed."""
        servers = self._sandbox.bootstrap_servers.split(",")
        timeouts = dict.fromkeys(("session_timeout_ms", "max_poll_interval_ms"), SESSION_MS)
        settings = {"auto_offset_reset": "earliest", **timeouts, **settings}
        while not self._stop.is_set():
            try:
                with closing(KafkaConsumer(bootstrap_servers=servers, group_id=group, **settings)) as consumer:
                    self._poll(consumer, topic)
            except (KafkaError, RuntimeError, OSError) as error:  # the client itself raises the latter two in passing
                LAST_ERRORS[group] = error
                self._stop.wait(0.2)

    def _poll(self, consumer: KafkaConsumer, topic: str) -> None:
        # A leader that has not heard of its topic yet gives nobody anything, and may not look again for long.
        while not self._stop.is_set() and not consumer.partitions_for_topic(topic):
            time.sleep(0.1)
        consumer.subscribe([topic])
        while not self._stop.is_set():
            consumer.poll(100)


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


def rows(groups: Groups, group: str) -> list[dict[str, Any]]:
    """What is told of the members of a group."""
    return [row for row in groups.members.to_pylist() if row["group"] == group]


def settled(
    cluster: Cluster, group: str, members: int, state: str = "Stable", partitions: int | None = None
) -> list[dict[str, Any]]:
    """The rows of a group as soon as it has this state, and so many members and partitions."""

    def is_so(groups: Groups) -> bool:
        found = rows(groups, group)
        there = [row for row in found if row["member"] is not None]
        held = sum(len(entry["partitions"]) for row in there for entry in row["assignment"] or ())
        so_far = {row["state"] for row in found} == {state} and len(there) == members
        return so_far and partitions in (None, held)

    return rows(wait_for(cluster, group, is_so), group)


def wait_for(cluster: Cluster, group: str, is_so: Callable[[Groups], bool]) -> Groups:
    """The groups of a cluster as soon as this one is so; an error of the cluster may pass."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            found = take_groups(cluster)
            if is_so(found):
                return found
            seen: object = rows(found, group)
        except ClusterError as error:
            seen = error
        assert time.monotonic() < deadline, f"{group}: {seen}; last error of its consumers: {LAST_ERRORS.get(group)!r}"
        time.sleep(0.2)
