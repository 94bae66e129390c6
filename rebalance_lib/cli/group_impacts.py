"""What a plan does to consumer groups, on a terminal."""

from __future__ import annotations

from typing import Any

from rebalance_lib.cli.output import Output
from rebalance_lib.report.group_figures import is_touched
from rebalance_lib.topology.naming import printable

COLUMNS = (
    "group",
    "assignor",
    "members",
    "partitions",
    "per member",
    "idle",
    "change hands",
    "leaders change",
    "rack gained",
    "rack lost",
    "lag",
)
MEMBER_COLUMNS = ("group", "member", "client id", "host", "before", "after", "kept")
Row = dict[str, Any]


def show_impacts(output: Output, rows: list[Row], *, with_members: bool) -> None:
    """The groups that a plan touches, and those it does not in one line.

    Args:
        output: Where to show them.
        rows: Of `rebalance_lib.assignors.impact`.
        with_members: Whether to show what each member has before and after.
    """
    touched = [row for row in rows if is_touched(row)]
    if touched:
        output.table("What the plan does to consumer groups", COLUMNS, [_cells(row) for row in touched])
    members = [_member_cells(row, share) for row in touched for share in row["shares"] or ()]
    if with_members and members:
        output.table("Members", MEMBER_COLUMNS, members)
    for row in rows:
        if row["remark"]:
            output.say(f"{printable(row['group'])}: {row['remark']}")
    output.say(f"{len(touched)} of {len(rows)} groups are touched")
    output.result({"groups": rows})


def _cells(row: Row) -> list[str]:
    per_member = [f"{_told(row[f'least_{when}'])}-{_told(row[f'most_{when}'])}" for when in ("before", "after")]
    return [
        row["group"],
        row["assignor"] or "-",
        str(row["members"]),
        _change(row, "partitions"),
        " \u2192 ".join(per_member) if row["rebalances"] else "as now",
        _change(row, "idle"),
        _told(row["change_hands"]) if row["rebalances"] else "0",
        *(_told(row[name]) for name in ("leaders_change", "rack_gained", "rack_lost", "lag")),
    ]


def _member_cells(row: Row, share: Row) -> list[str]:
    return [row["group"], *(_told(share[name]) for name in ("member", "client_id", "host", "before", "after", "kept"))]


def _change(row: Row, name: str) -> str:
    if not row["rebalances"]:
        return "as now"
    return f"{_told(row[f'{name}_before'])} \u2192 {_told(row[f'{name}_after'])}"


def _told(value: object) -> str:
    return "-" if value is None else str(value)
