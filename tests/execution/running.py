"""What tests of the engine share: settings, an engine that runs to its end, and disks of a known size."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rebalance_lib.cluster import Cluster, LogDir
from rebalance_lib.execution import Executor, Job, Report, Settings
from rebalance_lib.execution.records.audit import moves
from rebalance_lib.execution.records.journal import read_journal

SLOW = 10_000  # bytes/s: a fetch of 100 kB every ten seconds, so that a megabyte is under way for more than a minute
FAST = 100_000_000  # bytes/s: no limit here, for moves that have been looked at long enough
TOTAL_BYTES = 10**10  # of each log dir, where a test says how much of it is free


def settings(**options: Any) -> Settings:
    """Settings by their flat names."""
    return Settings.from_dict(options)


def run_to_end(cluster: Cluster, job: Job, chosen: Settings, seconds: float = 150, interval: float = 0.2) -> Report:
    """Let an engine run until the end, or fail."""
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


def with_free(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, usable_bytes: Callable[[int, str], int]) -> None:
    """Let each log dir, by broker and path, have so much room: the real disk is shared with whatever runs beside."""
    ask = cluster.log_dirs

    def log_dirs(broker: int, *arguments: Any, **options: Any) -> list[LogDir]:
        return [
            replace(one, total_bytes=TOTAL_BYTES, usable_bytes=usable_bytes(broker, one.path))
            for one in ask(broker, *arguments, **options)
        ]

    monkeypatch.setattr(cluster, "log_dirs", log_dirs)
