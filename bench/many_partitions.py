"""A cluster with very many partitions: how long it takes to read it, to check a plan, and to verify it.

    python -m bench.many_partitions --partitions 20000 --profile

A sandbox of four brokers gets topics of 500 partitions with two replicas, which hold nothing. The plan touches every
partition: most change the order of their replicas, every tenth gets another broker. Timed are, best of three:

    snapshot       `take_snapshot`
    preflight      `preflight`, with the two seconds in which it samples writes
    verification   `read_status` and a new `Meter`, which learns all sizes
    first check    `Executor.check`, once: it begins what changes order, all of it, and the first moves
    check          `Executor.check` while moves are under way

The bars are 15 s for a snapshot, 15 s for a preflight, 5 s for a verification. *processor* is the time of this process
on a processor: the rest is waiting for brokers, and for a turn on a busy machine. With ``--profile``, a thread samples
every few milliseconds what all threads do: kafka-python decodes answers in one of its own, which cProfile misses.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bench.document import machine, table
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.execution import Executor, Job, Settings, clean_up, preflight, set_throttles
from rebalance_lib.execution.plan_status import read_status
from rebalance_lib.execution.progress import Meter
from rebalance_lib.plan import Plan, current_assignment
from rebalance_lib.plan.pace import Pace
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

BROKERS = 4
PARTITIONS_A_TOPIC = 500
DATA_MOVES = 10  # every so many-th partition goes to another broker
THROTTLE = 10_000_000
TIMES = 3
WAIT_SECONDS = 5.0
SAMPLE_SECONDS = 0.005
LINES_OF_A_PROFILE = 25
OF_INTEREST = ("/rebalance_lib/", "/kafka/admin/", "/kafka/protocol/", "/kafka/net/")
# A log preallocates its indexes, 10 MB each: too much for so many. A broker that makes so many logs is late at times.
CONFIG = {"log.index.size.max.bytes": "4096", "broker.session.timeout.ms": "60000"}
BARS = {"snapshot": 15.0, "preflight": 15.0, "verification": 5.0, "first check": 5.0, "check": 5.0}


@dataclass(frozen=True)
class Took:
    """Seconds on the clock and on a processor."""

    clock: float
    processor: float


def main() -> int:
    parser = argparse.ArgumentParser(description="Time readings of a cluster with very many partitions.")
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--profile", action="store_true", help="also print what takes the time, of one more run each")
    options = parser.parse_args()
    with Sandbox(brokers=BROKERS, racks=0, config=CONFIG, heap="2g", progress=log) as kafka:
        make_topics(kafka, options.partitions)
        with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
            times = measure(cluster, profile=options.profile)
    print(f"\nOn {machine()}, {options.partitions:,} partitions with 2 replicas on {BROKERS} brokers:\n")
    rows = [(name, f"{took.clock:.1f}", f"{took.processor:.1f}", f"{BARS[name]:g}") for name, took in times.items()]
    print(table(("", "seconds", "processor", "bar"), rows))
    good = all(took.clock < BARS[name] for name, took in times.items())
    print("\ngood" if good else "\nNOT good enough")
    return 0 if good else 1


def log(text: str) -> None:
    """A message on standard error, with the time."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def make_topics(kafka: Sandbox, partitions: int) -> None:
    """Empty topics, one request each."""
    with kafka.admin(request_timeout_ms=120_000) as admin:
        for first in range(0, partitions, PARTITIONS_A_TOPIC):
            count = min(PARTITIONS_A_TOPIC, partitions - first)
            replicas = {number: [number % BROKERS + 1, (number + 1) % BROKERS + 1] for number in range(count)}
            name = f"many-{first // PARTITIONS_A_TOPIC:04d}"
            admin.create_topics({name: {"assignments": replicas}}, wait_for_metadata=False)
            if first % 5_000 == 0:
                log(f"{first + count} partitions")
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster:
        while (held := replicas_held(cluster)) < 2 * partitions:
            log(f"{held} of {2 * partitions} replicas on the disks")
            time.sleep(WAIT_SECONDS)
    time.sleep(WAIT_SECONDS)


