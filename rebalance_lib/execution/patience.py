"""Since when something waits, or has not changed, so that nothing waits for ever."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from rebalance_lib.clock import Clock


class Patience:
    """Seconds that things have waited, by name; what is not mentioned any more does not wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Hashable, tuple[Hashable, float]] = {}

    def unchanged(self, name: Hashable, value: Hashable = None) -> float:
        """For how many seconds this has had this value."""
        now = self._clock.monotonic()
        known = self._since.get(name)
        if known is None or known[0] != value:
            known = self._since[name] = (value, now)
        return now - known[1]

    def keep(self, names: Collection[Hashable]) -> None:
        """Forget everything but these."""
        self._since = {name: since for name, since in self._since.items() if name in names}
