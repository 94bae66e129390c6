"""When a plan finishes, in words; or that it never does at its throttle, for which partitions, and which would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_lib.report.durations import human_seconds
from rebalance_lib.report.units import human_bytes

NAMED = 5


def finish(forecast: Mapping[str, Any], pace: Mapping[str, Any]) -> str:
    """``2 h 5 min at a throttle of 50 MB/s ...``, or ``the plan never finishes at a throttle of ...``; no full stop.

    Args:
        forecast: That of a plan, as ``summary.json`` has it.
        pace: The pace that it counts with, likewise.
    """
    throttle = pace.get("throttle")
    rate = f"at a throttle of {human_bytes(throttle)}/s on each broker" if throttle else "without a throttle"
    if not forecast["never"]["count"]:
        return f"{human_seconds(forecast['seconds'])} {rate}"
    return f"the plan never finishes {rate}: {why_never(forecast)}"


def name_log_dir(path: str | None, broker: int) -> str:
    """``log dir /d1 of broker 2``; a cluster's JSON has no paths."""
    return f"log dir {path} of broker {broker}" if path else f"the disk of broker {broker}"


def why_never(forecast: Mapping[str, Any]) -> str:
    """Which partitions hold up a plan for ever, and which throttle would be enough."""
    never = forecast["never"]
    names = ", ".join(never["partitions"][:NAMED]) + (", ..." if never["count"] > NAMED else "")
    return (
        f"{never['count']} of {forecast['partitions']} partitions are written to as fast as they are copied, or wait "
        f"for such ones ({names}); {_enough(never)}"
    )


def _enough(never: Mapping[str, Any]) -> str:
    """The least throttles; a plan made by an earlier version does not have them."""
    throttles = [
        ("a throttle", never.get("least_throttle")),
        ("one between log dirs", never.get("least_log_dir_throttle")),
    ]
    needed = [f"{what} of {human_bytes(rate)}/s ({rate})" for what, rate in throttles if rate]
    return f"{' and '.join(needed)} would do" if needed else "a higher throttle would do"
