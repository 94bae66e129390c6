"""A run survives the death, or the silence, of whoever takes part: the engine, a sender, a receiver, the controller.

Each happens at three moments of a run, by a signal to a real process, with producers (``acks=all``) and a consumer at
work all along. In the end the plan is reached, every throttle setting is what it was, with its source, no acknowledged
record is lost or out of order, and no move was submitted twice.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Meter, Status, plan_status
from rebalance_lib.execution.throttle import ALL_RATES, FOLLOWER_RATE, LEADER_RATE, LEADER_REPLICAS, REPLICA_LISTS
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox
from sandbox.cluster import LIBS
from sandbox.node import java
from tests.conftest import SMALL_FETCHES
from tests.everywhere import PASSING, set_broker, set_topic, wait_for_alive, wait_for_lists, wait_for_rates
from tests.execution.traffic import Traffic
from tests.kafka_data import delete_topics, write_topic
from tests.waiting import wait_for

# Each receiver gets 18 MB, in two waves: near the end, some six seconds are left.
RATE = 700_000
PARTITIONS = 6
SIZE = 3_000_000
BEFORE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2
AFTER = [[4, 5, 3], [5, 4, 1], [4, 5, 2]] * 2
SENDER, RECEIVER = 1, 4
UNFINISHED = (3, 4)  # exit codes of a run at whose end a broker was down; run again, it ends what is left
MOMENTS = {"at the beginning": 0.02, "half way": 0.4, "near the end": 0.75}
DEFAULT_RATE, STATIC_RATE = "222222222", "333333333"
OWN_RATES = {LEADER_RATE: "111111111", FOLLOWER_RATE: "111111112"}
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def chaos() -> Sandbox:
    """Five brokers and three controllers, with throttles of all kinds that stood before."""
    static = {FOLLOWER_RATE: STATIC_RATE}
    with Sandbox(brokers=5, racks=0, controllers=3, config={**static, **SMALL_FETCHES}) as kafka:
        default = f"{LEADER_RATE}={DEFAULT_RATE}"
        configure = ["--bootstrap-server", kafka.bootstrap_servers, "--alter", "--entity-type", "brokers"]
        subprocess.run(
            java(LIBS, "kafka.admin.ConfigCommand", *configure, "--entity-default", "--add-config", default), check=True
        )
        with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
            set_broker(cluster, 1, OWN_RATES)
            inherited = {LEADER_RATE: DEFAULT_RATE, FOLLOWER_RATE: STATIC_RATE}
            wait_for_rates(cluster, {1: OWN_RATES, **dict.fromkeys((2, 3, 4, 5), inherited)})
        yield kafka


def throttle_settings(cluster: Cluster, topics: list[str]) -> dict[str, object]:
    """Every throttle setting of every broker and of these topics, with its source."""
    brokers = {f"broker {broker}": cluster.broker_config(broker, ALL_RATES) for broker in range(1, 6)}
    return brokers | {topic: cluster.topic_config(topic, REPLICA_LISTS) for topic in topics}


@dataclass
class Case:
    """One run: a plan for a topic of its own, and the process that carries it out."""

    kafka: Sandbox
    cluster: Cluster
    topic: str
    directory: Path

    @property
    def plan(self) -> Plan:
        return Plan.from_assignment({TopicPartition(self.topic, n): after for n, after in enumerate(AFTER)})

    @property
    def before(self) -> Plan:
        return Plan.from_assignment({TopicPartition(self.topic, n): before for n, before in enumerate(BEFORE)})

    def start(self) -> subprocess.Popen[bytes]:
        file = self.directory / "plan.json"
        file.write_text(format_plan(self.plan), encoding="utf-8")
        options = [
            "--reassignment-json-file",
            str(file),
            "--throttle",
            str(RATE),
            "--interval",
            "1",
            "--moves-in-cluster",
            "6",
        ]
        with (self.directory / "log.txt").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "rebalance_lib.cli", "run", "--bootstrap-server", self.servers, *options],
                stdout=log,
                stderr=log,
            )

    @property
    def servers(self) -> str:
        return ",".join(node.address for node in self.kafka.nodes.values() if node.role == "broker")

    def wait_for(self, share: float) -> None:
        """Wait until that part of the bytes is copied, and more are under way: waves of moves follow each other."""
        meter = Meter(self.plan, self.before)

        def copied() -> tuple[float, bool]:
            status = plan_status(self.cluster, self.plan, self.before)
            progress, _ = meter.read(self.cluster, status, self.cluster.alive_brokers().keys())
            return progress.share if progress.bytes_copied else 0.0, bool(status.reassignments)

        def is_enough(found: tuple[float, bool]) -> bool:
            return found[0] >= share and found[0] > 0 and found[1]

        wait_for(copied, is_enough, seconds=180, passing=PASSING, tell=lambda: self.log)

    def assert_under_way(self, engine: subprocess.Popen[bytes]) -> None:
        """Whoever is struck now is struck in the middle of it."""
        assert engine.poll() is None, self.log
        assert self.cluster.reassignments(), self.log

    @property
    def log(self) -> str:
        return (self.directory / "log.txt").read_text(encoding="utf-8")

    def submissions(self) -> dict[int, int]:
        """How often each partition's move was begun, by the controllers' own log."""
        controllers = [node for node in self.kafka.nodes.values() if node.role == "controller"]
        return max((self._begun(Path(node.home)) for node in controllers), key=lambda counts: sum(counts.values()))

    def _begun(self, home: Path) -> dict[int, int]:
        segment = home / "metadata" / "__cluster_metadata-0" / "00000000000000000000.log"
        dump = java(LIBS, "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files")
        text = subprocess.run([*dump, str(segment)], capture_output=True, text=True, check=True).stdout
        topic_id, counts = None, dict.fromkeys(range(PARTITIONS), 0)
        for match in re.finditer(r"payload: (\{.*\})", text):
            record = json.loads(match[1])
            data = record["data"]
            if record["type"] == "TOPIC_RECORD" and data["name"] == self.topic:
                topic_id = data["topicId"]
            if record["type"] == "PARTITION_CHANGE_RECORD" and data["topicId"] == topic_id:
                counts[data["partitionId"]] += bool(data.get("addingReplicas"))
        return counts


@pytest.fixture
def case(chaos, tmp_path, request):
    name = re.sub(r"[^a-z]+", "-", request.node.name.split("[")[1].lower()).strip("-")
    admin = chaos.admin()
    write_topic(admin, chaos.bootstrap_servers, name, BEFORE, SIZE)
    servers = ",".join(node.address for node in chaos.nodes.values() if node.role == "broker")
    with Cluster({"bootstrap_servers": servers.split(",")}) as cluster:
        set_topic(cluster, name, {"min.insync.replicas": "2", LEADER_REPLICAS: "*"})
        yield Case(chaos, cluster, name, tmp_path)
    admin.close()
    admin = chaos.admin()
    delete_topics(admin, [name])
    admin.close()


def active_controller(kafka: Sandbox) -> int:
    admin = kafka.admin()
    try:
        quorum = admin.describe_metadata_quorum()
        return int(quorum["topics"][0]["partitions"][0]["leader_id"] if "topics" in quorum else quorum["leader_id"])
    finally:
        admin.close()


def strike(case: Case, engine: subprocess.Popen[bytes], victim: str, moment: str) -> subprocess.Popen[bytes]:
    """Kill the victim, or half way pause it, and bring it back; returns the engine that goes on."""
    pause = moment == "half way"
    nodes = {"the engine": lambda: 0, "a sender": lambda: SENDER, "a receiver": lambda: RECEIVER}
    node = nodes.get(victim, lambda: active_controller(case.kafka))()
    case.assert_under_way(engine)
    if victim == "the engine":
        if not pause:
            engine.send_signal(signal.SIGKILL)
            engine.wait()
            return case.start()
        engine.send_signal(signal.SIGSTOP)
        time.sleep(5)
        engine.send_signal(signal.SIGCONT)
        return engine
    if pause:
        case.kafka.pause(node)
        try:
            time.sleep(9)  # longer than the session of a broker: it is fenced meanwhile
            if node in case.kafka.broker_ids:
                wait_for(lambda: node not in case.cluster.alive_brokers(), passing=PASSING)
        finally:
            case.kafka.resume(node)
    else:
        case.kafka.kill(node)
        time.sleep(2)
        case.kafka.restart(node)
    return engine


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("victim", ["the engine", "a sender", "a receiver", "the controller"])
def test_the_plan_is_reached_whoever_dies(case, victim, moment):
    stood = throttle_settings(case.cluster, [case.topic])
    assert {value.source for found in stood.values() for value in found.values()} >= {
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "DYNAMIC_TOPIC_CONFIG",
        "STATIC_BROKER_CONFIG",
    }
    with Traffic(case.servers, case.topic, PARTITIONS) as traffic:
        engine = case.start()
        case.wait_for(MOMENTS[moment])
        engine = strike(case, engine, victim, moment)
        code = engine.wait(timeout=240)
    wait_settled(case)
    if code in UNFINISHED:  # all was copied before the victim was back: its throttle is left, as the run says
        assert "Throttle left on broker" in case.log
        code = case.start().wait(timeout=180)
    assert code == 0, case.log
    wait_for(
        lambda: plan_status(case.cluster, case.plan, case.before).having(Status.DONE),
        sorted(case.plan.as_dict()),
        passing=PASSING,
        tell=lambda: case.log,
    )
    wait_for_lists(case.cluster, case.topic, {LEADER_REPLICAS: "*"})
    wait_for(lambda: throttle_settings(case.cluster, [case.topic]), stood, passing=PASSING, tell=lambda: case.log)
    traffic.check()
    assert case.submissions() == dict.fromkeys(range(PARTITIONS), 1), case.log


def wait_settled(case: Case) -> None:
    """Wait until a broker that came back has caught up, and all know."""
    wait_for_alive(case.cluster, case.kafka.broker_ids)
    wait_for(
        lambda: case.cluster.partitions([case.topic]),
        lambda live: live and all(state.in_sync.issuperset(state.replicas) for state in live.values()),
        seconds=180,
        passing=PASSING,
        tell=lambda: case.log,
    )
