"""Who did what: the book-keeping that invariants judge by.

The truth of the cluster says what is, not who wanted it. Here it is noted which reassignments are the run's own and
which are of others, what others did to throttles, what people asked for and when, and since when nothing keeps the
executor from doing what it should. It is written from the log of requests and from the faults alone; nothing of the
executor's own code or records is used.

Two ideas carry most invariants:

- *What others left*: a shadow of all throttle settings to which only the changes of others are applied. At the end
  the cluster must look like the shadow.
- *Grace*: an executor sees the cluster through metadata that lags, at intervals, and through requests that time out.
  What it could not have known, or not have changed yet, is no violation. Grace counts only while the executor can act:
  its process lives, storage, controller and credentials work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rebalance_lib.reassignment import PartitionState
from rebalance_lib.topology import TopicPartition
from simulator.configs import RATES, REPLICA_LISTS

LAG_SECONDS = 6.0  # metadata lags by at most 4 s, configurations by 1 s; and a request takes its time
TIMEOUT_SECONDS = 20.0  # a request that is not answered, and what follows it
TROUBLE_SECONDS = 35.0  # after a fault that kept the executor from acting: a time-out, and the pause between two tries


class Change(NamedTuple):
    """A value that somebody asked for, and when."""

    at: float
    value: float


@dataclass(slots=True)
class OwnMove:
    """A reassignment that the run requested: when, by whom, where to, and the bytes of one copy then."""

    at: float
    process: str
    target: tuple[int, ...]
    size: int
    chosen: bool  # the executor could know what it did: nobody else had just touched the partition


@dataclass(slots=True)
class Ledger:
    """The book of one simulation."""

    own: dict[TopicPartition, OwnMove] = field(default_factory=dict)
    foreign: dict[TopicPartition, float] = field(default_factory=dict)
    foreign_touched: dict[TopicPartition, float] = field(default_factory=dict)  # when others last changed a partition
    recreated: dict[str, float] = field(default_factory=dict)  # topics that were created again, and when
    deleted: dict[str, float] = field(default_factory=dict)
    returned: dict[int, float] = field(default_factory=dict)  # brokers that came back, and when
    gone: set[int] = field(default_factory=set)  # brokers that never come back
    unregistered: set[int] = field(default_factory=set)  # those that were removed from the cluster, too
    leader_changed: dict[TopicPartition, float] = field(default_factory=dict)
    isr_shrunk: dict[TopicPartition, float] = field(default_factory=dict)
    move_ended: dict[TopicPartition, float] = field(default_factory=dict)  # the last reassignment of a partition

    # What others did to throttles.
    rates: dict[tuple[int, str], str | None] = field(default_factory=dict)  # the shadow
    rates_before: dict[tuple[int, str], str | None] = field(default_factory=dict)
    rates_of_others: dict[int, set[str]] = field(default_factory=dict)
    rates_unseen: set[int] = field(default_factory=set)  # brokers where ours replaced a rate of others at once
    rate_changed: dict[int, float] = field(default_factory=dict)
    entries: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # the shadow
    entries_of_others: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # all that ever were
    shared_entries: set[tuple[str, str]] = field(default_factory=set)  # that both the run and others added
    list_changed: dict[str, float] = field(default_factory=dict)

    # What people asked for.
    throttle: list[Change] = field(default_factory=list)
    caps: dict[str, list[Change]] = field(default_factory=dict)
    paused: list[tuple[float, float]] = field(default_factory=list)
    closed: list[tuple[float, float]] = field(default_factory=list)
    excluded: dict[str, float] = field(default_factory=dict)
    cancelled_at: float | None = None
    max_run_time: list[Change] = field(default_factory=list)  # seconds since the run began
    asked: list[str] = field(default_factory=list)  # kinds of requests that were written down

    clocks_changed: bool = False  # wall clocks were set, or differ: nobody can tell how long a run has taken
    stopped: list[tuple[float, float]] = field(default_factory=list)  # when a process of the run was stopped
    trouble_until: float = 0.0
    storage_broken: bool = False  # it failed, was torn or lost files: records may lack something
    storage_dead: bool = False  # it failed, and never worked again
    requests_torn: bool = False  # what somebody asked for is damaged, and nobody can read it
    throttles_torn: bool = False  # the file that says what throttles were before is damaged
    seconds_executor: bool = False  # two executors worked at the same time

    def forget_people(self) -> None:
        """What people asked of a run ends with it; its rollback begins with the settings."""
        self.throttle.clear()
        self.caps.clear()
        self.paused.clear()
        self.closed.clear()

    def unseen(self, since: float, now: float) -> bool:
        """Whether a process that acts now may not have seen what happened then: metadata lags, or it was stopped."""
        if now - since <= LAG_SECONDS:
            return True
        return any(
            begun - LAG_SECONDS <= since <= ended and now <= ended + LAG_SECONDS for begun, ended in self.stopped
        )

    def trouble(self, until: float) -> None:
        """Something keeps the executor from acting until then."""
        self.trouble_until = max(self.trouble_until, until + TROUBLE_SECONDS)

    def lost_list(self, topic: str, now: float) -> None:
        """Others deleted both lists of a topic, or the topic itself."""
        for key in REPLICA_LISTS:
            self.entries[topic, key] = set()
        self.list_changed[topic] = now

    def add_entry(self, topic: str, entry: str, now: float) -> None:
        """Others added an entry to both lists of a topic."""
        for key in REPLICA_LISTS:
            self.entries.setdefault((topic, key), set()).add(entry)
            self.entries_of_others.setdefault((topic, key), set()).add(entry)
        self.list_changed[topic] = now

    def set_rate(self, broker: int, value: str | None, now: float, keys: tuple[str, ...] = RATES) -> None:
        """Others set the rates of a broker, or deleted them."""
        for key in keys:
            self.rates[broker, key] = value
        if value is not None:
            self.rates_of_others.setdefault(broker, set()).add(value)
        self.rate_changed[broker] = now

    def largest_cap(self, name: str, default: float | None, now: float, grace: float) -> float:
        """The cap that may still hold: the last that was asked for, or one that it replaced within the grace."""
        changes = [Change(0.0, float("inf") if default is None else default), *self.caps.get(name, [])]
        return self._largest(changes, now, grace)

    def largest_throttle(self, default: float, now: float, grace: float) -> float:
        """The throttle that may still hold, likewise."""
        return self._largest([Change(0.0, default), *self.throttle], now, grace)

    def _largest(self, changes: list[Change], now: float, grace: float) -> float:
        if self.requests_torn:  # what cannot be read is not followed: any of them may hold
            return max(change.value for change in changes)
        last = changes[-1].value
        recent = [before.value for before, after in pairwise(changes) if after.at >= now - grace]
        return max([last, *recent])


def shrinks_below_min_isr(before: PartitionState, after: PartitionState, min_isr: int) -> bool:
    """Whether a change takes a partition below its min ISR, counted by its replicas where it has fewer."""
    enough = min(min_isr, len(before.replicas) - len(before.adding))
    return len(before.isr) >= enough > len(after.isr) and len(after.isr) < min(min_isr, len(after.replicas))
