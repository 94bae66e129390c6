"""A run survives the death, or the silence, of whoever takes part: the executor, a sender, a receiver, the controller.

Each is struck by a signal to a real process, with producers (``acks=all``) and a consumer at work all along: all of
them in turn in one run, and in the long run of the tests each alone, at three moments. In the end every partition is at
its target, every throttle setting is what it was, with its source, no acknowledged record is lost or out of order, and
no move was requested twice, unless the answer was lost. Requests are counted where they are made (`counted`): one that
repeats another leaves no record in the controller's log.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Kind, make_request, run_plan
from rebalance_lib.execution.plan_status import Status, read_status
from rebalance_lib.execution.progress import Meter
from rebalance_lib.execution.throttles.config import (
    ALL_RATES,
    FOLLOWER_RATE,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    REPLICA_LISTS,
)
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox
from tests.conftest import SMALL_FETCHES
from tests.everywhere import (
    PASSING,
    set_broker,
    set_default,
    set_topic,
    wait_for_alive,
    wait_for_lists,
    wait_for_rates,
)
from tests.execution.running import FAST, settings
from tests.execution.traffic import Traffic
from tests.kafka_data import delete_topics, write_topic
from tests.waiting import wait_for

BROKERS = (1, 2, 3, 4)
BEFORE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2
AFTER = [[4, 2, 3], [2, 3, 4], [3, 4, 2]] * 2  # in two waves of three
PARTITIONS = len(BEFORE)
SENDER, RECEIVER = 1, 4
# Alone: the receiver gets 18 MB in 26 seconds, and near the end some six are left.
SIZE, RATE = 3_000_000, 700_000
MOMENTS = {"at the beginning": 0.02, "half way": 0.4, "near the end": 0.75}
# In turn: what is under way stays so for more than two minutes, unless the rate is raised.
SMALL_SIZE, LOW_RATE = 1_500_000, 30_000
UNFINISHED = (3, 4)  # exit codes of a run at whose end a broker was down; run again, it ends what is left
DEFAULT_RATE, STATIC_RATE = "222222222", "333333333"
OWN_RATES = {LEADER_RATE: "111111111", FOLLOWER_RATE: "111111112"}
INHERITED = {LEADER_RATE: DEFAULT_RATE, FOLLOWER_RATE: STATIC_RATE}
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def chaos() -> Sandbox:
    """Four brokers and three controllers, with throttles of all kinds that were set before."""
    with Sandbox(brokers=4, racks=0, controllers=3, config={FOLLOWER_RATE: STATIC_RATE, **SMALL_FETCHES}) as kafka:
        with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
            set_default(cluster, {LEADER_RATE: DEFAULT_RATE})
            set_broker(cluster, 1, OWN_RATES)
            wait_for_rates(cluster, {1: OWN_RATES, **dict.fromkeys((2, 3, 4), INHERITED)})
        yield kafka


def throttle_settings(cluster: Cluster, topics: list[str]) -> dict[str, object]:
    """Every throttle setting of every broker and of these topics, with its source."""
    brokers = {f"broker {broker}": cluster.broker_config(broker, ALL_RATES) for broker in BROKERS}
    return brokers | {topic: cluster.topic_config(topic, REPLICA_LISTS) for topic in topics}


@dataclass
class Case:
    """One run: a plan for a topic of its own, and the process that executes it."""

    kafka: Sandbox
    cluster: Cluster
    topic: str
    directory: Path
    rate: int
    executors: list[subprocess.Popen[bytes]] = field(default_factory=list)

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
            str(self.rate),
            "--interval",
            "1",
            "--moves-in-cluster",
            "3",
        ]
        counted = [sys.executable, "-m", "tests.execution.counted", str(self.directory / "requests.txt")]
        command = [*counted, "run", "--bootstrap-server", self.servers, *options]
        with (self.directory / "log.txt").open("ab") as log:
            self.executors.append(subprocess.Popen(command, stdout=log, stderr=log))
        return self.executors[-1]

    @property
    def servers(self) -> str:
        return ",".join(node.address for node in self.kafka.nodes.values() if node.role == "broker")

    @property
    def state(self) -> Artifacts:
        return Artifacts.at(self.directory / "plan.json.state")

    def wait_for(self, share: float) -> None:
        """Wait until that part of the bytes is copied, and more are under way: waves of moves follow each other."""
        meter = Meter(self.plan, self.before)

        def copied() -> tuple[float, bool]:
            status = read_status(self.cluster, self.plan, self.before)
            progress, _ = meter.read(self.cluster, status, self.cluster.alive_brokers().keys())
            return progress.share if progress.bytes_copied else 0.0, bool(status.reassignments)

        def is_enough(found: tuple[float, bool]) -> bool:
            return found[0] >= share and found[0] > 0 and found[1]

        wait_for(copied, is_enough, seconds=180, passing=PASSING, tell=lambda: self.log)

    def assert_under_way(self, executor: subprocess.Popen[bytes]) -> None:
        """Whoever is struck now is struck in the middle of it."""
        assert executor.poll() is None, self.log
        assert self.cluster.reassignments(), self.log

    def received(self) -> int:
        """The bytes of the topic that the receiver has."""
        log_dirs = self.cluster.log_dirs(RECEIVER, self.plan.as_dict())
        return sum(replica.size for log_dir in log_dirs for replica in log_dir.replicas)

    @property
    def log(self) -> str:
        return (self.directory / "log.txt").read_text(encoding="utf-8")

    def requests(self) -> Counter[int]:
        """How often each partition's replicas were requested, by the processes that did."""
        lines = (self.directory / "requests.txt").read_text(encoding="utf-8").splitlines()
        return Counter(tp["partition"] for line in lines for tp in json.loads(line))


