"""What the executor reports at a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rebalance_lib.execution.plan_status import listing
from rebalance_lib.execution.progress import Progress
from rebalance_lib.execution.stalls import Stall
from rebalance_lib.topology import TopicPartition


class RunState(StrEnum):
    """Where a run stands.

    moving      moves are under way, or begin
    held        something is left to do, and nothing may begin now: the reasons are reported
    paused      a person has paused it; what is under way goes on
    ending      its maximum run time is over: it ends with what is under way
    completed   every partition is at its target; those of deleted topics do not count
    incomplete  nothing is left to wait for, but some partitions were set aside
    cancelled   somebody wants it to end, or has ended it
    """

    MOVING = "moving"
    HELD = "held"
    PAUSED = "paused"
    ENDING = "ending"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"


ENDED = frozenset({RunState.COMPLETED, RunState.INCOMPLETE, RunState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Report:
    """One check: where the run stands, how far it is, what holds it back.

    Args:
        state: where it stands.
        progress: how far it is.
        holds: why nothing, or not everything that waits, begins.
        stalls: moves that do not advance.
        throttle: the rate that is set, in bytes per second.
        log_dirs_left: replicas that are not in their log dir yet.
        foreign_throttles: brokers where somebody else set another rate, with that rate.
        set_aside: partitions that the run does not bring to their target, with the reason.
    """

    state: RunState
    progress: Progress
    holds: tuple[str, ...]
    stalls: tuple[Stall, ...]
    throttle: int | None
    log_dirs_left: int = 0
    foreign_throttles: Mapping[int, int] = field(default_factory=dict)
    set_aside: Mapping[TopicPartition, str] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.state in ENDED

    @property
    def headline(self) -> str:
        """How far it is, with the measured rate beside the allowed one."""
        text = str(self.progress)
        if self.throttle and self.progress.rate is not None and not self.progress.finished:
            text += f"; the throttle allows {self.throttle / 1e6:.2f} MB/s for each broker"
            if rates := [one.rate for one in self.progress.brokers.values() if one.rate is not None]:
                text += f", the busiest receives {max(rates) / 1e6:.2f}"
        return text

    def __str__(self) -> str:
        text = self.headline
        if self.log_dirs_left:
            text += f"; {self.log_dirs_left} replicas are not in their log dir yet"
        if self.holds:
            text += f". Held back: {'; '.join(self.holds)}"
        if self.foreign_throttles:
            listed = ", ".join(f"{rate} on broker {broker}" for broker, rate in self.foreign_throttles.items())
            text += f". Somebody else set the throttle to {listed}"
        if self.stalls:
            text += f". Stalled: {'; '.join(str(stall) for stall in self.stalls[:3])}"
            text += f" and {len(self.stalls) - 3} more" if len(self.stalls) > 3 else ""
        if self.set_aside:
            text += f". Set aside: {describe_set_aside(self.set_aside)}"
        return text


def describe_set_aside(set_aside: Mapping[TopicPartition, str]) -> str:
    """Which partitions were set aside and why, those with the same reason together."""
    by_reason: dict[str, list[TopicPartition]] = {}
    for tp, reason in sorted(set_aside.items()):
        by_reason.setdefault(reason, []).append(tp)
    return "; ".join(f"{listing(partitions, 5)} ({reason})" for reason, partitions in by_reason.items())
