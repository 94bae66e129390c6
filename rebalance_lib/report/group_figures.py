"""What a candidate does to consumer groups, in a few figures: what a reviewer reads of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 20


def group_figures(impacts: pa.Table | None, candidate: str) -> dict[str, Any] | None:
    """How many groups a candidate touches, and those that it touches most; None where groups are not known."""
    if impacts is None:
        return None
    rows = impacts.filter(pc.field("candidate") == candidate).drop_columns(["candidate", "shares"]).to_pylist()
    touched = sorted((row for row in rows if is_touched(row)), key=_weight)
    return {
        "read": len(rows),
        "touched": len(touched),
        "rebalance": sum(row["rebalances"] for row in rows),
        "change_hands": sum(row["change_hands"] or 0 for row in rows),
        "leaders_change": sum(row["leaders_change"] > 0 for row in rows),
        "racks_change": sum(row["rack_gained"] + row["rack_lost"] > 0 for row in rows),
        "left_idle": sum(row["left_idle"] or 0 for row in rows),
        "not_told": sum(row["remark"] is not None and not is_touched(row) for row in rows),
        "most": touched[:SHOWN],
    }


def is_touched(row: Mapping[str, Any]) -> bool:
    """Whether a plan changes anything for a group."""
    return bool(row["rebalances"] or row["leaders_change"] or row["rack_gained"] or row["rack_lost"])


def _weight(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sorts those first that feel a plan most."""
    return (
        -(row["left_idle"] or 0),
        not row["rebalances"],
        -(row["change_hands"] or 0),
        -row["leaders_change"],
        row["group"],
    )
