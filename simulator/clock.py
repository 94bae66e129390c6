"""The clock of one simulated process: simulated time, seen as that process sees it.

Two processes never share a wall clock: each has an offset, and a fault may step it. ``monotonic`` starts at a number
of its own in each process, as on real machines, so that comparing it between processes, or across a restart, goes
wrong in a simulation too.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from random import Random

from rebalance_lib.clock import Clock
from simulator.processes import Process

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class SimulatedClock(Clock):
    """The clock of one process.

    Attributes:
        offset: Seconds by which its wall clock is ahead of true time; change it to step the clock.
    """

    __slots__ = ("_process", "_rng", "_start", "offset")

    def __init__(self, process: Process, rng: Random, *, offset: float = 0.0) -> None:
        self.offset = offset
        self._process = process
        self._rng = rng
        self._start = float(rng.randrange(1_000, 1_000_000))

    def now(self) -> datetime:
        """This moment, in UTC, as this process sees it."""
        return EPOCH + timedelta(seconds=self._process.now + self.offset)

    def monotonic(self) -> float:
        """Seconds since some moment of this process."""
        return self._start + self._process.now

    def sleep(self, seconds: float) -> None:
        """Return that many simulated seconds later."""
        self._process.call(seconds, lambda: None)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Return that many simulated seconds later, or at once if the event is set; returns whether it is set."""
        if not event.is_set():
            self._process.call(seconds, lambda: None)
        return event.is_set()

    def unique_id(self) -> str:
        """32 hexadecimal digits from the seed."""
        return f"{self._rng.getrandbits(128):032x}"
