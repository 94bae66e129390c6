"""Members of consumer groups, for tests: of kafka-python in threads, of Kafka's own console consumer in a JVM."""

from __future__ import annotations

import subprocess
import threading
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
from tests.waiting import wait_for

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
# A client that is late for its heartbeats is put out of its group, and on a busy machine it may be very late. A member
# hears of a rebalance with its next heartbeat, so that those come often.
SESSION_MS, HEARTBEAT_MS = 60_000, 200
# The same for members of groups whose broker assigns: there it is the broker that sets the pace.
QUICK_HEARTBEATS = {
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}
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
        if settings.get("group_protocol") != "consumer":
            settings["heartbeat_interval_ms"] = str(HEARTBEAT_MS)
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
        own = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": HEARTBEAT_MS, **timeouts, **settings}
        while not self._stop.is_set():
            try:
                with closing(KafkaConsumer(bootstrap_servers=servers, group_id=group, **own)) as consumer:
                    self._poll(consumer, topic)
            except (KafkaError, RuntimeError, OSError) as error:  # the client itself raises the latter two in passing
                LAST_ERRORS[group] = error
                self._stop.wait(0.2)

    def _poll(self, consumer: KafkaConsumer, topic: str) -> None:
        # A leader that has not heard of its topic yet gives nobody anything, and may not look again for long.
        while not consumer.partitions_for_topic(topic) and not self._stop.wait(0.1):
            pass
        consumer.subscribe([topic])
        while not self._stop.is_set():
            consumer.poll(100)


def commit(sandbox: Sandbox, group: str, topic: str, offsets: dict[int, int]) -> None:
    """Commit offsets for a group that has no members."""
    committed = {TopicPartition(topic, index): OffsetAndMetadata(at, "", None) for index, at in offsets.items()}
    broker = coordinator(sandbox, group)
    with sandbox.admin() as admin:  # the coordinator may have just begun to be one
        wait_for(lambda: set(admin.alter_group_offsets(group, committed, broker).values()), {NoError})


def coordinator(sandbox: Sandbox, group: str) -> int:
    """The broker that coordinates a group; the first question ever makes Kafka create its topic of offsets."""
    with sandbox.admin() as admin:

        def found() -> tuple[int]:  # an id may be 0
            return (int(admin._manager.run(admin._find_coordinator_id, group)),)

        return wait_for(found, passing=CoordinatorNotAvailableError)[0]


def rows(groups: Groups, group: str) -> list[dict[str, Any]]:
    """What is told of the members of a group."""
    return [row for row in groups.members.to_pylist() if row["group"] == group]


def settled(
    cluster: Cluster, group: str, members: int, state: str = "Stable", partitions: int | None = None
) -> list[dict[str, Any]]:
    """The rows of a group as soon as it has this state, and so many members and partitions, and keeps them.

    A member that has just joined may rejoin when it hears of its topic's partitions.
    """
    seen = [0]

    def is_so(groups: Groups) -> bool:
        seen[0] = seen[0] + 1 if _is_so(groups) else 0
        return seen[0] >= 3

    def _is_so(groups: Groups) -> bool:
        found = rows(groups, group)
        there = [row for row in found if row["member"] is not None]
        held = sum(len(entry["partitions"]) for row in there for entry in row["assignment"] or ())
        so_far = {row["state"] for row in found} == {state} and len(there) == members
        return so_far and partitions in (None, held)

    return rows(groups_when(cluster, group, is_so), group)


def groups_when(cluster: Cluster, group: str, is_so: Callable[[Groups], bool]) -> Groups:
    """The groups of a cluster as soon as this one is so; an error of the cluster may pass."""
    found: list[Groups] = []

    def looked() -> list[dict[str, Any]]:
        found[:] = [take_groups(cluster)]
        return rows(found[0], group)

    wait_for(
        looked,
        lambda _: is_so(found[0]),
        passing=ClusterError,
        tell=lambda: f"group {group}; last error of its consumers: {LAST_ERRORS.get(group)!r}",
    )
    return found[0]
