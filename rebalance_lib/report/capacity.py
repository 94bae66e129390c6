"""The forecast of capacity as a text: clusters first, then the places that are full soonest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rebalance_lib.report.units import figure, human_bytes

SOONEST = 20  # places; the table has all
HEAD = ("place", "used", "of", "fill", "a day", "passes {fill}", "full", "note")


def capacity_text(rows: Sequence[Mapping[str, Any]], fill: float, more_brokers: int = 0) -> str:
    """The rows of a forecast for people; days with their range in brackets."""
    clusters = [row for row in rows if row["scope"] == "cluster"]
    places = [row for row in rows if row["scope"] != "cluster"]
    soonest = sorted(places, key=lambda row: (row["passes_likely"] is None, row["passes_likely"] or row["last_sample"]))
    shown = [*clusters, *soonest[:SOONEST]]
    head = tuple(name.format(fill=f"{fill:.0%}") for name in HEAD)
    lines = _aligned([head, *(_cells(row) for row in shown)])
    if len(soonest) > SOONEST:
        lines.append(
            f"and {len(soonest) - SOONEST} more brokers and log dirs, which pass it later or not within a year"
        )
    if more_brokers:
        lines += [_postponed(row, fill, more_brokers) for row in clusters]
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    place = {"cluster": row["cluster"], "broker": f"{row['cluster']} broker {row['broker']}"}
    total, growth = row["total_bytes"], row["growth_per_day"]
    return (
        place.get(row["scope"], f"{row['cluster']} broker {row['broker']} {row['log_dir']}"),
        figure(None if row["used_bytes"] is None else human_bytes(row["used_bytes"])),
        figure(None if total is None else human_bytes(total)),
        figure(None if row["fill"] is None else f"{row['fill']:.0%}"),
        figure(None if growth is None else human_bytes(growth)),
        _range(row, "passes"),
        _range(row, "full"),
        row["note"] or "",
    )


def _range(row: Mapping[str, Any], name: str) -> str:
    early, likely, late = (_day(row[f"{name}_{when}"]) for when in ("early", "likely", "late"))
    return figure(None) if early == likely == late == figure(None) else f"{likely} ({early} to {late})"


def _day(moment: datetime | None) -> str:
    return figure(None if moment is None else f"{moment:%Y-%m-%d}")


def _postponed(row: Mapping[str, Any], fill: float, more: int) -> str:
    gained, then = row["passes_postponed_days"], row["passes_with_more"]
    brokers = f"{row['cluster']}: {more} more broker{'s' if more > 1 else ''}"
    if row["passes_likely"] is None:
        return f"{brokers} would postpone nothing: {row['note']}"
    if then is None or gained is None:
        return f"{brokers} would postpone {fill:.0%} beyond a year"
    return f"{brokers} would postpone {fill:.0%} by {gained:.0f} days, to {_day(then)}, once replicas are spread evenly"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
