"""Whether the way out of a run was taken, for those who still carry it out elsewhere.

A run that is ended from outside may have an engine that does not know yet, in another process: it must begin nothing
and put no throttle on any more. Whoever begins to carry a run out asks when the way out was last taken, and stops as
soon as that changes. So nothing has to be taken back before the run goes on.
"""

from __future__ import annotations

from contextlib import suppress

from rebalance_lib.artifacts import LEFT, Artifacts
from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.errors import RebalanceError


def note_leaving(artifacts: Artifacts, clock: Clock = SYSTEM) -> None:
    """The way out is taken now."""
    artifacts.write_json(LEFT, {"at": clock.timestamp(), "id": clock.unique_id()})


class Leaving:
    """Watches whether the way out is taken since this was made."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._before = self._read()

    def begun(self) -> bool:
        """Whether it was; what cannot be read now counts as unchanged."""
        with suppress(RebalanceError, OSError, ValueError):
            return self._read() != self._before
        return False

    def _read(self) -> str | None:
        return self._artifacts.read_text(LEFT) if self._artifacts.exists(LEFT) else None
