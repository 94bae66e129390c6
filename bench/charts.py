"""Charts as SVG, small enough to write by hand: panels with points, bars or lines on linear or logarithmic axes.

A chart is a grid of panels that share one legend. Colours are chosen to be told apart on white and on black, and the
rest follows the reader's light or dark scheme; each series also has a shape of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PALETTE = ("#3b82f6", "#f97316", "#10a37f", "#c054d6", "#d4a017", "#e0516a")
WIDTH, HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 26, 34, 42
LEGEND = 34
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2937; }
  .title { font-weight: 600; font-size: 13px; }
  .paper { fill: #ffffff; } .grid { stroke: #e2e5ea; } .mark { stroke: #6b7280; stroke-dasharray: 4 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e5e7eb; } .paper { fill: #0d1117; } .grid { stroke: #2d333b; } .mark { stroke: #9aa4b2; }
  }
"""


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and between which values."""

    label: str
    low: float
    high: float
    logarithmic: bool = False
    unit: str = ""

    def share(self, value: float) -> float:
        """Where the value stands between low (0) and high (1), held inside."""
        low, high, at = ((math.log(v) if self.logarithmic else v) for v in (self.low, self.high, max(value, self.low)))
        return min(1.0, (at - low) / (high - low))

    def ticks(self) -> list[float]:
        """Round values along the axis."""
        if self.logarithmic:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 2))
        while (self.high - self.low) / step > 6:
            step *= 2
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def text(self, value: float) -> str:
        return f"{value:,.6g}{self.unit}"


@dataclass(frozen=True)
class Series:
    """Points of one name; ``line`` joins them."""

    name: str
    points: Sequence[tuple[float, float]]
    line: bool = False


@dataclass(frozen=True)
class Bar:
    """A horizontal bar with what is written at its end."""

    name: str
    value: float
    text: str


@dataclass(frozen=True)
class Panel:
    """One diagram: series over two axes, or bars over one; ``marks`` are dashed lines with their label."""

    title: str
    x: Axis
    y: Axis | None = None
    series: Sequence[Series] = ()
    bars: Sequence[Bar] = ()
    across: Sequence[tuple[float, str]] = field(default=())
    upright: Sequence[tuple[float, str]] = field(default=())


def chart(panels: Sequence[Panel], names: Sequence[str], description: str) -> str:
    """The panels, two in a row, below the legend of all names."""
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    width, height = columns * WIDTH, rows * HEIGHT + LEGEND
    body = [_legend(names)]
    for number, panel in enumerate(panels):
        x, y = number % columns * WIDTH, number // columns * HEIGHT + LEGEND
        body.append(f'<g transform="translate({x},{y})">{_panel(panel, names)}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(description)}</title><style>{STYLE}</style>"
        f'<rect class="paper" width="{width}" height="{height}" rx="6"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _legend(names: Sequence[str]) -> str:
    parts, x = [], 20.0
    for number, name in enumerate(names):
        parts.append(_shape(number, x, 20.0) + _text(x + 10, 24, name))
        x += 34 + 6.6 * len(name)
    return "".join(parts)


def _panel(panel: Panel, names: Sequence[str]) -> str:
    parts = [_text(LEFT, 18, panel.title, style="title"), _text(_right(), HEIGHT - 8, panel.x.label, anchor="end")]
    for tick in panel.x.ticks():
        x = _x(panel.x, tick)
        parts.append(_line(x, TOP, x, HEIGHT - BOTTOM, "grid"))
        parts.append(_text(x, HEIGHT - BOTTOM + 16, panel.x.text(tick), anchor="middle"))
    if panel.y is not None:
        parts.append(_text(8, HEIGHT - 8, f"↑ {panel.y.label}"))
        for tick in panel.y.ticks():
            y = _y(panel.y, tick)
            parts.append(_line(LEFT, y, _right(), y, "grid") + _text(LEFT - 6, y + 4, panel.y.text(tick), anchor="end"))
        for value, label in panel.across:
            y = _y(panel.y, value)
            parts.append(_line(LEFT, y, _right(), y, "mark") + _text(_right(), y - 4, label, anchor="end"))
        parts.extend(_series(one, panel.x, panel.y, names.index(one.name)) for one in panel.series)
    for value, label in panel.upright:
        x = _x(panel.x, value)
        parts.append(_line(x, TOP, x, HEIGHT - BOTTOM, "mark") + _text(x + 4, HEIGHT - BOTTOM - 6, label))
    for number, bar in enumerate(panel.bars):
        parts.append(_bar(bar, panel.x, names.index(bar.name), number, len(panel.bars)))
    return "".join(parts)


def _series(series: Series, x_axis: Axis, y_axis: Axis, number: int) -> str:
    at = [(_x(x_axis, x), _y(y_axis, y)) for x, y in series.points]
    shapes = "".join(_shape(number, x, y) for x, y in at)
    if not series.line or len(at) < 2:
        return shapes
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    return f'<polyline points="{path}" fill="none" stroke="{_colour(number)}" stroke-width="2"/>{shapes}'


def _bar(bar: Bar, axis: Axis, number: int, row: int, rows: int) -> str:
    space = (HEIGHT - BOTTOM - TOP) / rows
    y, end = TOP + row * space + space * 0.15, _x(axis, bar.value)
    rect = f'<rect x="{LEFT}" y="{y:.1f}" width="{max(end - LEFT, 2):.1f}" height="{space * 0.7:.1f}" rx="2"'
    beyond = end > _right() - 90
    text = _text(end - 6 if beyond else end + 6, y + space * 0.35 + 4, bar.text, anchor="end" if beyond else "start")
    return f'{rect} fill="{_colour(number)}"/>{text}'


def _shape(number: int, x: float, y: float) -> str:
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5"',
        f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"',
        f'<path d="M{x:.1f} {y - 6.5:.1f}l6.5 11.5h-13z"',
        f'<path d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z"',
    )
    return f'{shapes[number % len(shapes)]} fill="{_colour(number)}"/>'


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (_right() - LEFT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - BOTTOM - TOP)


def _right() -> int:
    return WIDTH - RIGHT


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", style: str = "label") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
