"""The tables, charts and projections of ``docs/scaling.md``, from what ``bench.scaling`` measured.

Two numbers are drawn from the four sizes of an axis. The exponent is the slope of time over size, both logarithmic: 1
is proportional. The cost is a straight line through the points, ``fixed + each * size``, fitted so that every point
counts by its relative error, not by its size.

A projection takes the line to a size of its own, spread over more cores than were measured: the fixed part stays, the
rest is divided. Example: 2 s fixed and 0.1 s each on 2 cores are, for 1,000 on 16 cores, 2 + 0.1 * 1000 * 2 / 16, that
is 14.5 s.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.charts import Axis as Scale
from bench.charts import Panel, Series, chart
from bench.document import gigabytes, machine, replace_part, seconds, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

EXECUTORS, CORES_OF_AN_EXECUTOR = (1, 4, 16, 64), 4


@dataclass(frozen=True)
class Axis:
    """Something that grows: what is counted, at which sizes, and the size a projection asks for."""

    unit: str
    sizes: tuple[int, ...]
    held: str
    asked: int | None = None


AXES = {
    "partitions": Axis("partitions", (100_000, 300_000, 1_000_000, 3_000_000), "300 brokers, 150 more to come"),
    "brokers": Axis("brokers", (30, 100, 300, 1000), "300,000 partitions, half as many brokers more to come"),
    "clusters": Axis("clusters", (10, 30, 100, 300), "10,000 partitions and 30 brokers each, through Spark", 1000),
    "history": Axis("cluster-days", (1, 3, 10, 30), "24 snapshots of 100,000 replicas, through Spark", 30_000),
}


@dataclass(frozen=True)
class Line:
    """``fixed + each * size`` seconds, and the exponent of growth."""

    fixed: float
    each: float
    exponent: float

    def seconds(self, size: float, *, cores_over_measured: float = 1.0) -> float:
        return self.fixed + self.each * size / cores_over_measured


def fit(sizes: Sequence[float], took: Sequence[float]) -> Line:
    """The line and the exponent that fit best; neither part of the line is below zero."""
    x, y = np.asarray(sizes, dtype=float), np.asarray(took, dtype=float)
    each, fixed = np.polyfit(x, y, 1, w=1 / y)
    if fixed < 0:
        fixed, each = 0.0, float((x / y).sum() / ((x / y) ** 2).sum())
    exponent = np.polyfit(np.log(x), np.log(y), 1)[0]
    return Line(max(float(fixed), 0.0), max(float(each), 0.0), float(exponent))


def render(measured: Mapping[str, Sequence[Mapping[str, Any]]], docs: Path) -> None:
    """Write the generated parts of scaling.md and the charts of each axis."""
    for name, axis in AXES.items():
        points = [point for point in measured.get(name, ()) if not point["reason"]]
        parts = [f"Not measured: {axis.held}."]
        if name in measured:
            parts = [f"{axis.held[0].upper()}{axis.held[1:]}; on {machine()}.", growth_table(axis, measured[name])]
        if len(points) > 1:
            image = f"scaling-{name}.svg"
            (docs / "images" / image).write_text(growth_chart(name, axis, points), encoding="utf-8")
            parts += [f"![Time and memory over {axis.unit}](images/{image})", growth_sentence(axis, line_of(points))]
        replace_part(docs / "scaling.md", name, "\n\n".join(parts))
    replace_part(docs / "scaling.md", "projection", projection(measured))


def took(point: Mapping[str, Any]) -> float:
    """Seconds of the work alone where told, else of the whole process."""
    return float(point["whole_seconds"] if point["seconds"] is None else point["seconds"])


def line_of(points: Sequence[Mapping[str, Any]]) -> Line:
    return fit([point["size"] for point in points], [took(point) for point in points])


def growth_table(axis: Axis, points: Sequence[Mapping[str, Any]]) -> str:
    phases = list(dict.fromkeys(phase for point in points for phase in point["timings"] if phase != "plan"))
    rows = []
    for point in points:
        size = f"{point['size']:,}"
        if point["reason"]:
            rows.append([size, point["reason"], *[""] * (2 + len(phases))])
            continue
        told = [seconds(point["timings"][phase]) if phase in point["timings"] else "" for phase in phases]
        planning = "" if point["seconds"] is None else seconds(point["seconds"])
        rows.append([size, planning, *told, seconds(point["whole_seconds"]), gigabytes(point["peak_bytes"])])
    return table((axis.unit, "planning", *phases, "whole run", "memory"), rows, left=0)


def growth_sentence(axis: Axis, line: Line) -> str:
    return (
        f"Time grows as size to the power {line.exponent:.2f}: about "
        f"{seconds(line.fixed)} fixed and {seconds(line.each * 1000)} for every thousand {axis.unit}."
    )


def growth_chart(name: str, axis: Axis, points: Sequence[Mapping[str, Any]]) -> str:
    sizes = [point["size"] for point in points]
    series = {
        "planning": [(point["size"], took(point)) for point in points],
        "whole run": [(point["size"], point["whole_seconds"]) for point in points],
        "memory": [(point["size"], point["peak_bytes"] / 1e9) for point in points],
    }
    x = Scale(f"{axis.unit} →", min(sizes) * 0.8, max(sizes) * 1.25, logarithmic=True)
    panels = [
        _panel("time", x, "seconds", {key: series[key] for key in ("planning", "whole run")}),
        _panel("memory", x, "GB", {"memory": series["memory"]}),
    ]
    return chart(panels, list(series), f"Time and memory of planning over {name}")


def _panel(title: str, x: Scale, unit: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> Panel:
    values = [value for points in series.values() for _, value in points]
    low, high = 10 ** np.floor(np.log10(min(values))), 10 ** np.ceil(np.log10(max(values) * 1.01))
    lines = [Series(name, points, line=True) for name, points in series.items()]
    return Panel(title, x, Scale(unit, float(low), float(high), logarithmic=True), lines)


def projection(measured: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """What the measured lines say for the sizes asked for, by executors."""
    cores = len(os.sched_getaffinity(0))
    rows = []
    for name, axis in AXES.items():
        points = [point for point in measured.get(name, ()) if not point["reason"]]
        if axis.asked is None or len(points) < 2:
            continue
        line = line_of(points)
        times = [
            line.seconds(axis.asked, cores_over_measured=executors * CORES_OF_AN_EXECUTOR / cores)
            for executors in EXECUTORS
        ]
        constants = [seconds(line.fixed), seconds(line.each * cores)]
        rows.append([f"{axis.asked:,} {axis.unit}", *constants, *map(seconds, times)])
    if not rows:
        return "Not measured."
    executors = [f"{count} executor{'s' * (count > 1)}" for count in EXECUTORS]
    told = table(("work", "fixed", "core-time each", *executors), rows)
    return f"Executors have {CORES_OF_AN_EXECUTOR} cores; the measurement had {cores}.\n\n{told}"