@pytest.fixture
def start_case(chaos, tmp_path, request):
    """``start_case(size, rate)`` is a case whose partitions have that many bytes."""
    name = re.sub(r"[^a-z]+", "-", request.node.name.lower()).strip("-")
    servers = ",".join(node.address for node in chaos.nodes.values() if node.role == "broker")
    cases = []
    with Cluster({"bootstrap_servers": servers.split(",")}) as cluster:

        def start(size, rate):
            with chaos.admin() as admin:
                write_topic(admin, chaos.bootstrap_servers, name, BEFORE, size)
            set_topic(cluster, name, {"min.insync.replicas": "2", LEADER_REPLICAS: "*"})
            cases.append(Case(chaos, cluster, name, tmp_path, rate))
            return cases[-1]

        yield start
    for executor in (executor for case in cases for executor in case.executors):
        executor.kill()
        executor.wait()
    with chaos.admin() as admin:
        delete_topics(admin, [name])


def active_controller(kafka: Sandbox) -> int:
    with kafka.admin() as admin:
        quorum = admin.describe_metadata_quorum()
        return int(quorum["topics"][0]["partitions"][0]["leader_id"] if "topics" in quorum else quorum["leader_id"])


def strike(case: Case, executor: subprocess.Popen[bytes], victim: str, *, pause: bool) -> subprocess.Popen[bytes]:
    """Kill or pause the victim until the others have noticed, and bring it back; returns the executor that goes on."""
    case.assert_under_way(executor)
    if victim == "the executor":
        return strike_executor(case, executor, pause=pause)
    node = {"a sender": SENDER, "a receiver": RECEIVER}.get(victim) or active_controller(case.kafka)
    (case.kafka.pause if pause else case.kafka.kill)(node)
    try:
        if victim == "the controller":
            wait_for(lambda: active_controller(case.kafka) != node, passing=PASSING)
        else:
            wait_for(lambda: node not in case.cluster.alive_brokers(), passing=PASSING)
    finally:
        (case.kafka.resume if pause else case.kafka.restart)(node)
    wait_for_alive(case.cluster, BROKERS)
    return executor


def strike_executor(case: Case, executor: subprocess.Popen[bytes], *, pause: bool) -> subprocess.Popen[bytes]:
    if not pause:
        executor.send_signal(signal.SIGKILL)
        executor.wait()
        length = len(case.log)
        executor = case.start()
        wait_for(lambda: "partitions done" in case.log[length:], tell=lambda: case.log)  # it has found the moves
        return executor
    executor.send_signal(signal.SIGSTOP)
    received = case.received()
    wait_for(case.received, lambda found: found > received, passing=PASSING)  # the brokers go on without it
    executor.send_signal(signal.SIGCONT)
    return executor


