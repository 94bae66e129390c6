"""The forecast of a dry run beside what a real cluster does, for random plans.

    python -m bench.simulate --plans 10 --seed 1

A sandbox cluster gets topics with real records. Each plan gives most partitions other replicas, in log dirs of its
choice, at a throttle that lets it take half a minute or so; the executor runs it, with the default caps in every
second plan, with others in between. The plan that moves one replica at a time replaces both of two. What is forecast
and what comes about stand side by side: the time from the first move's beginning to the last one's end, both from the
journal of the run (so without preflight, the setting and taking away of throttles, and elections), and the most bytes
in the files of each log dir, removed replicas included as long as they are there. The run is good if eight of ten times
are within a quarter of the forecast, and no log dir ever holds more than a twentieth above it.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bench.document import table
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.execution import Job, Settings, run_plan
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import read_journal
from rebalance_lib.plan import Plan, PlanEntry, current_assignment
from rebalance_lib.plan.pace import Order, Pace
from rebalance_lib.reassignment import Forecast, simulate
from sandbox import Sandbox
from tests.kafka_data import write_topic

if TYPE_CHECKING:
    from rebalance_lib.topology import Snapshot

BROKERS = 4
SECONDS_LATE = 0.25  # part of the forecast that a time may be off
BYTES_ABOVE = 0.05  # part of the forecast that a log dir may be above it
PART_IN_TIME = 0.8
SAMPLE_SECONDS = 0.2
CHECK_SECONDS = 0.5  # a move's end is written down at the check after it
QUOTA_SECONDS = 12.0  # Kafka counts a quota over eleven seconds
METADATA = "__cluster_metadata-0"  # the controller's log, which every broker keeps and no snapshot has

PACES = {
    "default": Pace(),
    "1 in, 1 out": Pace(moves_in=1, moves_out=1),
    "one replica at a time": Pace(one_replica_at_a_time=True),
    "3 in the cluster": Pace(moves_in_cluster=3),
    "2 in, smallest first": Pace(moves_in=2, order=Order.SMALLEST_FIRST),
    "12 MB in flight": Pace(bytes_in_flight=12_000_000),
}
OTHERS = [name for name in PACES if name != "default"]


@dataclass(frozen=True)
class Result:
    """One plan, forecast and real."""

    pace: str
    moves: int
    bytes: int
    throttle: int
    forecast_seconds: float
    real_seconds: float
    disk: float  # the largest real peak of a log dir over its forecast

    @property
    def in_time(self) -> bool:
        return abs(self.real_seconds - self.forecast_seconds) <= SECONDS_LATE * self.forecast_seconds


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare forecasts with a real cluster.")
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    results = []
    with Sandbox(brokers=BROKERS, racks=0) as kafka:
        for number in range(options.plans):
            pace = OTHERS[number // 2 % len(OTHERS)] if number % 2 else "default"
            results.append(compare(kafka, f"plan-{number}", pace, random.Random(f"{options.seed}-{number}")))
            print(" | ".join(cells(results[-1])), flush=True)
    print()
    print(table(HEAD, map(cells, results), left=1))
    return verdict(results)


HEAD = ("caps", "copies", "MB", "throttle MB/s", "forecast s", "real s", "real / forecast", "peak disk / forecast")


def cells(result: Result) -> tuple[str, ...]:
    """A row of the table."""
    return (
        result.pace,
        str(result.moves),
        f"{result.bytes / 1e6:.1f}",
        f"{result.throttle / 1e6:.2f}",
        f"{result.forecast_seconds:.1f}",
        f"{result.real_seconds:.1f}",
        f"{result.real_seconds / result.forecast_seconds:.2f}",
        f"{result.disk:.3f}",
    )


def verdict(results: list[Result]) -> int:
    """Say whether the forecasts were good enough."""
    in_time = sum(result.in_time for result in results)
    highest = max(result.disk for result in results)
    good = in_time >= PART_IN_TIME * len(results) and highest <= 1 + BYTES_ABOVE
    print(
        f"\n{in_time} of {len(results)} within {SECONDS_LATE:.0%}, disks at most {highest:.3f} times the forecast: ",
        end="",
    )
    print("good" if good else "NOT good enough")
    return 0 if good else 1


def compare(kafka: Sandbox, topic: str, name: str, chance: random.Random) -> Result:
    """Make topics and a plan for them, forecast it and execute it."""
    with kafka.admin() as admin, Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
        in_stages = PACES[name].one_replica_at_a_time
        make_topics(admin, kafka, topic, chance, factor=2 if in_stages else None)
        time.sleep(QUOTA_SECONDS)
        snapshot = take_snapshot(cluster)
        plan = random_plan(snapshot, topic, chance, apart=in_stages)
        pace = throttled(PACES[name], plan, snapshot, chance.uniform(15, 45))
        forecast = simulate(plan, snapshot, pace)
        with tempfile.TemporaryDirectory() as directory, Watch(kafka.directory, topic) as watch:
            state = Artifacts.at(Path(directory))
            execute_plan(cluster, Job(plan, current_assignment(snapshot), snapshot.cluster_id, state), pace)
            watch.stop()
            real = moving_seconds(state)
        admin.delete_topics([f"{topic}-{size}" for size in ("small", "large")])
    return Result(
        pace=name,
        moves=forecast.copies.num_rows,
        bytes=forecast.bytes,
        throttle=pace.throttle or 0,
        forecast_seconds=forecast.seconds or 0.0,  # without write rates, it always ends
        real_seconds=real,
        disk=highest_disk(forecast, watch.most),
    )


def make_topics(admin: Any, kafka: Sandbox, topic: str, chance: random.Random, *, factor: int | None) -> None:
    """Two topics with partitions of one size each, of 10 to 60 MB altogether; with so many replicas, or any number."""
    kinds = (("small", chance.randint(1, 8) * 100_000, 12, 3), ("large", chance.randint(3, 7) * 10**6, 8, 2))
    for name, size, count, most in kinds:
        copies = factor or chance.randint(1, most)
        replicas = [chance.sample(kafka.broker_ids, copies) for _ in range(chance.randint(count // 2, count))]
        write_topic(admin, kafka.bootstrap_servers, f"{topic}-{name}", replicas, size)


def random_plan(snapshot: Snapshot, topic: str, chance: random.Random, *, apart: bool) -> Plan:
    """Other replicas for most partitions, in log dirs chosen at random; with ``apart``, none where one was."""
    log_dirs = {row["broker"]: [d["path"] for d in row["log_dirs"]] for row in snapshot.brokers.to_pylist()}
    held: dict[tuple[str, int], dict[int, str]] = {}
    for row in snapshot.replicas.to_pylist():
        if row["topic"].startswith(topic):
            held.setdefault((row["topic"], row["partition"]), {})[row["broker"]] = row["log_dir"]
    entries = []
    for (name, number), replicas in held.items():
        if chance.random() < 0.85:
            brokers = sorted(log_dirs.keys() - replicas.keys() if apart else log_dirs)
            target = chance.sample(brokers, len(replicas))
            where = tuple(replicas.get(broker) or chance.choice(log_dirs[broker]) for broker in target)
            entries.append(PlanEntry(name, number, tuple(target), where))
    return Plan.from_entries(entries)


def throttled(pace: Pace, plan: Plan, snapshot: Snapshot, seconds: float) -> Pace:
    """The pace with a throttle at which the plan would take about so long if everything began at once."""
    copies = simulate(plan, snapshot).copies
    load: Counter[tuple[str, int]] = Counter()
    for row in copies.to_pylist():
        load["in", row["to_broker"]] += row["bytes"]
        load["out", row["from_broker"]] += row["bytes"]
    return replace(pace, throttle=max(200_000, int(max(load.values()) / seconds)))


def execute_plan(cluster: Cluster, job: Job, pace: Pace) -> None:
    """Execute the plan at this pace."""
    ending = run_plan(cluster, job, Settings(pace=pace), interval=CHECK_SECONDS, approved_by="bench")
    if not ending.completed:
        raise SystemExit(f"the plan was not completed: {ending.verdict}")


def moving_seconds(state: Artifacts) -> float:
    """From the first move's beginning to the last one's end."""
    journal = read_journal(state)
    begun = [event["at"] for event in journal if event["event"] == events.BEGAN]
    ended = [event["at"] for event in journal if event["event"] == events.ENDED]
    return (datetime.fromisoformat(max(ended)) - datetime.fromisoformat(min(begun))).total_seconds()


class Watch:
    """The most bytes that the files of each log dir have meanwhile."""

    def __init__(self, directory: Path, topic: str) -> None:
        self._directory, self._topic = directory, topic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.most: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for log_dir in self._directory.glob("broker-*/*/meta.properties"):
                path = str(log_dir.parent)
                self.most[path] = max(self.most.get(path, 0), self._size(log_dir.parent))

    def _size(self, log_dir: Path) -> int:
        """All segments but those of topics that were deleted and of the metadata: the snapshot has neither."""
        size = 0
        for replica in os.scandir(log_dir):
            foreign = replica.name.endswith("-delete") and not replica.name.startswith(self._topic)
            if replica.is_dir() and not foreign and replica.name != METADATA:
                for file in Path(replica.path).glob("*.log"):
                    try:
                        size += file.stat().st_size
                    except FileNotFoundError:
                        continue
        return size


def highest_disk(forecast: Forecast, most: dict[str, int]) -> float:
    """The highest real peak over its forecast, of the log dirs that hold anything worth to speak of."""
    peaks = {str(one.path): one.bytes_peak for one in forecast.log_dirs}
    return max(real / peaks[path] for path, real in most.items() if peaks.get(path, 0) > 100_000)


if __name__ == "__main__":
    sys.exit(main())
