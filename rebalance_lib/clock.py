"""Time and unique names, handed in to whatever waits, measures or names, so that a simulator can hand in its own.

``now`` is the wall clock, for records and windows; it may be stepped. ``monotonic`` is for durations, within one
process alone.
"""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime


class Clock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """This moment, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some moment, never going back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return that many seconds later."""
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Return when the event is set, or that many seconds later; returns whether it is set."""
        return event.wait(seconds)

    def unique_id(self) -> str:
        """A name that nobody else has: 32 hexadecimal digits."""
        return uuid.uuid4().hex

    def timestamp(self) -> str:
        """This moment as records have it, in ISO 8601 with microseconds."""
        return self.now().isoformat(timespec="microseconds")


SYSTEM = Clock()
