"""What a plan does to replication factors: how many partitions go from how many copies to how many.

[{"from": 3, "to": 2, "partitions": 8, "replicas": -8}]
"8 replicas are removed and not replaced: 8 partitions go from 3 copies to 2."
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rebalance_lib.planner.outcome import Outcome


def factor_changes(outcome: Outcome) -> list[dict[str, int]]:
    """The changes of factors among the partitions that the cluster has, the largest loss of replicas first."""
    before = outcome.model.replication_factor
    after = np.diff(outcome.placement.layout.offsets)[: len(before)]
    changed = before != after
    pairs, counts = np.unique(np.c_[before[changed], after[changed]], axis=0, return_counts=True)
    changes = [
        {"from": old, "to": new, "partitions": count, "replicas": (new - old) * count}
        for (old, new), count in zip(pairs.tolist(), counts.tolist(), strict=True)
    ]
    return sorted(changes, key=lambda change: change["replicas"])


def factor_lines(summary: Mapping[str, Any]) -> list[str]:
    """The recommended plan's changes, a sentence for what goes and one for what is added; none of an older summary."""
    changes = summary["candidates"][summary["recommended"]].get("factor_changes", [])
    lowered, raised = ([one for one in changes if (one["replicas"] < 0) is less] for less in (True, False))
    lines = []
    if lowered:
        count = -sum(one["replicas"] for one in lowered)
        lines.append(f"{_number(count, 'replica is', 'replicas are')} removed and not replaced: {_listed(lowered)}.")
    if raised:
        count = sum(one["replicas"] for one in raised)
        lines.append(f"{_number(count, 'replica is', 'replicas are')} added: {_listed(raised)}.")
    return lines


def _listed(changes: Sequence[Mapping[str, int]]) -> str:
    first, *others = (f"from {_number(one['from'], 'copy', 'copies')} to {one['to']}" for one in changes)
    counts = [one["partitions"] for one in changes]
    begin = f"{_number(counts[0], 'partition goes', 'partitions go')} {first}"
    return ", ".join([begin, *(f"{count} {words}" for count, words in zip(counts[1:], others, strict=True))])


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
