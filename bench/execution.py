"""The executor beside Kafka's own tool: the same plan, the same throttle, the same cluster, in turn.

    python -m bench.execution --rounds 3

Kafka's ``ReassignPartitionsCommand --execute --throttle`` submits everything at once; the executor begins moves under
its default caps. Each run has fresh topics with equal contents and an equal plan, and the two take turns. A watcher of
its own polls the cluster ten times a second: *moves* is the time from the first reassignment that it sees until none is
listed and every partition has its planned replicas, all in sync. *whole* is everything that has to be done, throttles
removed at the end: for the executor from the start of preflight (which samples writes for two seconds) until leaders
are elected; for Kafka's tool from the start of its process until ``--verify`` has removed the throttles. The run is
good if neither the moves nor the whole take more than 1.1 times as long, by medians.

With ``--profile FILE``, the executor's runs are profiled (``python -m pstats FILE``), and the seconds of each phase are
printed, by the journal.
"""

from __future__ import annotations

import argparse
import cProfile
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Self

from bench.document import machine, table
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Job, Settings, run_plan
from rebalance_lib.execution.records.journal import read_journal
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.plan.pace import Pace
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox
from sandbox.cluster import LIBS
from sandbox.node import java
from tests.kafka_data import write_topic

BROKERS = 3
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
BAR = 1.1
POLL_SECONDS = 0.1
CHECK_SECONDS = 1.0
QUOTA_SECONDS = 12.0  # Kafka counts a quota over eleven seconds
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
    """Seconds of the moves, from the start until the moves were over, and until throttles were removed."""

    moves: float
    until_moved: float
    whole: float


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the executor beside Kafka's own tool.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", help="only those whose name has this in it", default="")
    parser.add_argument("--profile", type=Path, help="profile the executor's runs into this file", default=None)
    options = parser.parse_args()
    rows, good = [], True
    execute_ours = Ours(options.profile)
    with Sandbox(brokers=BROKERS, racks=0) as kafka:
        for case in CASES:
            if options.cases in case.name:
                theirs, ours = take_turns(kafka, case, options.rounds, execute_ours)
                good &= max(ratio(theirs, ours, "moves"), ratio(theirs, ours, "whole")) <= BAR
                rows.append(cells(case, theirs, ours))
                print(" | ".join(rows[-1]), flush=True)
    print(f"\nOn {machine()}; {options.rounds} rounds, medians, least and most in brackets:\n")
    print(table(HEAD, rows))
    print("\ngood" if good else f"\nNOT good enough: a ratio is above {BAR}")
    return 0 if good else 1


HEAD = (
    "plan",
    "MB",
    "throttle MB/s",
    "Kafka's moves s",
    "our moves s",
    "ratio",
    "Kafka's whole s",
    "our whole s",
    "ratio",
    "Kafka's, throttles left on, s",
)


def ratio(theirs: list[Timed], ours: list[Timed], what: str) -> float:
    """Our median over Kafka's."""
    return median(getattr(one, what) for one in ours) / median(getattr(one, what) for one in theirs)


def cells(case: Case, theirs: list[Timed], ours: list[Timed]) -> tuple[str, ...]:
    """A row of the table."""
    moved = sum(count * size for count, size in case.sizes)
    return (
        case.name,
        f"{moved / 1e6:.0f}",
        f"{case.throttle / 1e6:g}",
        spread([one.moves for one in theirs]),
        spread([one.moves for one in ours]),
        f"{ratio(theirs, ours, 'moves'):.2f}",
        spread([one.whole for one in theirs]),
        spread([one.whole for one in ours]),
        f"{ratio(theirs, ours, 'whole'):.2f}",
        spread([one.until_moved for one in theirs]),
    )


def spread(values: list[float]) -> str:
    """The median with the least and the most."""
    return f"{median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


Execute = Callable[[Sandbox, Case, Plan, Plan], None]


def take_turns(kafka: Sandbox, case: Case, rounds: int, execute_ours: Ours) -> tuple[list[Timed], list[Timed]]:
    """Kafka's tool and the executor in turn; who is first changes with every round."""
    tools: dict[str, Execute] = {"theirs": execute_theirs, "ours": execute_ours}
    times: dict[str, list[Timed]] = {name: [] for name in tools}
    for number in range(rounds):
        for name in tools if number % 2 == 0 else reversed(tools):
            times[name].append(run(kafka, case, tools[name]))
    return times["theirs"], times["ours"]


def run(kafka: Sandbox, case: Case, execute: Execute) -> Timed:
    """One run on fresh topics."""
    with kafka.admin() as admin:
        before, plan = make_topics(admin, kafka, case)
        time.sleep(QUOTA_SECONDS)
        with Watch(kafka.bootstrap_servers, plan) as watch:
            began = time.monotonic()
            execute(kafka, case, before, plan)
            watch.wait()
            if execute is execute_theirs:
                run_tool(kafka, plan, "--verify")
            ended = time.monotonic()
        admin.delete_topics(sorted({tp.topic for tp in plan.as_dict()}))
    return Timed(watch.ended - watch.began, watch.ended - began, ended - began)


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


class Ours:
    """Lets the executor execute a plan under its default caps, and profiles it if there is a file for that."""

    def __init__(self, profile: Path | None) -> None:
        self._file = profile
        self._profile = cProfile.Profile() if profile is not None else None

    def __call__(self, kafka: Sandbox, case: Case, before: Plan, plan: Plan) -> None:
        """Execute the plan, from preflight to the record."""
        with tempfile.TemporaryDirectory() as directory, connect(kafka.bootstrap_servers) as cluster:
            job = Job(plan, before, kafka.cluster_id, Artifacts.at(Path(directory)))
            settings = Settings(pace=Pace(throttle=case.throttle))
            began = datetime.now(UTC)
            with self._profile or nullcontext():
                ending = run_plan(cluster, job, settings, interval=CHECK_SECONDS, approved_by="bench")
            if not ending.completed:
                raise SystemExit(f"the plan was not completed: {ending.verdict}")
            if self._profile is not None and self._file is not None:
                self._profile.dump_stats(self._file)
                print_phases(began, job.artifacts)


def print_phases(began: datetime, artifacts: Artifacts) -> None:
    """When things happened, in seconds since the start, by the journal; moves that began in one request together."""
    journal = read_journal(artifacts)

    def after(at: str) -> float:
        return (datetime.fromisoformat(at) - began).total_seconds()

    events = Counter((round(after(event["at"]), 1), event["event"]) for event in journal)
    for (seconds, name), count in sorted(events.items()):
        print(f"{seconds:6.1f} s  {count:4} {name}")
    print(f"{(datetime.now(UTC) - began).total_seconds():6.1f} s  the end", flush=True)


def connect(bootstrap_servers: str) -> Cluster:
    """A connection to the cluster."""
    return Cluster({"bootstrap_servers": bootstrap_servers.split(",")})


class Watch:
    """Sees when the first reassignment is under way, and when every partition is at its target."""

    def __init__(self, bootstrap_servers: str, plan: Plan) -> None:
        self._servers, self._targets = bootstrap_servers, plan.as_dict()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.began = self.ended = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait(self) -> None:
        """Until every partition is at its target."""
        self._thread.join(GIVE_UP_SECONDS)
        if not self.ended:
            raise SystemExit(f"the plan has not ended after {GIVE_UP_SECONDS:.0f} s")

    def _poll(self) -> None:
        with connect(self._servers) as cluster:
            topics = {tp.topic for tp in self._targets}
            while not self._over.wait(POLL_SECONDS):
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
