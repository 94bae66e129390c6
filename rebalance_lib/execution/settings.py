"""How a plan is executed: its pace, when it may begin moves, and what to do about a move that does not advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.pace import MOST_BYTES, Order, Pace
from rebalance_lib.window import Window

CAPS = ("moves_in", "moves_out", "moves_in_cluster", "bytes_in_flight")  # in a form, 0 is no limit
HOURS = ("window", "quiet_hours")
MOST_SECONDS = 366 * 86_400.0


class OnStall(StrEnum):
    """What to do about a move that stalls: a throttle may be raised, new moves held back, or only word given."""

    RAISE = "raise"
    PAUSE = "pause"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about how a plan is executed; what is left out suits most clusters.

    Args:
        pace: throttles, caps and order.
        window: when moves may begin; those under way go on after its end. None: at any time.
        quiet_hours: when none may begin, whatever the window: the approval policy of the cluster sets it, and no form
            and no request changes it.
        throttle_ceiling: how far a throttle may be raised where it is the reason of a stall; None: not at all.
        stall_checks: a move that has not come nearer to its leader in so many checks has stalled.
        on_stall: what to do then.
        disk_reserve: the part of each log dir that is kept free, whatever moves.
        pause_under_min_isr: begin nothing while a partition anywhere has fewer in-sync replicas than it must have;
            partitions of the plan that are short of replicas themselves go first then, and alone.
        cancel_on_failure: a run that ends before its plan is reached cancels its moves under way; else they go on,
            without a throttle, unless a cancel was requested.
        election_batch: how many preferred leaders are elected at once.
        give_up_after: seconds that something may wait for what somebody must repair (a broker that is down, a full
            disk, a partition short of in-sync replicas, a move that stalls) before it is set aside, so that the rest of
            the plan can end. Waiting for the window, and while a person has paused the run, does not count.
        max_run_time: seconds since the run began after which nothing begins any more, and the run ends when what is
            under way has ended; None for no limit.
    """

    pace: Pace = field(default_factory=Pace)
    window: Window | None = None
    quiet_hours: Window | None = None
    throttle_ceiling: int | None = None
    stall_checks: int = 3
    on_stall: OnStall = OnStall.RAISE
    disk_reserve: float = 0.05
    pause_under_min_isr: bool = True
    cancel_on_failure: bool = True
    election_batch: int = 200
    give_up_after: float = 1800.0
    max_run_time: float | None = None

    def __post_init__(self) -> None:
        for name in ("stall_checks", "election_batch"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name.replace('_', ' ')} is {getattr(self, name)}: give 1 or more")
        check_seconds("give up after", self.give_up_after)
        if self.max_run_time is not None:
            check_seconds("max run time", self.max_run_time)
        if not 0 <= self.disk_reserve < 1:
            raise InvalidInputError(f"disk reserve is {self.disk_reserve}: give a part of a log dir, such as 0.05")
        if self.throttle_ceiling is not None and self.throttle_ceiling < (self.pace.throttle or 1):
            raise InvalidInputError(
                f"the throttle ceiling of {self.throttle_ceiling} bytes/s is below the throttle of "
                f"{self.pace.throttle}: give a higher one, or none"
            )
        if self.throttle_ceiling is not None and self.throttle_ceiling > MOST_BYTES:
            raise InvalidInputError(f"throttle ceiling is {self.throttle_ceiling}: give {MOST_BYTES} at most")

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Settings:
        """Read settings from one flat object, as a form or a file has them; None and "" mean left out.

        Raises:
            InvalidInputError: A name is not known, or a value is not acceptable.
        """
        values = {name: value for name, value in given.items() if value not in (None, "")}
        known = {one.name for one in (*fields(Pace), *fields(cls))} - {"pace"}
        if unknown := sorted(values.keys() - known):
            raise InvalidInputError(f"settings have no {', '.join(unknown)}; they have {', '.join(sorted(known))}")
        read = {name: _READERS[name](name, value) for name, value in values.items()}
        pace = {one.name: read.pop(one.name) for one in fields(Pace) if one.name in read}
        return cls(pace=Pace(**pace), **read)

    def as_dict(self) -> dict[str, Any]:
        """One flat object, which `from_dict` reads."""
        own = {name: value for name, value in asdict(self).items() if name != "pace"}
        caps = {name: getattr(self.pace, name) or 0 for name in CAPS}
        hours = {name: None if (found := getattr(self, name)) is None else str(found) for name in HOURS}
        return {**self.pace.as_dict(), **caps, **own, **hours}

    def changed(self, changes: Mapping[str, Any]) -> Settings:
        """These settings with some changed, by their flat names, as `from_dict` reads them; a ceiling grows along."""
        values = {**self.as_dict(), **changes}
        ceiling, throttle = values.get("throttle_ceiling"), values.get("throttle")
        if ceiling is not None and throttle is not None:
            values["throttle_ceiling"] = max(int(ceiling), int(throttle))
        return Settings.from_dict(values)

    def open_at(self, moment: datetime) -> bool:
        """Whether moves may begin at this moment."""
        return self.closed_at(moment) is None

    def closed_at(self, moment: datetime) -> str | None:
        """Why no move may begin at this moment; None if they may."""
        if self.quiet_hours is not None and self.quiet_hours.contains(moment):
            return f"these are the quiet hours {self.quiet_hours} of the approval policy"
        if self.window is not None and not self.window.contains(moment):
            return f"the window {self.window} is closed"
        return None


def check_seconds(name: str, seconds: float, least: float = 0.1, most: float = MOST_SECONDS) -> None:
    """Refuse a time that is not between these bounds; what is no number is not."""
    if not least <= seconds <= most:
        raise InvalidInputError(f"{name} is {seconds} seconds: give {least:g} to {most:g}")


def _refuse(name: str, value: object, wanted: str) -> InvalidInputError:
    return InvalidInputError(f"{name.replace('_', ' ')} is {value!r}: give {wanted}")


def _to_int(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool) or int(value) != float(value):
            raise ValueError
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _refuse(name, value, "a whole number") from error


def _limit(name: str, value: Any) -> int | None:
    """A cap as people write it: 0 for none."""
    return _to_int(name, value) or None


def _no_limit(name: str, value: Any) -> float | None:
    """Seconds as people write them: 0 for no limit."""
    return _to_float(name, value) or None


def _to_float(name: str, value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError) as error:
        raise _refuse(name, value, "a number") from error


def _flag(name: str, value: Any) -> bool:
    words = {"true": True, "false": False}
    found = value if isinstance(value, bool) else words.get(str(value).lower())
    if found is None:
        raise _refuse(name, value, "true or false")
    return found


def _choice(kind: type[StrEnum]) -> Any:
    def read(name: str, value: Any) -> StrEnum:
        try:
            return kind(value)
        except ValueError as error:
            raise _refuse(name, value, f"one of {', '.join(kind)}") from error

    return read


_READERS: dict[str, Any] = {
    "throttle": _to_int,
    "log_dir_throttle": _to_int,
    **dict.fromkeys(CAPS, _limit),
    "order": _choice(Order),
    "one_replica_at_a_time": _flag,
    **dict.fromkeys(HOURS, lambda _, value: Window.parse(str(value))),
    "throttle_ceiling": _limit,
    "stall_checks": _to_int,
    "on_stall": _choice(OnStall),
    "disk_reserve": _to_float,
    "pause_under_min_isr": _flag,
    "cancel_on_failure": _flag,
    "election_batch": _to_int,
    "give_up_after": _to_float,
    "max_run_time": _no_limit,
}
