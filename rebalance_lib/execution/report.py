"""What the engine sees at a look, and what it tells at a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rebalance_lib.execution.log_dir_moves import LogDirMove, LogDirStatus
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.progress import Progress
from rebalance_lib.execution.stalls import Stall


class State(StrEnum):
    """Where a run stands."""

    REACHED = "reached"
    MOVING = "moving"
    WAITING = "waiting"
    DRIFTED = "drifted"
    CANCELLED = "cancelled"


ENDED = frozenset({State.REACHED, State.DRIFTED, State.CANCELLED})


@dataclass(frozen=True, slots=True)
class Look:
    """The plan against the cluster, why nothing begins, and what was begun."""

    status: PlanStatus
    alive: frozenset[int]
    log_dirs: list[LogDirMove]
    holds: tuple[str, ...]
    begun: int

    @property
    def log_dirs_left(self) -> list[LogDirMove]:
        """Replicas that are not in the log dir that the plan names."""
        return [move for move in self.log_dirs if not move.ended]

    @property
    def silent(self) -> frozenset[int]:
        """Brokers that did not answer when asked for their log dirs."""
        return frozenset(move.replica.broker for move in self.log_dirs if move.silent)

    @property
    def waiting(self) -> bool:
        """Whether something has not begun."""
        idle = any(move.status is not LogDirStatus.MOVING for move in self.log_dirs_left)
        return idle or bool(self.status.having(Status.PENDING))

    @property
    def moving(self) -> bool:
        """Whether something is under way."""
        copied = any(move.status is LogDirStatus.MOVING for move in self.log_dirs_left)
        return copied or bool(self.begun or self.status.having(Status.MOVING))


@dataclass(frozen=True, slots=True)
class Report:
    """One check: where the run stands, how far it is, what holds it up."""

    state: State
    progress: Progress
    holds: tuple[str, ...]
    stalls: tuple[Stall, ...]
    throttle: int | None
    log_dirs_left: int = 0
    throttles_of_others: Mapping[int, int] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.state in ENDED

    def __str__(self) -> str:
        text = str(self.progress)
        if self.log_dirs_left:
            text += f"; {self.log_dirs_left} replicas are not in their log dir yet"
        if self.holds:
            text += f". Held back: {'; '.join(self.holds)}"
        if self.throttles_of_others:
            listed = ", ".join(f"{rate} on broker {broker}" for broker, rate in self.throttles_of_others.items())
            text += f". Somebody else set the throttle to {listed}"
        if self.stalls:
            text += f". Stalled: {'; '.join(str(stall) for stall in self.stalls[:3])}"
            text += f" and {len(self.stalls) - 3} more" if len(self.stalls) > 3 else ""
        return text
