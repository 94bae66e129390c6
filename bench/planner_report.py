"""Tables and charts of a planner benchmark, from the figures of its run."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from bench.charts import Axis, Bar, Panel, Series, chart
from bench.document import gigabytes, machine, replace_part, seconds, table
from bench.goal_score import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Row = Mapping[str, Any]

OURS, BEFORE = "this project", "before"
PEER_GOALS_ROW, KERNEL = "this project, peer's goals", "this project, kernel"
SIZES_PART, GOALS_PART, PLANNERS_PART = "planner", "planner-goals", "planner-chosen"
PARTS = (SIZES_PART, GOALS_PART, PLANNERS_PART)
HEAD = (
    "planner",
    "planning",
    "ratio",
    "whole run",
    "memory",
    "bytes moved",
    "over least",
    "efficiency",
    "disk",
    "replicas",
    "leaders",
    "leaders moved",
    "faults",
)
GOALS_HEAD = (
    "planner",
    "planning",
    "whole run",
    "bytes moved",
    "efficiency",
    *(name.replace("_", " ") for name in NAMES),
    "leaders moved",
    "faults",
)
CHOSEN_HEAD = (
    "planner",
    "planning",
    "on a processor",
    "over kernel",
    "whole run",
    "on a processor",
    "over ours",
    "bytes moved",
    "efficiency",
    "disk",
    "replicas",
    "leaders",
    "leaders moved",
    "faults",
)


def render(run: Mapping[str, Any], docs: Path, part: str = SIZES_PART) -> None:
    """Write a part of benchmarks.md; of that with sizes alone, the charts of each size to images too."""
    names = planners(run["results"])
    parts = [
        f"`python -m bench.planner {run['command']}`, on {machine()}; a planner is stopped after {run['limit']:.0f} s."
    ]
    for (partitions, brokers), rows in groupby(run["results"], key=lambda row: (row["partitions"], row["brokers"])):
        of_size = list(rows)
        parts.append(f"### {partitions:,} partitions on {brokers:,} brokers" + HEADINGS[part])
        drawn = {"balance": balance_panels(of_size), "time": time_panels(of_size, run["limit"])}
        for kind, panels in drawn.items() if part == SIZES_PART else ():
            name = f"planner-{partitions}-{kind}.svg"
            title = TITLES[kind].format(partitions=f"{partitions:,}")
            (docs / "images" / name).write_text(chart(panels, names, title), encoding="utf-8")
            parts.append(f"![{title}](images/{name})")
        for scenario, in_scenario in by_scenario(of_size).items():
            parts.append(f"**{scenario}**")
            head, cells_of = TABLES[part]
            parts.append(table(head, cells_of(in_scenario)))
    replace_part(docs / "benchmarks.md", part, "\n\n".join(parts))


HEADINGS = {SIZES_PART: "", GOALS_PART: ", with rates and capacities", PLANNERS_PART: ", beside Rebalancer"}
TITLES = {
    "balance": "Bytes moved and disk balance reached, {partitions} partitions",
    "time": "Planning time, {partitions} partitions, logarithmic",
}


def by_scenario(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["scenario"], []).append(row)
    return found


def planners(rows: Sequence[Row]) -> list[str]:
    """All that have a time to show, in the order of the run, so that each keeps its colour."""
    return list(dict.fromkeys(row["planner"] for row in rows if has_time(row)))


def has_time(row: Row) -> bool:
    """Whether the planner planned, or was stopped while it did; the time of a failure says nothing."""
    return row["planner"] != BEFORE and (row["figures"] is not None or row["reason"].startswith("stopped"))


def cells(rows: Sequence[Row]) -> list[list[str]]:
    ours = next((planning(row) for row in rows if row["planner"] == OURS and row["figures"]), None)
    return [row_cells(row, ours) for row in rows]


def row_cells(row: Row, ours: float | None) -> list[str]:
    figures = row["figures"]
    if figures is None:
        return [row["planner"], row["reason"], *[""] * (len(HEAD) - 2)]
    took = planning(row)
    moved = [
        f"{figures['bytes_moved_share']:.1%}",
        ratio(figures["bytes_moved"], least_bytes(figures)),
        f"{figures['move_efficiency']:.3f}",
    ]
    measured = ["", "", "", "", *[""] * len(moved)]
    if took is not None:
        times = f"{took / ours:.2f}" if ours else ""
        measured = [seconds(took), times, seconds(row["whole_seconds"]), gigabytes(row["peak_bytes"]), *moved]
    return [
        row["planner"],
        *measured,
        *(f"{figures[f'{what}_over_best']:.3f}" for what in ("bytes", "replicas", "leaders")),
        "" if took is None else f"{figures['leaders_moved']:,}",
        "" if took is None else f"{fault_count(figures):,}",
    ]


def goal_cells(rows: Sequence[Row]) -> list[list[str]]:
    """By goal; what was not there to be measured stays empty."""
    found = []
    for row in rows:
        figures, ran = row["figures"], row["planner"] != BEFORE
        if figures is None:
            found.append([row["planner"], row["reason"], *[""] * (len(GOALS_HEAD) - 2)])
            continue
        cost = ["", "", "", ""]
        if ran:
            cost = [seconds(planning(row) or 0.0), seconds(row["whole_seconds"]), *moved_cells(figures)]
        measures = ["" if figures["goals"][name] is None else f"{figures['goals'][name]:.3f}" for name in NAMES]
        end = [f"{figures['leaders_moved']:,}", f"{fault_count(figures):,}"] if ran else ["", ""]
        found.append([row["planner"], *cost, *measures, *end])
    return found


def chosen_cells(rows: Sequence[Row]) -> list[list[str]]:
    """Times on a processor, and over this project's: the kernel's for planning, the command line's for the whole."""
    by_name = {row["planner"]: row for row in rows if row["figures"]}
    kernel, ours = by_name.get(KERNEL), by_name.get(PEER_GOALS_ROW)
    found = []
    for row in rows:
        figures = row["figures"]
        if figures is None:
            found.append([row["planner"], row["reason"], *[""] * (len(CHOSEN_HEAD) - 2)])
            continue
        balance = [f"{figures['after'][what]['max_over_mean']:.4f}" for what in ("bytes", "replicas", "leaders")]
        if row["planner"] == BEFORE:
            found.append([BEFORE, *[""] * 8, *balance, "", ""])
            continue
        on_processor = row["cpu_seconds"] or planning(row) or 0.0
        times = [
            seconds(planning(row) or 0.0),
            seconds(row["cpu_seconds"]) if row["cpu_seconds"] else "",
            ratio(on_processor, kernel["cpu_seconds"]) if kernel else "",
            seconds(row["whole_seconds"]),
            seconds(row["whole_cpu_seconds"]),
            ratio(row["whole_cpu_seconds"], ours["whole_cpu_seconds"]) if ours else "",
        ]
        end = [f"{figures['leaders_moved']:,}", f"{fault_count(figures):,}"]
        found.append([row["planner"], *times, *moved_cells(figures), *balance, *end])
    return found