@pytest.mark.long
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("victim", ["the executor", "a sender", "a receiver", "the controller"])
def test_the_run_completes_whoever_dies(start_case, victim, moment):
    case = start_case(SIZE, RATE)
    before = throttle_settings(case.cluster, [case.topic])
    with Traffic(case.servers, case.topic, PARTITIONS) as traffic:
        executor = case.start()
        case.wait_for(MOMENTS[moment])
        executor = strike(case, executor, victim, pause=moment == "half way")
        code = executor.wait(timeout=240)
    assert_completed(case, code, before)
    traffic.check()


def test_the_run_completes_though_all_are_struck_in_turn(start_case):
    case = start_case(SMALL_SIZE, LOW_RATE)
    before = throttle_settings(case.cluster, [case.topic])
    assert {value.source for found in before.values() for value in found.values()} >= {
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "DYNAMIC_TOPIC_CONFIG",
        "STATIC_BROKER_CONFIG",
    }
    with Traffic(case.servers, case.topic, PARTITIONS, rate=5, size=100) as traffic:
        executor = case.start()
        case.wait_for(0.02)
        executor = strike(case, executor, "the executor", pause=False)
        executor = strike(case, executor, "a sender", pause=False)
        executor = strike(case, executor, "a receiver", pause=True)
        executor = strike(case, executor, "the controller", pause=False)
        make_request(case.state, Kind.THROTTLE, FAST, by="a test")
        code = executor.wait(timeout=240)
    assert_completed(case, code, before)
    traffic.check()


def assert_completed(case: Case, code: int, before: dict[str, object]) -> None:
    """Every partition is at its target, each move was requested once, and throttles are what they were."""
    wait_in_sync(case)
    if code in UNFINISHED:  # all was copied before the victim answered again: its throttle is left, as the run says
        assert "was not restored" in case.log
        code = case.start().wait(timeout=180)
    assert code == 0, case.log
    wait_for(
        lambda: read_status(case.cluster, case.plan, case.before).having(Status.DONE),
        sorted(case.plan.as_dict()),
        passing=PASSING,
        tell=lambda: case.log,
    )
    wait_for_lists(case.cluster, case.topic, {LEADER_REPLICAS: "*"})
    wait_for(lambda: throttle_settings(case.cluster, [case.topic]), before, passing=PASSING, tell=lambda: case.log)
    once = dict.fromkeys(range(PARTITIONS), 1)
    assert case.requests() == once or "was not answered" in case.log, f"{case.requests()}\n{case.log}"
    assert max(case.requests().values()) <= 1 + case.log.count("was not answered"), case.log


def wait_in_sync(case: Case) -> None:
    """Wait until a broker that came back has caught up, and all know."""
    wait_for_alive(case.cluster, BROKERS)
    wait_for(
        lambda: case.cluster.partitions([case.topic]),
        lambda live: live and all(state.in_sync.issuperset(state.replicas) for state in live.values()),
        seconds=180,
        passing=PASSING,
        tell=lambda: case.log,
    )


def test_05_an_inherited_throttle_is_accepted_after_deletion(chaos, make_job):
    with Cluster({"bootstrap_servers": chaos.bootstrap_servers.split(",")}) as cluster:
        with chaos.admin() as admin:
            write_topic(admin, chaos.bootstrap_servers, "inherited", [[2]], 10_000)
        before = {broker: cluster.broker_config(broker, RATES) for broker in (2, 3)}
        assert {value.source for value in before[2].values()} == {
            "DYNAMIC_DEFAULT_BROKER_CONFIG",
            "STATIC_BROKER_CONFIG",
        }
        job = make_job(cluster, "inherited", [[3]])
        ending = run_plan(cluster, job, settings(throttle=5_000_000), interval=0.2, approved_by="a test")
        assert (ending.completed, ending.restored.left) == (True, {})
        wait_for(lambda: {broker: cluster.broker_config(broker, RATES) for broker in (2, 3)}, before)
