"""What is compared: the state of cluster and run when all is over, in words that do not depend on time or texts.

For each partition of the scene's topics: its replicas in order, and which of them are not in sync. All reassignments
under way. All throttles that are set, as sets of entries, with brokers that cannot be asked left out. Of the run: how
it ended, which partitions it set aside and for what kind of reason, and what it names as left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

# Reasons, by what their text contains; the first that fits. Numbers and names of brokers in a text depend on time.
REASONS = {
    "somebody else moved it": "moved by others",
    "deleted and created again": "topic recreated",
    "somebody else cancelled": "cancelled by others",
    "did not advance": "did not advance",
    "are down": "receiver is down",
    "exclude_topics": "topic excluded",
    "short of in-sync": "short of in-sync replicas",
    "reassignments of somebody else": "reassignments of others",
    "no longer where the snapshot saw them": "drift",
    "offline or under-replicated": "not in sync",
    "not alive": "brokers not alive",
    "go on and need it": "moves go on",
    "use it": "used by others",
    "cancel requested": "cancelled",
    "damaged": "damaged",
}


def reason(text: str) -> str:
    """The kind of a reason."""
    for words, kind in REASONS.items():
        if words in text:
            return kind
    return re.sub(r"\d+(\.\d+)?", "n", text)


@dataclass(frozen=True, slots=True)
class EndState:
    """The state of cluster and run at the end.

    Attributes:
        struck: The faults that struck; one whose moment comes after the end of the run does not.
        moving: The partitions that were under way at the first moment after the run had begun.
        partitions: Replicas in order, and those that are not in sync.
        reassignments: What is still under way.
        lists: The throttled replicas by topic and configuration.
        rates: The dynamic throttle rates by broker and configuration.
        run: How the run ended.
        set_aside: Which partitions were given up, and the kind of reason.
        left: What could not be restored, and the kind of reason, after the run and after the next snapshot.
    """

    struck: Mapping[str, str] = field(default_factory=dict)
    moving: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, str] = field(default_factory=dict)
    reassignments: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, str] = field(default_factory=dict)
    set_aside: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)


def differences(simulated: EndState, real: EndState) -> list[str]:
    """What differs, one line each, with both sides."""
    found = []
    for name, ours in asdict(simulated).items():
        theirs = asdict(real)[name]
        for key in sorted({*ours, *theirs}):
            here, there = ours.get(key, "-"), theirs.get(key, "-")
            if here != there:
                found.append(f"{name} {key}: simulated {here}, real {there}")
    return found
