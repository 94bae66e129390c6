"""The real stage: one sandbox for all scenes, topics of each scene's own, and the executor in a child process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import SYSTEM
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.throttles.config import ALL_RATES
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox, topics
from simulator import operator
from simulator.configs import MIN_ISR
from simulator.fidelity.director import NotReachedError, play
from simulator.fidelity.end_state import EndState
from simulator.fidelity.process import Child
from simulator.fidelity.scenes import BROKERS, FETCH, Scene
from simulator.fidelity.stage import DIRECTORY, Status, Task

READY_SECONDS = 90.0
CONTROLLER_DOWN_SECONDS = 0.5
# A throttle lets a whole fetch through every ten seconds, so fetches are small; a broker that dies is fenced soon.
CONFIG = {
    "replica.fetch.max.bytes": str(FETCH),
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class RealCluster:
    """The sandbox that all scenes share, and what brings it back to order between two of them."""

    def __init__(self) -> None:
        self.kafka = Sandbox(brokers=len(BROKERS), racks=0, config=CONFIG)

    def __enter__(self) -> Self:
        self.kafka.start()
        self.servers = [self.kafka.nodes[broker].address for broker in self.kafka.broker_ids]
        self.client = Cluster({"bootstrap_servers": self.servers}).__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self.client.__exit__(*details)
        self.kafka.stop()

    def play(self, scene: Scene, say: Callable[[str], None] = lambda _: None) -> EndState:
        """Play a scene on the cluster."""
        with tempfile.TemporaryDirectory(prefix="fidelity-") as home:
            try:
                self._prepare(scene)
                say("topics are there")
                stage = RealStage(self, scene, Path(home))
                try:
                    return play(scene, stage, say)
                finally:
                    stage.end()
                    if (log := Path(home, "log.txt")).exists():
                        for line in log.read_text(encoding="utf-8").splitlines():
                            say(f"  | {line}")
            finally:
                say("over")
                self._tidy(scene)
                say("tidy")

    def _prepare(self, scene: Scene) -> None:
        """Topics with their records, and the throttles that others set before."""
        shape, prior = scene.schedule.shape, scene.schedule.prior
        for topic in shape.topics:
            self.create_topic(topic.name, [one.replicas for one in topic.partitions], topic.min_isr)
        names = [topic.name for topic in shape.topics]
        total = sum(len(topic.partitions) for topic in shape.topics)
        self.wait("topics are there", lambda: self._in_sync(names) == total)
        sizes = {
            (topic.name, number): one.size for topic in shape.topics for number, one in enumerate(topic.partitions)
        }
        topics.write_records(self.kafka, sizes)
        for broker, rates in prior.rates.items():
            self.client.alter_broker_config(int(broker), dict(rates))
        for topic_name, lists in prior.lists.items():
            self.client.alter_topic_config(topic_name, dict(lists))
        self.wait("replicas are in sync", lambda: self._in_sync(names) == total)

    def _in_sync(self, names: list[str]) -> int:
        live = self.client.partitions(names)
        return sum(state.in_sync == set(state.replicas) and state.leader is not None for state in live.values())

    def _tidy(self, scene: Scene) -> None:
        """Whatever happened: all brokers and the controller run, and nothing of the scene is left."""
        for node in self.kafka.nodes.values():
            if node.state() == "paused":
                self.kafka.resume(node.id)
            elif node.state() == "dead":
                self.kafka.restart(node.id)
        self.wait("all brokers are alive", lambda: self.client.alive_brokers().keys() == set(BROKERS))
        names = [topic.name for topic in scene.schedule.shape.topics]
        self.delete_topics(names)

        def restored() -> bool:
            rates = self.client.broker_configs(BROKERS, ALL_RATES)
            set_now = {
                broker: [key for key, value in found.items() if value.dynamic] for broker, found in rates.items()
            }
            for broker, keys in set_now.items():
                self.client.alter_broker_config(broker, dict.fromkeys(keys))
            return len(set_now) == len(BROKERS) and not any(set_now.values())

        self.wait("no throttle is set", restored)
        self.wait("topics are gone", lambda: not self.client.partitions(names) and not self.client.reassignments())

    def create_topic(self, topic: str, replicas: Sequence[Sequence[int]], min_isr: int) -> None:
        """Create a topic."""
        topics.create_topic(self.kafka, topic, replicas, {MIN_ISR: str(min_isr)})

    def delete_topics(self, names: list[str]) -> None:
        """Delete those of the topics that are there."""
        topics.delete_topics(self.kafka, names)

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with suppress(ClusterError):
                if condition():
                    return
            if time.monotonic() > deadline:
                raise NotReachedError(f"after {READY_SECONDS:.0f} s, not yet: {what}")
            time.sleep(0.1)


class RealStage:
    """One scene on the cluster."""

    clock = SYSTEM
    patience = READY_SECONDS

    def __init__(self, cluster: RealCluster, scene: Scene, home: Path) -> None:
        self.client = cluster.client
        self.storage = Artifacts.at(home / DIRECTORY)
        self._cluster = cluster
        self._home = home
        self._children: list[Child] = []
        schedule = scene.schedule
        ids = _topic_ids(self.client.partitions([topic.name for topic in schedule.shape.topics]))
        self._job = operator.job_of(schedule.shape, schedule.plan, self.client.cluster_id(), ids)
        self._settings = operator.supported_settings(schedule.settings)
        self._interval = schedule.interval

    def start(self, what: str) -> None:
        """Start a process."""
        task = Task(what, self._job, self._settings, self._interval)
        self._children.append(Child(self._home, self._cluster.servers, len(self._children), task))

    def kill(self) -> None:
        """Kill the process."""
        self._children[-1].kill()

    def status(self) -> Status:
        """What is known of it."""
        return self._children[-1].status() if self._children else Status()

    def end(self) -> None:
        """Kill what is still at work."""
        for child in self._children:
            child.kill()

    def kill_broker(self, broker: int) -> None:
        """SIGKILL a broker."""
        self._cluster.kafka.kill(broker)

    def start_broker(self, broker: int) -> None:
        """Start it again, and wait until it is registered."""
        self._cluster.kafka.restart(broker)

    def hang_broker(self, broker: int) -> None:
        """SIGSTOP a broker."""
        self._cluster.kafka.pause(broker)

    def expire_session(self, broker: int) -> None:
        """The controller does so by itself."""

    def resume_broker(self, broker: int) -> None:
        """SIGCONT a broker."""
        self._cluster.kafka.resume(broker)

    def fail_controller(self) -> None:
        """SIGKILL the controller, and start it again."""
        [controller] = [node.id for node in self._cluster.kafka.nodes.values() if node.role == "controller"]
        self._cluster.kafka.kill(controller)
        time.sleep(CONTROLLER_DOWN_SECONDS)
        self._cluster.kafka.restart(controller)

    def create_topic(self, topic: str, replicas: Sequence[Sequence[int]], min_isr: int) -> None:
        """Create a topic."""
        self._cluster.create_topic(topic, replicas, min_isr)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self._cluster.delete_topics([topic])

    def tear(self, name: str, part: float) -> bool:
        """Cut a file of the run."""
        file = self._home / DIRECTORY / name
        if not file.exists():
            return False
        content = file.read_bytes()
        file.write_bytes(content[: int(len(content) * part)])
        return True


def _topic_ids(live: Mapping[TopicPartition, Any]) -> dict[str, str]:
    return {tp.topic: state.topic_id for tp, state in live.items()}
