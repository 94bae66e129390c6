"""What ``kafka-rebalance plan`` prints in the end: candidates, brokers, files, and what to type next."""

from __future__ import annotations

from typing import Any

from rebalance_lib.cli.output import Output
from rebalance_lib.report import broker_table, changed_most
from rebalance_lib.report.durations import human_seconds
from rebalance_lib.report.factors import factor_lines
from rebalance_lib.report.finish import finish, name_log_dir
from rebalance_lib.report.loads import loads_lines
from rebalance_lib.report.units import human_bytes

BROKERS_SHOWN = 10
COLUMNS = ("candidate", "bytes", "takes", "replicas", "leaders", "fullest broker", "times the least")


def show_result(output: Output, summary: dict[str, Any], out: str) -> None:
    """A plan's summary on a terminal, each figure once."""
    place = out.rstrip("/")
    output.say("\n".join([headline(summary), *factor_lines(summary)]))
    candidates = sorted(summary["candidates"].items(), key=lambda item: -item[1]["figures"]["bytes_moved"])
    rows = [_row(name, one, name == summary["recommended"]) for name, one in candidates]
    output.table("\nCandidates; the fullest broker is a multiple of its share of all bytes, 1 is even", COLUMNS, rows)
    brokers = changed_most(summary["brokers"], BROKERS_SHOWN)
    every = len(summary["brokers"])
    which = "Brokers" if len(brokers) == every else f"The {len(brokers)} brokers that change most, of {every}"
    output.show(broker_table(brokers, which))
    for remark in summary["remarks"]:
        output.say(remark)
    for risk in summary["candidates"][summary["recommended"]]["risks"]:
        output.say(f"Risk: {risk}")
    if kept := summary["candidates"][summary["recommended"]]["figures"]["partitions_kept"]:
        output.say(f"Racks: {kept} partitions stay as they are; striped, they would be in fewer, or crowd one.")
    for line in loads_lines(summary):
        output.say(line)
    if (forecast := summary["forecast"]) and forecast["partitions"]:
        output.say(forecast_line(forecast, summary["pace"]))
    if (groups := summary["candidates"][summary["recommended"]]["groups"]) and groups["touched"]:
        output.say(group_line(groups))
    output.say(f"Files: {place}/plan.json is the recommended plan, {place}/review.md is for its reviewer.")
    output.say(f"Next: {next_step(summary, place)}")


def forecast_line(forecast: dict[str, Any], pace: dict[str, Any]) -> str:
    """When the recommended plan finishes, and whether log dirs overflow."""
    full = [name_log_dir(one["path"], one["broker"]) for one in forecast["log_dirs"] if one["overflows"]]
    overflow = f"; disks would overflow: {', '.join(full)}" if full else ""
    hint = "" if pace["throttle"] else ", with --throttle for one that counts with it"
    return f"Forecast: {finish(forecast, pace)}{overflow}; the review has its waves{hint}."


def group_line(groups: dict[str, Any]) -> str:
    """What the recommended plan does to consumer groups."""
    doing = [f"leaders change for {groups['leaders_change']}"] if groups["leaders_change"] else []
    if groups["rebalance"]:
        doing.append(f"{groups['rebalance']} rebalance, and {groups['change_hands']} partitions change hands")
    if groups["racks_change"]:
        doing.append(f"partitions of {groups['racks_change']} come to other racks than their members'")
    return f"Consumer groups: {groups['touched']} of {groups['read']} are touched; {'; '.join(doing)}."


def headline(summary: dict[str, Any]) -> str:
    """The plan in one or two sentences."""
    if not summary["partitions_changed"]:
        return f"Mode {summary['mode']}: nothing to do: no change would bring the cluster nearer to its goals"
    if summary["mode"] == "partitions":
        return f"Mode partitions: {summary['partitions_changed']} new partitions are placed, no other changes"
    text = (
        f"Mode {summary['mode']}: {summary['partitions_changed']} of {summary['partitions']} partitions change, "
        f"{summary['replicas_moved']} replicas ({human_bytes(summary['bytes_moved'])}) are copied, "
        f"{summary['leaders_moved']} preferred leaders change"
    )
    if summary["bytes_moved"] and summary["least_bytes"] and summary["bytes_over_least"] < 100:
        over = summary["bytes_over_least"]
        text += f"\nThis moves {over:.3f} times the least that any plan with these loads must move"
    return text


def next_step(summary: dict[str, Any], place: str) -> str:
    """What to type, or that there is nothing to."""
    if not summary["partitions_changed"]:
        return "nothing, the plan is empty"
    if summary["mode"] == "partitions":
        return f"add them with the replicas that {place}/plan.json lists, see kafka-rebalance add-partitions --help"
    return (
        "kafka-rebalance run --bootstrap-server HOST:9092 "
        f"--reassignment-json-file {place}/plan.json --throttle {_throttle(summary)}"
    )


def _throttle(summary: dict[str, Any]) -> int | str:
    """The one that the forecast counts with, or the least at which the plan finishes; else the reader has to choose."""
    least = ((summary["forecast"] or {}).get("never") or {}).get("least_throttle")
    return least or summary["pace"]["throttle"] or "BYTES_PER_SECOND"


def _row(name: str, candidate: dict[str, Any], recommended: bool) -> tuple[str, ...]:
    figures = candidate["figures"]
    fullest = f"{figures['bytes_before']['most']:.3f} → {figures['bytes_after']['most']:.3f}"
    return (
        f"{name} (recommended)" if recommended else name,
        human_bytes(figures["bytes_moved"]),
        human_seconds(candidate["seconds"]),
        str(figures["replicas_moved"]),
        str(figures["leaders_moved"]),
        fullest,
        f"{figures['bytes_over_least']:.3f}",
    )
