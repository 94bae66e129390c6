"""Both tools on the shared cluster: ours in this process, Kafka's own in a JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rebalance_lib.cli import main
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.throttles.config import dynamic_rates
from sandbox.cluster import LIBS
from sandbox.node import java as java_command
from tests.everywhere import PASSING, wait_for_lists, wait_for_replicas
from tests.intervals import shorten
from tests.kafka_data import delete_topics, write_topic
from tests.waiting import wait_for

UNTOUCHED = [[1, 2], [2, 3]]
SLOW = 10_000  # bytes/s: a fetch of 100 kB every ten seconds, so that a megabyte takes more than a minute
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


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch):
    shorten(monkeypatch)


@pytest.fixture
def ours(kafka, cluster):
    """Run ``kafka-rebalance``; every use is checked to leave the cluster as ``cluster`` demands."""

    def run(command: str, *arguments: object) -> Answer:
        return invoke(command, "--bootstrap-server", kafka.bootstrap_servers, *arguments)

    return run


def invoke(*arguments: object) -> Answer:
    """Run ``kafka-rebalance`` in this process."""
    result = CliRunner().invoke(main, [*map(str, arguments)], prog_name="kafka-rebalance")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def start_run(kafka):
    """``start_run(path)`` executes a plan in another process, slowly."""
    started = []

    def start(path, *options):
        words = ["run", "--bootstrap-server", kafka.bootstrap_servers, "--reassignment-json-file", str(path)]
        words += ["--throttle", str(SLOW), "--interval", "0.2", *options]
        command = [sys.executable, "-m", "rebalance_lib.cli", *words]
        started.append(subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def theirs(kafka):
    """Run Kafka's own tool; it must end well."""

    def run(*arguments: object) -> str:
        command = java_command(LIBS, TOOL, "--bootstrap-server", kafka.bootstrap_servers, *map(str, arguments))
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
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
    """What the cluster says, as soon as every broker has heard of it."""

    cluster: Cluster

    def replicas(self, topic: str, expected: Mapping[int, list[int]]) -> None:
        """Wait until every broker shows these replicas of the partitions of a topic."""
        wait_for_replicas(self.cluster, topic, expected)

    def moved(self, topic: str, expected: Mapping[int, list[int]]) -> None:
        """Wait until no reassignment is under way, and every broker shows these replicas."""
        wait_for(self.cluster.reassignments, {})
        wait_for_replicas(self.cluster, topic, expected)

    def lists(self, topic: str, expected: Mapping[str, str]) -> None:
        """Wait until every broker shows these lists of throttled replicas of a topic, and no others."""
        wait_for_lists(self.cluster, topic, expected)

    def rates(self, expected: Mapping[int, Mapping[str, str]]) -> None:
        """Wait until these brokers have these rates, and the others have none."""
        wait_for(self._rates, expected, passing=PASSING)

    def unthrottled(self, *topics: str) -> None:
        """Wait until no broker shows a throttle of these topics, or has a rate."""
        for topic in topics:
            self.lists(topic, {})
        self.rates({})

    def _rates(self) -> dict[int, dict[str, str]]:
        found = dynamic_rates(self.cluster, sorted(self.cluster.alive_brokers()))
        return {broker: rates for broker, rates in found.items() if rates}

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


@pytest.fixture
def look(cluster):
    """What the cluster says."""
    return Look(cluster)


@pytest.fixture(scope="module")
def untouched(kafka):
    """A topic that nothing may change: ``[[1, 2], [2, 3]]``, of the tests of one file."""
    name = "untouched"
    with kafka.admin() as admin:
        write_topic(admin, kafka.bootstrap_servers, name, UNTOUCHED, 0)
        yield name
        delete_topics(admin, [name])