def replicas_held(cluster: Cluster) -> int:
    """The metadata has a partition long before the brokers have made its files, until when they refuse to lead it."""
    return sum(len(log_dir.replicas) for broker in cluster.alive_brokers() for log_dir in cluster.log_dirs(broker))


def measure(cluster: Cluster, *, profile: bool) -> dict[str, Took]:
    """Every figure."""
    snapshot = take_snapshot(cluster)
    before = current_assignment(snapshot)
    plan = plan_for(before)
    with tempfile.TemporaryDirectory() as directory:
        job = Job(plan, before, snapshot.cluster_id, Artifacts.at(Path(directory)))
        settings = Settings(pace=Pace(throttle=THROTTLE))
        tasks: dict[str, Callable[[], Any]] = {
            "snapshot": lambda: take_snapshot(cluster),
            "preflight": lambda: preflight(cluster, job, settings),
            "verification": lambda: verification(cluster, job),
        }
        times = {name: best(name, task, profile=profile) for name, task in tasks.items()}
        status = preflight(cluster, job, settings).status
        log("setting throttles")
        set_throttles(cluster, job, status, settings)
        executor = Executor(cluster, job, settings, log=log)
        times["first check"] = timed("first check", executor.check, profile=profile)
        times["check"] = best("check", executor.check, profile=profile)
        log("cleaning up")
        clean_up(cluster, job, settings)
    return times


def plan_for(before: Plan) -> Plan:
    """Every partition changes: the order of its replicas, or one of its brokers."""
    after: dict[TopicPartition, tuple[int, ...]] = {}
    for number, (tp, (first, second)) in enumerate(before.as_dict().items()):
        third = min({*range(1, BROKERS + 1)} - {first, second})
        after[tp] = (third, second) if number % DATA_MOVES == 0 else (second, first)
    return Plan.from_assignment(after)


def verification(cluster: Cluster, job: Job) -> None:
    """Compare plan and cluster, and measure."""
    status = read_status(cluster, job.plan, job.before)
    Meter(job.plan, job.before).read(cluster, status, cluster.alive_brokers())


def best(name: str, task: Callable[[], Any], *, profile: bool) -> Took:
    """The best of some times."""
    least = min((timed(name, task, profile=False) for _ in range(TIMES)), key=lambda took: took.clock)
    if profile:
        timed(name, task, profile=True)
    return least


def timed(name: str, task: Callable[[], Any], *, profile: bool) -> Took:
    """How long it took; with a profile, what took it."""
    began, used = time.perf_counter(), time.process_time()
    if profile:
        with Sampler() as sampler:
            task()
        print(f"\n{name}\n{sampler}", flush=True)
    else:
        task()
    took = Took(time.perf_counter() - began, time.process_time() - used)
    note = ", with a profile" if profile else ""
    log(f"{name}: {took.clock:.2f} s, {took.processor:.2f} s on a processor{note}")
    return took


class Sampler:
    """Counts in how many samples a function of ours or of kafka-python's was on the stack of any thread."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._counts: Counter[str] = Counter()
        self._samples = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        listed = self._counts.most_common(LINES_OF_A_PROFILE)
        return "\n".join(f"{count / max(1, self._samples):6.1%}  {name}" for name, count in listed)

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._samples += 1
            for thread, frame in sys._current_frames().items():  # noqa: SLF001 - Python documents it
                if thread != self._thread.ident:
                    self._counts.update(set(self._stack(frame)))

    def _stack(self, frame: FrameType | None) -> list[str]:
        stack = []
        while frame is not None:
            code = frame.f_code
            if any(part in code.co_filename for part in OF_INTEREST):
                stack.append(f"{'/'.join(Path(code.co_filename).parts[-2:])} {code.co_name}")
            frame = frame.f_back
        return stack


if __name__ == "__main__":
    sys.exit(main())
