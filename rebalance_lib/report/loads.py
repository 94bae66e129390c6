"""Which loads a plan was made with, and of how many partitions they are not known."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from rebalance_lib.plan.columns import find_sorted, partition_keys
from rebalance_lib.topology.load_facts import LoadFacts
from rebalance_lib.topology.naming import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from rebalance_lib.planner.rest import Rest
    from rebalance_lib.topology import Snapshot

NAMED = 5  # consumer groups in a sentence
UNKNOWN = {"write_rate": "write_rate_unknown", "read_rate": "read_rate_unknown", "size_bytes": "size_unknown"}

_KNOWN = {"write_rate_unknown": "write_known", "read_rate_unknown": "read_known", "size_unknown": "size_known"}


def load_figures(snapshot: Snapshot, loads: pa.Table | None, rest: Rest | None = None) -> dict[str, Any] | None:
    """Statistic, hours and horizon of loads out of the history, and how many partitions of the snapshot lack which.

    A partition without a row lacks all of them. With a horizon of 0 days no size is unknown: those of the snapshot
    count. None for loads that are not from the history. The rest is what partitions add that the snapshot lacks.
    """
    if loads is None or (facts := LoadFacts.of(loads)) is None:
        return None
    known, wanted = partition_keys(loads, snapshot.replicas.select(["topic", "partition"]))
    partitions = np.unique(wanted)
    rows = find_sorted(partitions, known) >= 0
    unknown = {
        name: len(partitions) - int(np.count_nonzero(rows & pc.is_valid(loads[column]).to_numpy()))
        for column, name in UNKNOWN.items()
    }
    if rest is not None:
        others = round(rest.sums.partitions)
        unknown = {name: missing + others - rest.sums.total(_KNOWN[name]) for name, missing in unknown.items()}
    if not facts.horizon_days:
        unknown["size_unknown"] = 0
    return {**asdict(facts), "groups_reset": list(facts.groups_reset), **unknown}


def loads_lines(summary: dict[str, Any], quote: Callable[[str], str] = printable) -> list[str]:
    """What a reader of the plan should know of its loads, a sentence each; none of a plan that changes nothing.

    Args:
        summary: What ``summary.json`` holds.
        quote: How names are written that any client can choose.
    """
    loads = summary.get("loads")
    if not summary["partitions_changed"]:
        return []
    if not loads:
        return [] if summary["rates_known"] else ["Write rates are not known: one snapshot alone has none."]
    counted = {"mean": "mean", "p95": "95th percentile", "last": "last interval"}[loads["statistic"]]
    lines = [f"Loads: the {counted} of {loads['hours']:g} hours of history{_after(loads['horizon_days'])}."]
    missing = [
        f"the {what} of {loads[name]}"
        for name, what in (("write_rate_unknown", "write rates"), ("read_rate_unknown", "read rates"))
        if loads[name]
    ]
    if loads["size_unknown"]:
        missing.append(f"the growth of {loads['size_unknown']}")
    if missing:
        lines.append(f"Of {summary['partitions']} partitions, {', '.join(missing)} are not known.")
    if reset := loads["groups_reset"]:
        named = ", ".join(map(quote, reset[:NAMED])) + (", ..." if len(reset) > NAMED else "")
        lines.append(f"Consumer groups were reset meanwhile, and count as reading nothing then: {named}.")
    return lines


def _after(days: float) -> str:
    return f", sizes as they will be in {days:g} days" if days else ""
