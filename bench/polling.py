"""What a poll of the executor costs as the cluster grows, with the same moves under way.

    python -m bench.polling --partitions 100000 --directory /dev/shm/polling

A sandbox gets 1,000 partitions, in topics of 20; one partition of each topic has data, and moves to another broker at a
throttle that lets it take most of an hour. `Executor.poll` is timed. Then the cluster gets more partitions, empty ones
in topics of 500, and the same executor, with the same 50 moves under way, is timed again. The bar: a poll takes at most
twice as long, on the clock and on a processor.

If the cluster has not got all partitions in ``--minutes``, it is timed with those that it has. A check, which reads the
rest of the cluster now and then, is timed beside it.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.document import machine, table
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Executor, Job, Settings, clean_up, preflight, set_throttles
from rebalance_lib.plan import Plan
from rebalance_lib.plan.pace import Pace
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox
from tests.kafka_data import write_records

BROKERS = 7  # a process may have 20,000 files open here, and a log takes one
MOVES = 50
SMALL = 1_000
PARTITIONS_A_TOPIC = SMALL // MOVES
PARTITIONS_A_LARGE_TOPIC = 500
BYTES = 3_000_000  # of each partition that moves
THROTTLE = 1_000  # bytes/s: what is under way stays so
POLLS = 60
CHECKS = 5
BAR = 2.0
WAIT_SECONDS = 5.0
# A log preallocates its indexes, 10 MB each: too much for so many. A broker that makes so many logs is late at times.
# A throttle lets a whole fetch through every ten seconds or so, however low it is: 10 kB of 3 MB take most of an hour.
CONFIG = {
    "log.index.size.max.bytes": "4096",
    "broker.session.timeout.ms": "60000",
    "replica.fetch.max.bytes": "10000",
}


@dataclass(frozen=True)
class Cost:
    """Of one poll or check: seconds on the clock and on a processor, medians, and bytes received."""

    clock: float
    processor: float
    received: float


def main() -> int:
    parser = argparse.ArgumentParser(description="Time polls of the executor as the cluster grows.")
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--directory", type=Path, help="where the sandbox is, such as /dev/shm/polling: logs are many")
    parser.add_argument("--minutes", type=float, default=6.0, help="how long the cluster may take to get them")
    options = parser.parse_args()
    with (
        Sandbox(brokers=BROKERS, racks=0, config=CONFIG, directory=options.directory, heap="1g", progress=log) as kafka,
        Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster,
        tempfile.TemporaryDirectory() as directory,
    ):
        job = prepare(kafka, cluster, Path(directory))
        settings = Settings(pace=Pace(THROTTLE, moves_in=None, moves_out=None, moves_in_cluster=None))
        set_throttles(cluster, job, preflight(cluster, job, settings).status, settings)
        executor = Executor(cluster, job, settings, log=log)
        executor.check()
        rows = []
        small = measure(cluster, executor)
        rows += cells(SMALL, small)
        grow(kafka, cluster, options.partitions, options.minutes)
        partitions = len(cluster.partitions())
        large = measure(cluster, executor)
        rows += cells(partitions, large)
        clean_up(cluster, job, settings)
    poll, before = large["poll"], small["poll"]
    clock, processor = poll.clock / before.clock, poll.processor / before.processor
    print(f"\nOn {machine()}, {MOVES} moves under way on {BROKERS} brokers, medians:\n")
    print(table(("partitions", "", "ms", "ms on a processor", "kB received"), rows))
    print(f"\nA poll at {partitions:,} partitions over one at {SMALL:,}: {clock:.2f} on the clock, ", end="")
    print(f"{processor:.2f} on a processor; the bar is {BAR:g}")
    good = max(clock, processor) <= BAR
    print("good" if good else "NOT good enough")
    return 0 if good else 1


def log(text: str) -> None:
    """A message on standard error, with the time."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def cells(partitions: int, costs: dict[str, Cost]) -> list[tuple[str, ...]]:
    """Rows of the table."""
    return [
        (
            f"{partitions:,}",
            name,
            f"{1000 * cost.clock:.1f}",
            f"{1000 * cost.processor:.1f}",
            f"{cost.received / 1000:.1f}",
        )
        for name, cost in costs.items()
    ]


