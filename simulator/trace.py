"""What happened in a simulation, in words: one line for each call, fault and message.

    12.348 s  run#1        reassign({t1-3: [2, 4, 5]}, attempts=1)
    12.371 s  disk         file:///sim/runs/plan.state/throttles.json is written, 412 bytes, durably
    15.000 s  fault        broker dies (broker 4, seconds 12.1, clean False)
    15.218 s  run#1        says: the cluster cannot be asked now, trying again in 0 s: ...

Words cost more time than the simulation itself, so nobody writes any unless asked: a schedule that fails is run again
with a trace. Nothing random and nothing of this machine goes into a line, so that the same seed gives the same trace,
byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulator.storage import Disk

LONGEST = 300
CHANGES = frozenset(
    {
        "reassign",
        "alter_topic_config",
        "alter_topic_configs",
        "alter_broker_config",
        "alter_broker_configs",
        "alter_replica_log_dirs",
        "elect_preferred_leaders",
        "create_partitions",
    }
)


class Trace:
    """The lines of one simulation.

    Args:
        now: The simulated time.
        reads: Whether requests that only read are noted too; there are many.
    """

    def __init__(self, now: Callable[[], float], *, reads: bool = False) -> None:
        self._now = now
        self.reads = reads
        self.lines: list[str] = []

    def note(self, who: str, what: str) -> None:
        """Add a line."""
        short = what if len(what) <= LONGEST else f"{what[:LONGEST]} ..."
        self.lines.append(f"{self._now():10.3f} s  {who:<12} {short}")


class TracedClient:
    """A process's view of the cluster that notes each call with its answer or its error."""

    def __init__(self, client: Any, name: str, trace: Trace) -> None:
        self._client = client
        self._name = name
        self._trace = trace

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._client, attribute)
        if not callable(found) or attribute == "clock":
            return found
        noted = self._trace.reads or attribute in CHANGES

        def call(*arguments: Any, **options: Any) -> Any:
            if noted and (self._trace.reads or arguments[0]):
                words = ", ".join([*(show(one) for one in arguments), *(f"{k}={show(v)}" for k, v in options.items())])
                self._trace.note(self._name, f"{attribute}({words})")
            try:
                answer = found(*arguments, **options)
            except BaseException as error:
                self._trace.note(self._name, f"{attribute} failed: {type(error).__name__}: {error}")
                raise
            if noted and answer:
                self._trace.note(self._name, f"{attribute} answered {show(answer)}")
            return answer

        return call


class TracedDisk(Disk):
    """A disk that notes what is written to it."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def write(self, path: str, data: bytes, now: float, *, durable: bool = True) -> None:
        """Put a file there."""
        self._trace.note("disk", f"{path} is written, {len(data)} bytes{', durably' if durable else ''}")
        super().write(path, data, now, durable=durable)

    def remove(self, path: str) -> None:
        """Remove a file."""
        if path in self.files:
            self._trace.note("disk", f"{path} is removed")
        super().remove(path)


def show(value: Any) -> str:
    """A value in few words, in an order that does not depend on hashes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{show(key)}: {show(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(show(one) for one in value)) + "}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(show(one) for one in value) + "]"
    if hasattr(value, "in_sync"):
        return f"{list(value.replicas)} in sync {sorted(value.in_sync)} led by {value.leader}"
    return str(value)
