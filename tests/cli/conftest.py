"""Both tools on the shared cluster: ours in this process, Kafka's own in a JVM."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rebalance_lib.cli import main
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.throttle import REPLICA_LISTS, dynamic_rates
from sandbox.cluster import LIBS
from sandbox.node import java as java_command

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@dataclass(frozen=True)
class Answer:
    """What a tool printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        return json.loads(self.out)


@pytest.fixture
def ours(kafka, cluster):
    """Run ``kafka-rebalance``; every use is checked to leave the cluster as ``cluster`` demands."""

    def run(command: str, *arguments: object) -> Answer:
        words = [command, "--bootstrap-server", kafka.bootstrap_servers, *map(str, arguments)]
        result = CliRunner().invoke(main, words, prog_name="kafka-rebalance")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def theirs(kafka):
    """Run Kafka's own tool; it must end well."""

    def run(*arguments: object) -> str:
        command = java_command(LIBS, TOOL, "--bootstrap-server", kafka.bootstrap_servers, *map(str, arguments))
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def plan(tmp_path):
    """Write a plan: ``plan({"orders": {0: [1, 2]}})``; an entry may be replicas with their log dirs."""

    def write(topics: dict[str, dict[int, Any]], name: str = "plan.json") -> Path:
        entries = []
        for topic, partitions in topics.items():
            for partition, target in partitions.items():
                entry = {"topic": topic, "partition": partition}
                entries.append(entry | (target if isinstance(target, dict) else {"replicas": target}))
        path = tmp_path / name
        path.write_text(json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
        return path

    return write


@dataclass(frozen=True)
class Look:
    """What the cluster says now."""

    cluster: Cluster

    def replicas(self, topic: str) -> dict[int, list[int]]:
        """The replicas of each partition of a topic."""
        return {tp.partition: list(state.replicas) for tp, state in self.cluster.partitions([topic]).items()}

    def throttled(self, topic: str) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
        """The throttles that stand: lists of the topic, and rates of the brokers that have some."""
        lists = {key: value.value for key, value in self.cluster.topic_config(topic, REPLICA_LISTS).items()}
        rates = {broker: dynamic_rates(self.cluster, broker) for broker in sorted(self.cluster.alive_brokers())}
        return lists, {broker: found for broker, found in rates.items() if found}

    def log_dirs(self, topic: str, brokers: tuple[int, ...]) -> dict[tuple[int, int], str | None]:
        """The log dir of each replica of a topic, by partition and broker."""
        found = self.cluster.replica_log_dirs(brokers)
        return {
            (replica.partition, replica.broker): place.current
            for replica, place in found.items()
            if replica.topic == topic
        }

    def other_log_dir(self, log_dir: str) -> str:
        """The second of the two log dirs that each broker of the sandbox has."""
        first, second = "data-a", "data-b"
        return log_dir.replace(first, second) if log_dir.endswith(first) else log_dir.replace(second, first)

    def moved(self, topic: str, expected: dict[int, list[int]]) -> None:
        """Wait until no reassignment is under way, and brokers show these replicas."""
        deadline = time.monotonic() + 60
        while self.cluster.reassignments() or self.replicas(topic) != expected:
            assert time.monotonic() < deadline, f"{topic} did not reach {expected}"
            time.sleep(0.2)


@pytest.fixture
def look(cluster):
    """What the cluster says now."""
    return Look(cluster)