def prepare(kafka: Sandbox, cluster: Cluster, directory: Path) -> Job:
    """The first topics, data in a partition of each, and the plan that moves these."""
    before: dict[TopicPartition, tuple[int, ...]] = {}
    after: dict[TopicPartition, tuple[int, ...]] = {}
    with kafka.admin(request_timeout_ms=120_000) as admin:
        for number in range(MOVES):
            name = f"moving-{number:02d}"
            replicas = {p: [(number + p) % BROKERS + 1] for p in range(PARTITIONS_A_TOPIC)}
            admin.create_topics({name: {"assignments": replicas}}, wait_for_metadata=False)
            before[TopicPartition(name, 0)] = (number % BROKERS + 1,)
            after[TopicPartition(name, 0)] = ((number + 1) % BROKERS + 1,)
    wait_until_made(cluster, SMALL, time.monotonic() + 120)
    for tp in before:
        write_records(kafka.bootstrap_servers, tp.topic, [0], BYTES)
    log(f"{len(before)} partitions have data")
    plan, origin = Plan.from_assignment(after), Plan.from_assignment(before)
    return Job(plan, origin, cluster.cluster_id(), Artifacts.at(directory))


def grow(kafka: Sandbox, cluster: Cluster, partitions: int, minutes: float) -> None:
    """More topics, empty, until the cluster has that many partitions or the time is over."""
    deadline, made = time.monotonic() + 60 * minutes, SMALL
    with kafka.admin(request_timeout_ms=120_000) as admin:
        while made < partitions and time.monotonic() < deadline:
            count = min(PARTITIONS_A_LARGE_TOPIC, partitions - made)
            replicas = {number: [number % BROKERS + 1] for number in range(count)}
            admin.create_topics({f"many-{made:06d}": {"assignments": replicas}}, wait_for_metadata=False)
            made += count
            if made % 10_000 < PARTITIONS_A_LARGE_TOPIC:
                log(f"{made} partitions")
    wait_until_made(cluster, made, deadline)


def wait_until_made(cluster: Cluster, partitions: int, deadline: float) -> None:
    """Metadata has a partition long before its broker has made its files."""
    while time.monotonic() < deadline:
        found = cluster.describe_log_dirs(cluster.alive_brokers())
        held = sum(len(log_dir.replicas) for listed in found.values() for log_dir in listed)
        if held >= partitions:
            return
        log(f"{held} of {partitions} replicas are in log dirs")
        time.sleep(WAIT_SECONDS)
    log("the time is over")


def measure(cluster: Cluster, executor: Executor) -> dict[str, Cost]:
    """Polls and checks while all moves are under way."""
    executor.check()
    executor.poll()
    costs = {"poll": cost(executor.poll, POLLS), "check": cost(executor.check, CHECKS)}
    if len(cluster.reassignments()) != MOVES:
        raise SystemExit(f"{len(cluster.reassignments())} moves are under way, not {MOVES}")
    for name, one in costs.items():
        log(f"{name}: {1000 * one.clock:.1f} ms, {1000 * one.processor:.1f} ms on a processor")
    return costs


def cost(task: Any, times: int) -> Cost:
    """The median of some times."""
    clock, processor = [], []
    with received_bytes() as received:
        for _ in range(times):
            began, used = time.perf_counter(), time.process_time()
            task()
            clock.append(time.perf_counter() - began)
            processor.append(time.process_time() - used)
    return Cost(median(clock), median(processor), sum(received) / times)


@contextmanager
def received_bytes() -> Iterator[list[int]]:
    """The lengths of all that this process receives meanwhile."""
    received: list[int] = []
    recv = socket.socket.recv

    def counted(self: socket.socket, *arguments: Any) -> bytes:
        data = recv(self, *arguments)
        received.append(len(data))
        return data

    socket.socket.recv = counted  # type: ignore[method-assign]
    try:
        yield received
    finally:
        socket.socket.recv = recv  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
