"""What tests of the executor share: settings, an executor that runs to its end, a clock that stands still, and
disks of a known size."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rebalance_lib.clock import Clock
from rebalance_lib.cluster import Cluster, LogDir
from rebalance_lib.execution import Executor, Job, Report, Settings
from rebalance_lib.execution.records.audit import moves
from rebalance_lib.execution.records.journal import read_journal

SLOW = 10_000  # bytes/s: a fetch of 100 kB every ten seconds, so that a megabyte is under way for more than a minute
FAST = 100_000_000  # bytes/s: no limit here, for moves that shall end now
FAST_SECONDS = (
    30.0  # for some megabytes at that rate, on a busy machine; at `SLOW` a megabyte takes three times as long
)
TOTAL_BYTES = 10**10  # of each log dir, where a test says how much of it is free


class StoppedClock(Clock):
    """A clock that stands still until it is advanced."""

    def __init__(self) -> None:
        self._seconds = 1000.0

    def monotonic(self) -> float:
        return self._seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._seconds += seconds


def settings(**options: Any) -> Settings:
    """Settings by their flat names."""
    return Settings.from_dict(options)


def run_to_end(cluster: Cluster, job: Job, chosen: Settings, seconds: float = 150, interval: float = 0.2) -> Report:
    """Let an executor run until the end, or fail."""
    stop = threading.Event()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    try:
        report = Executor(cluster, job, chosen).run(interval, stop=stop)
    finally:
        timer.cancel()
    assert report is not None, "it did not end in time"
    return report


def begun(job: Job) -> dict[str, int]:
    """How often each partition's move was begun, by the journal."""
    counts: dict[str, int] = {}
    for move in moves(read_journal(job.artifacts)):
        counts[move["partition"]] = counts.get(move["partition"], 0) + 1
    return counts


def count_requests(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> Counter[str]:
    """How often the replicas of each partition are requested from now on: the controller ignores one that repeats."""
    requested: Counter[str] = Counter()
    reassign = cluster.reassign

    def counted(targets: Any, **options: Any) -> None:
        requested.update(str(tp) for tp, target in targets.items() if target is not None)
        reassign(targets, **options)

    monkeypatch.setattr(cluster, "reassign", counted)
    return requested


def with_free(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, usable_bytes: Callable[[int, str], int]) -> None:
    """Let each log dir, by broker and path, have so much space: the real disk is shared with whatever runs beside."""
    of_one, of_many = cluster.log_dirs, cluster.describe_log_dirs

    def sized(broker: int, listed: list[LogDir]) -> list[LogDir]:
        return [replace(one, total_bytes=TOTAL_BYTES, usable_bytes=usable_bytes(broker, one.path)) for one in listed]

    def log_dirs(broker: int, *arguments: Any, **options: Any) -> list[LogDir]:
        return sized(broker, of_one(broker, *arguments, **options))

    def describe_log_dirs(*arguments: Any, **options: Any) -> dict[int, list[LogDir]]:
        return {broker: sized(broker, listed) for broker, listed in of_many(*arguments, **options).items()}

    monkeypatch.setattr(cluster, "log_dirs", log_dirs)
    monkeypatch.setattr(cluster, "describe_log_dirs", describe_log_dirs)
