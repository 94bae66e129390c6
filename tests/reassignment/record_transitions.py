"""Record what a real KRaft controller does with reassignments, as a fixture that the model is compared with.

The witness is the controller's own log: every change of a partition is a record in ``__cluster_metadata``,
so nothing between two phases is missed, as polling would. A run starts one controller and four brokers on
loopback, drives each scenario on a topic of its own, kills the cluster, reads the log, and writes for each
topic the first registration and then, step by step, the input and the registration after it.

    python -m tests.reassignment.record_transitions --libs <directory of Kafka's jars> --out kraft_4_3_1.json
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, NoError, for_code
from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from tests.reassignment.metadata_log import FIRST_MARK, MARKS, Answer, Reader, records_of

CONTROLLER = 100
BROKERS = (1, 2, 3, 4)
SLOW, FAST = 100, 1_000_000_000
FENCED_AFTER_SECONDS = 4
JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def kafka_name(error: type[KafkaError]) -> str:
    """Kafka's own name of an error; the client spells one of them in its own way."""
    return error.message.replace("REPLICATION_ASSIGNMENT", "REPLICA_ASSIGNMENT")


class Cluster:
    """One controller and four brokers on loopback, each a process that can be killed and started again."""

    def __init__(self, libs: Path, home: Path, port: int) -> None:
        self.classpath, self.home, self.port = f"{libs}/*", home, port
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.cluster_id = self._run("kafka.tools.StorageTool", "random-uuid").splitlines()[-1]
        for node in (CONTROLLER, *BROKERS):
            self._format(node)
            self.start(node)

    @property
    def bootstrap(self) -> list[str]:
        return [f"127.0.0.1:{self.port + broker}" for broker in BROKERS[:3]]

    def start(self, node: int) -> None:
        with (self.home / f"{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                [*JAVA, "-cp", self.classpath, "kafka.Kafka", str(self._properties(node))],
                stdout=log,
                stderr=log,
            )

    def kill(self, node: int) -> None:
        process = self.processes.pop(node)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        for node in list(self.processes):
            self.kill(node)

    def metadata_log(self) -> str:
        segment = self.home / f"data{CONTROLLER}" / "__cluster_metadata-0" / f"{0:020}.log"
        return self._run(
            "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(segment)
        )

    def _properties(self, node: int) -> Path:
        return self.home / f"{node}.properties"

    def _format(self, node: int) -> None:
        controller = node == CONTROLLER
        name, port = ("CONTROLLER", self.port) if controller else ("PLAINTEXT", self.port + node)
        settings = {
            "node.id": node,
            "process.roles": "controller" if controller else "broker",
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self.port}",
            "listeners": f"{name}://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.home / f"data{node}",
            "broker.session.timeout.ms": FENCED_AFTER_SECONDS * 1000,
            "broker.heartbeat.interval.ms": 1000,
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            "replica.lag.time.max.ms": 120000,
            "replica.fetch.max.bytes": 65536,
        }
        self._properties(node).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._run("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(self._properties(node)))

    def _run(self, main: str, *arguments: str) -> str:
        done = subprocess.run(
            [*JAVA, "-cp", self.classpath, main, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


@dataclass
class Run:
    """The requests of a run, each after a marker, and what the controller answered."""

    cluster: Cluster
    admin: KafkaAdminClient
    producer: KafkaProducer
    answers: dict[int, Answer] = field(default_factory=dict)
    settings: dict[str, dict[str, object]] = field(default_factory=dict)

    def topic(self, name: str, replicas: list[int], *, megabytes: int = 0, **settings: object) -> None:
        configs = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
        configs |= {key.replace("_", "."): str(value).lower() for key, value in settings.items()}
        self.settings[name] = settings
        self.admin.create_topics({name: {"assignments": {0: replicas}, "configs": configs}}, wait_for_metadata=True)
        for _ in range(4 * megabytes):
            self.producer.send(name, os.urandom(250_000), partition=0)
        self.producer.flush()

    def kill(self, broker: int) -> None:
        """Kill a broker and wait until the controller has fenced it."""
        self.cluster.kill(broker)
        time.sleep(2 * FENCED_AFTER_SECONDS)
        self.reconnect()

    def reconnect(self) -> None:
        """The client goes on asking the broker it took for the controller, dead or not."""
        self.admin.close()
        self.admin = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap)

    def throttle(self, rate: int, *, followers: tuple[int, ...] = BROKERS) -> None:
        for broker in self.cluster.processes:
            if broker == CONTROLLER:
                continue
            rates = {
                "leader.replication.throttled.rate": str(FAST if followers != BROKERS else rate),
                "follower.replication.throttled.rate": str(rate if broker in followers else FAST),
            }
            self.admin.alter_configs(
                [ConfigResource(ConfigResourceType.BROKER, str(broker), rates)], raise_on_unknown=False
            )

    def reassign(self, topic: str, replicas: list[int] | None) -> None:
        number = self._mark()
        answer = self.admin.alter_partition_reassignments({TopicPartition(topic, 0): replicas})
        error = answer[TopicPartition(topic, 0)]
        request: dict[str, object] = {"cancel": True} if replicas is None else {"reassign": replicas}
        self.answers[number] = (topic, request, kafka_name(error) if error else None)
        time.sleep(0.5)

    def reassign_with_the_same_factor(self, topic: str, replicas: list[int]) -> None:
        """As ``reassign``, refusing another replication factor: a field the client has no argument for."""
        number = self._mark()
        entry = AlterPartitionReassignmentsRequest.ReassignableTopic
        partition = entry.ReassignablePartition(partition_index=0, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=30000,
            allow_replication_factor_change=False,
            topics=[entry(name=topic, partitions=[partition])],
        )
        response = self.admin._manager.run(self.admin._send_request_to_controller, request)
        error = for_code(response.responses[0].partitions[0].error_code)
        self.answers[number] = (
            topic,
            {"reassign": replicas, "allow_replication_factor_change": False},
            None if error is NoError else kafka_name(error),
        )
        time.sleep(0.5)

    def elect_preferred(self, topic: str) -> None:
        number = self._mark()
        self.admin.elect_leaders(0, {topic: [0]}, raise_errors=False)
        self.answers[number] = (topic, {"elect_preferred": True}, None)
        time.sleep(0.5)

    def delete(self, topic: str) -> None:
        number = self._mark()
        self.admin.delete_topics([topic])
        self.answers[number] = (topic, {"delete_topic": True}, None)
        time.sleep(1)

    def settle(self, *topics: str, seconds: int = 60) -> None:
        """Wait until no reassignment of these topics is left and each replica is in the ISR."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            moving = {tp.topic for tp in self.admin.list_partition_reassignments()}
            lagging = [t for t in topics if self._partition(t)["isr"] != self._partition(t)["replicas"]]
            if not moving & set(topics) and not lagging:
                return
            time.sleep(0.3)
        raise TimeoutError(f"not settled after {seconds} s: {topics}")

    def wait_for_isr(self, topic: str, isr: set[int], *, seconds: int = 60) -> None:
        deadline = time.monotonic() + seconds
        while self._partition(topic)["isr"] != isr:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}: {self._partition(topic)}, not {isr}")
            time.sleep(0.3)

    def _partition(self, topic: str) -> dict[str, set[int]]:
        [partition] = self.admin.describe_topics([topic])[0]["partitions"]
        return {"isr": set(partition["isr_nodes"]), "replicas": set(partition["replica_nodes"])}

    def _mark(self) -> int:
        number = len(self.answers) + 1
        value = {"retention.ms": str(FIRST_MARK + number)}
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, MARKS, value)])
        return number


def drive(run: Run) -> None:
    """All scenarios; the name of a topic says which."""
    run.topic(MARKS, [1])
    drive_what_is_done_at_once(run)
    drive_what_is_in_flight(run)
    drive_with_a_dead_broker(run)
    drive_an_unclean_cancel(run)


def drive_what_is_done_at_once(run: Run) -> None:
    run.topic("order-only", [1, 2, 3])
    run.reassign("order-only", [3, 1, 2])
    run.elect_preferred("order-only")
    run.topic("same-replicas", [1, 2, 3])
    run.reassign("same-replicas", [1, 2, 3])
    run.topic("factor-down", [1, 2, 3, 4])
    run.reassign("factor-down", [3, 2])
    run.topic("factor-below-min-isr", [1, 2], min_insync_replicas=2)
    run.reassign("factor-below-min-isr", [2])
    run.topic("refused", [1, 2])
    for replicas in ([1, 99], [1, 1], None):
        run.reassign("refused", replicas)
    run.reassign_with_the_same_factor("refused", [1])


def drive_what_is_in_flight(run: Run) -> None:
    """Throttled reassignments, overridden, cancelled and deleted on the way; then the throttle is lifted."""
    held = {
        "leader-leaves": ([1, 2, 3], [[2, 3, 4]]),
        "leader-stays": ([1, 2, 3], [[4, 1, 2]]),
        "factor-up": ([1, 2], [[4, 1, 2, 3]]),
        "override": ([1, 2], [[3, 1], [3, 1], [1, 4]]),
        "override-to-all": ([1, 2, 3], [[2, 3, 4], [2, 3, 4, 1]]),
        "override-keeps-some": ([1, 2], [[1, 3], [3, 4]]),
        "override-to-original": ([1, 2, 3], [[2, 3, 4], [1, 2, 3]]),
        "override-then-cancel": ([1, 2], [[1, 3], [1, 4], None]),
        "cancel": ([1, 2, 3], [[2, 3, 4], None, None]),
        "deleted-in-flight": ([1, 2], [[1, 3]]),
    }
    for name, (replicas, _) in held.items():
        run.topic(name, replicas, megabytes=4)
    run.throttle(SLOW)
    for name, (_, targets) in held.items():
        for target in targets:
            run.reassign(name, target)
    run.reassign_with_the_same_factor("leader-leaves", [2, 3])
    run.delete("deleted-in-flight")
    run.reassign("deleted-in-flight", [1, 4])
    run.throttle(FAST)
    run.settle(*(held.keys() - {"override-to-original", "deleted-in-flight"}))
    run.wait_for_isr("override-to-original", {1, 2, 3, 4})
    run.reassign("override-to-original", None)


def drive_with_a_dead_broker(run: Run) -> None:
    """Broker 4 dies, partitions are reassigned, and it returns."""
    run.topic("cancel-refused", [4], megabytes=4)
    run.topic("target-dead", [1, 2])
    run.topic("only-target-dead", [1, 2])
    run.topic("unmoved-dead", [1, 4])
    run.topic("unmoved-dead-factor-down", [1, 2, 4])
    run.topic("leader-dies-in-flight", [4, 1, 2], megabytes=4)
    run.topic("last-replica-dies", [4])
    run.topic("under-min-isr", [1, 4], megabytes=4, min_insync_replicas=2)
    run.throttle(SLOW, followers=(2, 3))
    run.reassign("cancel-refused", [1, 2])
    run.reassign("leader-dies-in-flight", [3, 4, 2])
    run.wait_for_isr("cancel-refused", {4, 1})
    run.kill(4)
    run.wait_for_isr("unmoved-dead", {1})
    run.reassign("cancel-refused", None)
    run.reassign("under-min-isr", [1, 3])
    run.reassign("unmoved-dead", [4, 3])
    run.reassign("unmoved-dead-factor-down", [1, 4])
    run.reassign("target-dead", [4, 1])
    run.reassign("only-target-dead", [4])
    run.throttle(FAST)
    run.wait_for_isr("unmoved-dead", {3})
    run.wait_for_isr("leader-dies-in-flight", {3, 2})
    run.cluster.start(4)
    run.settle("unmoved-dead", "unmoved-dead-factor-down", "target-dead", "only-target-dead")
    run.settle("cancel-refused", "leader-dies-in-flight", "last-replica-dies", "under-min-isr")
    run.reconnect()


def drive_an_unclean_cancel(run: Run) -> None:
    """Last of all: the last known leader is no replica then, and 4.3.1 fails when broker 4 is back."""
    run.topic("cancel-unclean", [4], megabytes=4, unclean_leader_election_enable=True)
    run.throttle(SLOW, followers=(2,))
    run.reassign("cancel-unclean", [1, 2])
    run.wait_for_isr("cancel-unclean", {4, 1})
    run.kill(4)
    run.wait_for_isr("cancel-unclean", {1})
    run.reassign("cancel-unclean", None)


def compact(scenarios: dict[str, dict]) -> str:
    """JSON with one line for each step."""
    lines = []
    for name, scenario in scenarios.items():
        steps = ",\n".join(f"   {json.dumps(step)}" for step in scenario["steps"])
        head = f' "{name}": {{"settings": {json.dumps(scenario["settings"])},\n'
        lines.append(f'{head}  "first": {json.dumps(scenario["first"])},\n  "steps": [\n{steps}\n  ]}}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libs", type=Path, required=True, help="directory of Kafka's jars")
    parser.add_argument("--out", type=Path, required=True, help="fixture to write")
    parser.add_argument("--port", type=int, default=21100, help="the controller's port; brokers listen just above")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster(arguments.libs, Path(home), arguments.port)
        try:
            time.sleep(15)
            admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
            producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", max_request_size=2_000_000)
            run = Run(cluster, admin, producer)
            drive(run)
        finally:
            cluster.kill_all()
        scenarios = Reader(records_of(cluster.metadata_log()), run.answers).read()
    for name, scenario in scenarios.items():
        scenario["settings"] = run.settings[name]
    arguments.out.write_text(compact(scenarios))


if __name__ == "__main__":
    main()