def moved_cells(figures: Mapping[str, Any]) -> list[str]:
    return [f"{figures['bytes_moved_share']:.1%}", f"{figures['move_efficiency']:.3f}"]


def fault_count(figures: Mapping[str, Any]) -> int:
    return int(figures["rack_violations"] + sum(figures["errors"].values()))


TABLES = {SIZES_PART: (HEAD, cells), GOALS_PART: (GOALS_HEAD, goal_cells), PLANNERS_PART: (CHOSEN_HEAD, chosen_cells)}


def planning(row: Row) -> float | None:
    """Seconds of planning alone where the planner tells them, else of the whole run."""
    return row["seconds"] if row["seconds"] is not None else row["whole_seconds"]


def least_bytes(figures: Mapping[str, Any]) -> int:
    """What the task itself asks for: to empty the brokers that leave, else to make disks even."""
    return int(figures["mandatory_bytes"] or figures["ideal_bytes"])


def ratio(value: float, least: float) -> str:
    return f"{value / least:.2f}" if least else ""


def balance_panels(rows: Sequence[Row]) -> list[Panel]:
    """Per scenario, how even the disks became over what was moved for it."""
    panels = []
    for scenario, in_scenario in by_scenario(rows).items():
        scored = [row for row in in_scenario if row["figures"]]
        most = [row["figures"]["after"]["bytes"]["max_over_mean"] for row in scored]
        before = next(row["figures"] for row in scored if row["planner"] == BEFORE)
        top = max(1.1, *most)
        panels.append(
            Panel(
                title=scenario,
                x=Axis("bytes moved, % of all →", 0.1, 100, logarithmic=True, unit=" %"),
                y=Axis("disk, max/mean", 1.0, top + (top - 1.0) * 0.15),
                series=[
                    Series(row["planner"], [(100 * row["figures"]["bytes_moved_share"], balance)])
                    for row, balance in zip(scored, most, strict=True)
                    if row["planner"] != BEFORE
                ],
                across=[(before["after"]["bytes"]["max_over_mean"], "before")],
                upright=[(100 * least_bytes(before) / before["bytes_total"], "least")],
            )
        )
    return panels


def time_panels(rows: Sequence[Row], limit: float) -> list[Panel]:
    """Per scenario, the seconds of each planner."""
    panels = []
    for scenario, in_scenario in by_scenario(rows).items():
        bars = [
            Bar(row["planner"], planning(row) or limit, row["reason"] or seconds(planning(row) or 0.0))
            for row in in_scenario
            if has_time(row)
        ]
        least = min((bar.value for bar in bars), default=0.1)
        low = 0.01 if least >= 0.01 else 0.001
        panels.append(Panel(title=scenario, x=Axis("seconds →", low, limit * 1.5, logarithmic=True), bars=bars))
    return panels
