"""What tests of the engine share: settings, an engine that runs to its end, and patience."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Engine, Job, Report, Settings
from rebalance_lib.execution.audit import moves
from rebalance_lib.execution.journal import read_journal

SLOW = 100_000  # bytes/s; Kafka lets some ten seconds of it through at once


def settings(**options: Any) -> Settings:
    """Settings by their flat names."""
    return Settings.from_dict(options)


def run_to_end(cluster: Cluster, job: Job, chosen: Settings, seconds: float = 60, interval: float = 0.5) -> Report:
    """Let an engine run until the end, or fail."""
    stop = threading.Event()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    try:
        report = Engine(cluster, job, chosen).run(interval, stop=stop)
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


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
