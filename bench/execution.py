"""The engine beside Kafka's own tool: the same plan, the same throttle, the same cluster, in turn.

    python -m bench.execution --rounds 3

Kafka's ``ReassignPartitionsCommand --execute --throttle`` submits everything at once; the engine begins moves under its
default caps. Each run has fresh topics with equal contents and an equal plan, and the two take turns. A watcher of its
own looks at the cluster ten times a second: *moves* is the time from the first reassignment that it sees until none is
listed and every partition has its planned replicas, all in sync. *whole* is from the start of the tool, for the engine
from the first look of its preflight (which samples writes for two seconds) until throttles are taken away and leaders
elected; for Kafka's tool from the start of its process until the moves are over, without the ``--verify`` that takes
throttles away. The run is good if the engine's moves take at most 1.1 times as long, by medians.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from bench.document import machine, table
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Job, Settings, run_plan
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.plan.pace import Pace
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox
from sandbox.cluster import LIBS
from sandbox.node import java
from tests.kafka_data import write_topic

if TYPE_CHECKING:
    from collections.abc import Callable

BROKERS = 3
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
BAR = 1.1
LOOK_SECONDS = 0.1
CHECK_SECONDS = 1.0
SETTLE_SECONDS = 12.0  # a quota remembers eleven seconds
GIVE_UP_SECONDS = 300.0


@dataclass(frozen=True)
class Case:
    """Partitions to move: how many of how many bytes each, at which throttle, and between which brokers.

    Args:
        sizes: how many partitions of how many bytes.
        throttle: bytes per second.
        ways: the replicas before and after, which partitions take in turn.
    """

    name: str
    sizes: tuple[tuple[int, int], ...]
    throttle: int
    ways: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


AROUND = (((1,), (2,)), ((2,), (3,)), ((3,), (1,)))
TO_ONE = (((1,), (3,)), ((2,), (3,)))
PAIRS = (((1, 2), (3, 2)), ((2, 3), (1, 3)), ((3, 1), (2, 1)))

CASES = (
    Case("6 of 30 MB", ((6, 30_000_000),), 6_000_000, AROUND),
    Case("30 of 0.1 to 10 MB, 2 replicas", ((10, 100_000), (10, 2_000_000), (10, 10_000_000)), 5_000_000, PAIRS),
    Case("300 of 100 kB", ((300, 100_000),), 2_000_000, AROUND),
    Case("300 of 100 kB, to one broker", ((300, 100_000),), 2_000_000, TO_ONE),
    Case("120 of 1 MB, to one broker", ((120, 1_000_000),), 8_000_000, TO_ONE),
)


@dataclass(frozen=True)
class Timed:
    """How long the moves took, and everything."""

    moves: float
    whole: float


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the engine beside Kafka's own tool.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", help="only those whose name has this in it", default="")
    options = parser.parse_args()
    rows, good = [], True
    with Sandbox(brokers=BROKERS, racks=0) as kafka:
        for case in CASES:
            if options.cases in case.name:
                theirs, ours = take_turns(kafka, case, options.rounds)
                ratio = median(one.moves for one in ours) / median(one.moves for one in theirs)
                good &= ratio <= BAR
                rows.append(cells(case, theirs, ours, ratio))
                print(" | ".join(rows[-1]), flush=True)
    print(f"\nOn {machine()}; {options.rounds} rounds, medians, least and most in brackets:\n")
    print(table(HEAD, rows))
    print("\ngood" if good else f"\nNOT good enough: a ratio is above {BAR}")
    return 0 if good else 1


HEAD = (
    "plan",
    "MB",
    "throttle MB/s",
    "Kafka's s",
    "ours s",
    "ours / Kafka's",
    "Kafka's whole s",
    "ours whole s",
)


def cells(case: Case, theirs: list[Timed], ours: list[Timed], ratio: float) -> tuple[str, ...]:
    """A row of the table."""
    moved = sum(count * size for count, size in case.sizes)
    return (
        case.name,
        f"{moved / 1e6:.0f}",
        f"{case.throttle / 1e6:g}",
        spread([one.moves for one in theirs]),
        spread([one.moves for one in ours]),
        f"{ratio:.2f}",
        spread([one.whole for one in theirs]),
        spread([one.whole for one in ours]),
    )


def spread(values: list[float]) -> str:
    """The median with the least and the most."""
    return f"{median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


def take_turns(kafka: Sandbox, case: Case, rounds: int) -> tuple[list[Timed], list[Timed]]:
    """Kafka's tool and the engine in turn; who is first changes with every round."""
    tools: dict[str, Callable[[Sandbox, Case, Plan, Plan], None]] = {"theirs": execute_theirs, "ours": execute_ours}
    times: dict[str, list[Timed]] = {name: [] for name in tools}
    for number in range(rounds):
        for name in tools if number % 2 == 0 else reversed(tools):
            times[name].append(run(kafka, case, tools[name]))
    return times["theirs"], times["ours"]


