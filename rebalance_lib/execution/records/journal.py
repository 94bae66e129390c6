"""What a run did, for people who ask later: every move, throttle, pause and remedy, with its time.

Nothing here is read to decide what to do next: that comes from the plan and the cluster alone. Each check writes its
events as one small file of its own, which appears whole or not at all, so that a run that dies loses at most the events
of its last moments, and a storage that cannot append will do.

Example: ``journal/20261116T201530.123456-1f3a.json`` holds ``[{"at": ..., "event": "move began",
"partition": "foo-0", "from": [1, 2], "to": [3, 2], "bytes": 1048576}]``.
"""

from __future__ import annotations

from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.errors import InvalidInputError, RebalanceError

JOURNAL = "journal"
BEGAN, REQUESTED, ENDED, CANCELLED = "move began", "move requested", "move ended", "move cancelled"
REQUEST, SET_ASIDE, DAMAGED = "request", "set aside", "journal damaged"
THROTTLE_SET, THROTTLE_CHANGED, THROTTLE_RESTORED = "throttle set", "throttle changed", "throttle restored"


class Journal:
    """The events of one process, kept until they are flushed."""

    def __init__(self, artifacts: Artifacts, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._directory = artifacts / JOURNAL
        self._events: list[dict[str, Any]] = []

    def note(self, event: str, **facts: Any) -> None:
        """Add an event."""
        self._events.append({"at": self._clock.timestamp(), "event": event, **facts})

    def flush(self) -> None:
        """Write what came since the last time; what cannot be written now is tried again with the next."""
        if not self._events:
            return
        try:
            stamp = self._clock.now().strftime("%Y%m%dT%H%M%S.%f")
            self._directory.write_json(f"{stamp}-{self._clock.unique_id()[:4]}.json", self._events)
        except RebalanceError:
            return
        self._events = []


def read_journal(artifacts: Artifacts) -> list[dict[str, Any]]:
    """All events of a run, in the order of their times, whichever process wrote them.

    A file that is damaged is an event itself: its name, in place of what was in it.
    """
    directory = artifacts / JOURNAL
    events: list[dict[str, Any]] = []
    for name in directory.files():
        if not name.endswith(".json"):
            continue
        try:
            events += [
                {**event, "at": str(event["at"]), "event": str(event["event"])} for event in directory.read_json(name)
            ]
        except (InvalidInputError, UnicodeDecodeError, KeyError, TypeError) as error:
            events.append({"at": "", "event": DAMAGED, "file": name, "error": str(error)})
    return sorted(events, key=lambda event: str(event["at"]))
