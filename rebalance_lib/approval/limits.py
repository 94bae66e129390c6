"""When a machine may decide: how uneven a cluster must be to plan for it, and how small a plan must be to need nobody.

Both are read from ``summary.json`` alone, so that what decides is what people read.

Example: with ``Thresholds(bytes=0.1)``, a cluster whose fullest broker holds 1.04 times its share and whose emptiest
0.97 is left alone: 4 % is under 10 %. With ``ApprovalLimits(max_bytes=10**9)``, a plan of 2 GB waits for a person.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from rebalance_lib.errors import InvalidInputError

LASTING = ("partitions", "replication-factor")
MOST = 2**63 - 1  # Kafka's own settings hold no larger number
MOST_SECONDS = 366 * 86_400
MOST_IMBALANCE = 10**6  # shares of a broker


class _FromDict:
    """Reads its fields, numbers all, from an object; what is left out, or null, is no limit.

    NaN is refused as any number out of range is: no comparison with it holds, so that a limit of NaN has no objections.
    """

    _most: ClassVar[Mapping[str, int]]

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Read it.

        Raises:
            InvalidInputError: A name is not known, or a value is no number, or out of range.
        """
        known = [one.name for one in fields(cls)]  # type: ignore[arg-type]
        what = cls.__doc__.split(":")[0].lower() if cls.__doc__ else ""
        if unknown := sorted(set(given) - set(known)):
            raise InvalidInputError(f"{what} have no {unknown[0]!r}: use some of {', '.join(known)}")
        for name, value in given.items():
            if value is None:
                continue
            most = cls._most[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise InvalidInputError(f"{name} of {what} is {value!r}: give a number of 0 to {most}")
        return cls(**given)


@dataclass(frozen=True, slots=True)
class ApprovalLimits(_FromDict):
    """Limits of automatic approval: a plan with no risk and within all of them needs no person.

    Args:
        max_bytes: bytes that it copies; without this one nothing is approved.
        max_replicas: replicas that it copies.
        max_leaders: preferred leaders that change.
        max_seconds: how long it takes by the forecast.
    """

    _most: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("max_bytes", "max_replicas", "max_leaders"), MOST),
        "max_seconds": MOST_SECONDS,
    }

    max_bytes: int | None = None
    max_replicas: int | None = None
    max_leaders: int | None = None
    max_seconds: float | None = None

    def tightened(self, other: ApprovalLimits) -> ApprovalLimits:
        """The tighter of both limits, each by itself."""
        both = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        return ApprovalLimits(**{name: _least(*limits) for name, limits in both.items()})

    def objections(self, summary: Mapping[str, Any]) -> list[str]:
        """Why the recommended plan of a summary needs a person; empty if it does not."""
        candidate, mode = summary["candidates"][summary["recommended"]], summary["mode"]
        lasting = [f"mode {mode} changes what another plan cannot undo"] if mode in LASTING else []
        return [*self._exceeded(candidate), *lasting, *candidate["risks"]]

    def _exceeded(self, candidate: Mapping[str, Any]) -> Iterator[str]:
        if self.max_bytes is None:
            yield "no limit in bytes is set"
        seconds = candidate["seconds"]
        figures = {**candidate["figures"], "seconds": math.inf if seconds is None else seconds}  # None: it never ends
        figures["bytes_moved"] += figures["log_dir_bytes"]
        for what, limit in (
            ("bytes_moved", self.max_bytes),
            ("replicas_moved", self.max_replicas),
            ("leaders_moved", self.max_leaders),
            ("seconds", self.max_seconds),
        ):
            if limit is not None and figures[what] > limit:
                yield f"{what.replace('_', ' ')} {figures[what]:,.0f} is above {limit:,.0f}"


@dataclass(frozen=True, slots=True)
class Thresholds(_FromDict):
    """Thresholds of imbalance: under all of them a cluster is left alone.

    Args:
        bytes: how far from its share a broker's bytes may be, as a part of the share.
        replicas: the same of its replicas.
        leaders: the same of its preferred leaders.
    """

    _most: ClassVar[Mapping[str, int]] = dict.fromkeys(("bytes", "replicas", "leaders"), MOST_IMBALANCE)

    bytes: float | None = None
    replicas: float | None = None
    leaders: float | None = None

    def under(self, figures: Mapping[str, Any]) -> str | None:
        """The imbalance in words, if it is under every threshold; None if one is reached, or none is set."""
        described, reached = [], False
        for what in ("bytes", "replicas", "leaders"):
            threshold = getattr(self, what)
            if threshold is None:
                continue
            found = imbalance(figures[f"{what}_before"])
            described.append(f"{what} {found:.1%} of at most {threshold:.1%}")
            reached |= found >= threshold
        return None if reached or not described else ", ".join(described)


def _least(*limits: float | None) -> Any:
    return min((limit for limit in limits if limit is not None), default=None)


def imbalance(balance: Mapping[str, float]) -> float:
    """How far the fullest or the emptiest broker is from its share, as a part of the share."""
    return max(balance["most"] - 1, 1 - balance["least"])