def run(kafka: Sandbox, case: Case, execute: Callable[[Sandbox, Case, Plan, Plan], None]) -> Timed:
    """One run on fresh topics."""
    with kafka.admin() as admin:
        before, plan = make_topics(admin, kafka, case)
        time.sleep(SETTLE_SECONDS)
        with Watch(kafka.bootstrap_servers, plan) as watch:
            began = time.monotonic()
            execute(kafka, case, before, plan)
            returned = time.monotonic()
            watch.wait()
        if execute is execute_theirs:
            run_tool(kafka, plan, "--verify")
        admin.delete_topics(sorted({tp.topic for tp in plan.as_dict()}))
    return Timed(watch.ended - watch.began, max(watch.ended, returned) - began)


def make_topics(admin: Any, kafka: Sandbox, case: Case) -> tuple[Plan, Plan]:
    """A topic for each size, and the plan for them; the same every time but for the names of the topics."""
    before: dict[TopicPartition, tuple[int, ...]] = {}
    after: dict[TopicPartition, tuple[int, ...]] = {}
    stamp = f"{random.getrandbits(32):08x}"  # a deleted topic's files stay for a while under its name
    for count, size in case.sizes:
        name = f"bench-{size}-{stamp}"
        ways = [case.ways[number % len(case.ways)] for number in range(count)]
        write_topic(admin, kafka.bootstrap_servers, name, [list(way[0]) for way in ways], size)
        before |= {TopicPartition(name, number): way[0] for number, way in enumerate(ways)}
        after |= {TopicPartition(name, number): way[1] for number, way in enumerate(ways)}
    return Plan.from_assignment(before), Plan.from_assignment(after)


def execute_theirs(kafka: Sandbox, case: Case, _: Plan, plan: Plan) -> None:
    """Let Kafka's tool submit the plan."""
    run_tool(kafka, plan, "--execute", "--throttle", str(case.throttle))


def run_tool(kafka: Sandbox, plan: Plan, *arguments: str) -> None:
    """Run Kafka's tool for this plan."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "plan.json")
        path.write_text(format_plan(plan), encoding="utf-8")
        words = ["--bootstrap-server", kafka.bootstrap_servers, "--reassignment-json-file", str(path), *arguments]
        subprocess.run(java(LIBS, TOOL, *words), capture_output=True, check=True, timeout=GIVE_UP_SECONDS)


def execute_ours(kafka: Sandbox, case: Case, before: Plan, plan: Plan) -> None:
    """Let the engine carry the plan out under its default caps."""
    with tempfile.TemporaryDirectory() as directory, connect(kafka.bootstrap_servers) as cluster:
        job = Job(plan, before, kafka.cluster_id, Artifacts.at(Path(directory)))
        settings = Settings(pace=Pace(throttle=case.throttle))
        ending = run_plan(cluster, job, settings, interval=CHECK_SECONDS, approved_by="bench")
        if not ending.reached:
            raise SystemExit(f"the plan was not carried out: {ending.verdict}")


def connect(bootstrap_servers: str) -> Cluster:
    """A connection to the cluster."""
    return Cluster({"bootstrap_servers": bootstrap_servers.split(",")})


class Watch:
    """Sees when the first reassignment is under way, and when the plan is reached."""

    def __init__(self, bootstrap_servers: str, plan: Plan) -> None:
        self._servers, self._targets = bootstrap_servers, plan.as_dict()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.began = self.ended = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait(self) -> None:
        """Until the plan is reached."""
        self._thread.join(GIVE_UP_SECONDS)
        if not self.ended:
            raise SystemExit(f"the plan has not ended after {GIVE_UP_SECONDS:.0f} s")

    def _look(self) -> None:
        with connect(self._servers) as cluster:
            topics = {tp.topic for tp in self._targets}
            while not self._over.wait(LOOK_SECONDS):
                now = time.monotonic()
                under_way = cluster.reassignments()
                if under_way and not self.began:
                    self.began = now
                if self.began and not under_way:
                    live = cluster.partitions(topics)
                    if all(
                        live[tp].replicas == target and live[tp].in_sync.issuperset(target)
                        for tp, target in self._targets.items()
                    ):
                        self.ended = now
                        return


if __name__ == "__main__":
    sys.exit(main())
