"""Brokers on a terminal, with bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from rebalance_lib.report.units import human_bytes, text_bar

FIGURES = ("bytes", "replicas", "leaders")
BAR_WIDTH = 8


def load_table(brokers: Sequence[dict[str, Any]], title: str) -> Table:
    """A line per broker with what it holds; ``brokers`` have the columns of `Snapshot.load_per_broker`."""
    table = _table(title)
    columns = [_column([broker[figure] for broker in brokers], _show(figure)) for figure in FIGURES]
    for row, broker in enumerate(brokers):
        table.add_row(str(broker["broker"]), escape(broker["rack"] or "-"), *(column[row] for column in columns))
    return table


def broker_table(brokers: Sequence[dict[str, Any]], title: str) -> Table:
    """Two lines per broker, before and after; ``brokers`` have the shape of those in ``summary.json``."""
    table = _table(title, "")
    columns = {
        figure: _column([broker[when][figure] for broker in brokers for when in ("before", "after")], _show(figure))
        for figure in FIGURES
    }
    for row, broker in enumerate(brokers):
        pairs = (columns[figure][2 * row : 2 * row + 2] for figure in FIGURES)
        cells = [f"[dim]{before}[/dim]\n[green]{after}[/green]" for before, after in pairs]
        table.add_row(str(broker["broker"]), escape(broker["rack"] or "-"), "[dim]before[/dim]\nafter", *cells)
    return table


def _table(title: str, *more: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("broker", justify="right", no_wrap=True)
    table.add_column("rack", overflow="fold")
    for name in (*more, *FIGURES):
        table.add_column(name, no_wrap=True)
    return table


def _show(figure: str) -> Callable[[int], str]:
    return human_bytes if figure == "bytes" else str


def _column(values: Sequence[int], show: Callable[[int], str]) -> list[str]:
    """Number and bar of each value, on one scale and aligned."""
    most = max(values, default=0)
    width = max((len(show(value)) for value in values), default=0)
    return [f"{show(value):>{width}} {text_bar(value, most, BAR_WIDTH)}" for value in values]
