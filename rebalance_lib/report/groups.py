"""What the candidates of a choice do to each consumer group, as a table."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.assignors.effects import Effects
from rebalance_lib.assignors.impact import IMPACTS, impact, no_impact
from rebalance_lib.assignors.live_group import LiveGroup
from rebalance_lib.topology import GROUP_OFFSETS, Groups

if TYPE_CHECKING:
    from rebalance_lib.plan import Plan
    from rebalance_lib.topology import Snapshot

CANDIDATE_IMPACTS = pa.schema([pa.field("candidate", pa.string(), nullable=False), *IMPACTS])


def group_impacts(groups: Groups, snapshot: Snapshot, plans: Mapping[str, Plan]) -> pa.Table:
    """What each of these plans does to each group: rows of `CANDIDATE_IMPACTS`, by plan and group."""
    effects = {name: Effects(snapshot, plan.entries) for name, plan in plans.items()}
    rows = [row for members, offsets in _by_group(groups) for row in impacts_of_group(members, offsets, effects)]
    return in_order(pa.Table.from_pylist(rows, schema=CANDIDATE_IMPACTS), plans)


def impacts_of_group(members: pa.Table, offsets: pa.Table, effects: Mapping[str, Effects]) -> list[dict[str, Any]]:
    """What each plan does to one group.

    A group that cannot be looked at says so, and holds up nobody: what members tell is theirs to choose.
    """
    group = LiveGroup.of(members, offsets)
    try:
        return [{"candidate": name, **impact(group, one)} for name, one in effects.items()]
    except Exception as error:
        traceback.print_exc()
        row = no_impact(group, f"it could not be looked at: {type(error).__name__}")
        return [{"candidate": name, **row} for name in effects]


def in_order(impacts: pa.Table, candidates: Iterable[str]) -> pa.Table:
    """The rows of these candidates, as they are listed here, then by group."""
    parts = [impacts.filter(pc.field("candidate") == name).sort_by("group") for name in candidates]
    return pa.concat_tables(parts) if parts else impacts


def _by_group(groups: Groups) -> list[tuple[pa.Table, pa.Table]]:
    members, offsets = _cut(groups.members), _cut(groups.offsets)
    return [(own, offsets.get(name, GROUP_OFFSETS.empty_table())) for name, own in members.items()]


def _cut(table: pa.Table) -> dict[str, pa.Table]:
    """The rows of each group."""
    table = table.sort_by("group")
    names = table["group"].to_pylist()
    starts = [n for n, name in enumerate(names) if n == 0 or names[n - 1] != name]
    return {names[begin]: table.slice(begin, end - begin) for begin, end in pairwise([*starts, len(names)])}
