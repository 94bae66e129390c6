"""How verify and cancel print what became of the throttles."""

from __future__ import annotations

from typing import Any

from rebalance_lib.cli.output import Output, brokers_text
from rebalance_lib.execution.commands.verify import Throttles


def print_throttles(output: Output, throttles: Throttles) -> None:
    """Print what was restored, and what was not and why."""
    restored = throttles.restored
    if restored.brokers:
        output.say(f"Throttle rates are as before on brokers {brokers_text(restored.brokers)}")
    if restored.topics:
        output.say(f"Throttled replicas are as before on topics {','.join(restored.topics)}")
    if restored.foreign:
        output.remark(f"Brokers {brokers_text(restored.foreign)} keep a rate that somebody else set since")
    for where, reason in restored.left.items():
        output.remark(f"The throttle of {where} was not restored: {reason}")
    if throttles.kept:
        output.remark(f"Throttles stay for now: {throttles.kept}. Run verify again when they have ended.")


def throttles_document(throttles: Throttles) -> dict[str, Any]:
    """The same for programs."""
    return {
        "restored": {"topics": throttles.restored.topics, "brokers": throttles.restored.brokers},
        "left": throttles.restored.left,
        "kept": throttles.kept,
    }
