"""Brokers before and after on a terminal, with bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from rebalance_lib.report.units import human_bytes, text_bar

FIGURES = ("bytes", "replicas", "leaders")


def broker_table(brokers: Sequence[dict[str, Any]], title: str) -> Table:
    """Two lines per broker, before and after; ``brokers`` have the shape of those in ``summary.json``."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("broker", justify="right", no_wrap=True)
    table.add_column("rack", overflow="fold")
    table.add_column("", no_wrap=True)
    for figure in FIGURES:
        table.add_column(figure, no_wrap=True)
    cells = {figure: _cells(brokers, figure) for figure in FIGURES}
    for row, broker in enumerate(brokers):
        table.add_row(
            str(broker["broker"]),
            broker["rack"] or "-",
            "[dim]before[/dim]\nafter",
            *(cells[figure][row] for figure in FIGURES),
        )
    return table


def _cells(brokers: Sequence[dict[str, Any]], figure: str) -> list[str]:
    """Number and bar, before and after, of every broker; the bars of a column share one scale."""
    pairs = [(broker["before"][figure], broker["after"][figure]) for broker in brokers]
    most = max((value for pair in pairs for value in pair), default=0)
    show = human_bytes if figure == "bytes" else str
    width = max((len(show(value)) for pair in pairs for value in pair), default=0)
    return [
        f"[dim]{show(before):>{width}} {text_bar(before, most, 8)}[/dim]\n"
        f"{show(after):>{width}} [green]{text_bar(after, most, 8)}[/green]"
        for before, after in pairs
    ]
