"""Many clusters on one page: how even each is, and what its plan would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lib import __version__
from rebalance_lib.approval.limits import imbalance
from rebalance_lib.report.documents import template


def fleet_rows(summaries: Mapping[str, Mapping[str, Any] | None]) -> list[dict[str, Any]]:
    """A row for each cluster by its name, the most uneven first; those without a plan come before all others."""
    rows = [_row(name, summary) for name, summary in summaries.items()]
    return sorted(rows, key=lambda row: (row["planned"], -row.get("bytes_before", 0.0), row["name"]))


def _row(name: str, summary: Mapping[str, Any] | None) -> dict[str, Any]:
    if summary is None:
        return {"name": name, "planned": False}
    recommended = summary["candidates"][summary["recommended"]]
    figures = recommended["figures"]
    balances = {
        f"{what}_{when}": imbalance(figures[f"{what}_{when}"])
        for what in ("bytes", "replicas", "leaders")
        for when in ("before", "after")
    }
    return {
        "name": name,
        "planned": True,
        "cluster_id": summary["cluster_id"],
        "mode": summary["mode"],
        "brokers": len(summary["brokers"]),
        "partitions": summary["partitions"],
        "bytes_total": summary["bytes_total"],
        "bytes_moved": figures["bytes_moved"],
        "replicas_moved": figures["replicas_moved"],
        "leaders_moved": figures["leaders_moved"],
        "seconds": recommended["seconds"],
        "risks": recommended["risks"],
        "digest": recommended["digest"],
        **balances,
    }


def render_fleet(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page, in HTML."""
    return template("fleet.html.j2").render(rows=rows, version=__version__)
