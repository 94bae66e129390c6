"""The review's Markdown and the run's page, from templates beside this file."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape

from rebalance_lib import __version__
from rebalance_lib.report.durations import human_seconds
from rebalance_lib.report.factors import factor_lines
from rebalance_lib.report.finish import finish
from rebalance_lib.report.loads import loads_lines
from rebalance_lib.report.summary import changed_most
from rebalance_lib.report.units import figure, human_bytes
from rebalance_lib.topology.naming import printable

LOG_DIRS_SHOWN = 10


def render_review(summary: dict[str, Any], page: str = "") -> str:
    """What the person who approves the plan reads, in GitHub-flavoured Markdown.

    Args:
        summary: What ``summary.json`` holds.
        page: The address of the plan's page; empty if it has none.
    """
    shown = changed_most(summary["brokers"])
    fullest = fullest_log_dirs(summary["forecast"]["log_dirs"]) if summary.get("forecast") else []
    lines = {"loads": loads_lines(summary, _code), "factors": factor_lines(summary)}
    ends = finish(summary["forecast"], summary["pace"]) if summary.get("forecast") else ""
    return template("review.md.j2").render(
        plan=summary, brokers=shown, fullest=fullest, finish=ends, page=page, **lines
    )


def render_report(summary: dict[str, Any], outcome: dict[str, Any]) -> str:
    """The page of a run: what was planned, by whom it was approved, and what the cluster holds now."""
    largest = _largest(outcome["brokers"])
    return template("report.html.j2").render(plan=summary, outcome=outcome, largest=largest, version=__version__)


def fullest_log_dirs(log_dirs: list[dict[str, Any]], count: int = LOG_DIRS_SHOWN) -> list[dict[str, Any]]:
    """Of the log dirs that change, those that get fullest: by part of their disk, by bytes if that is not known."""
    changing = [one for one in log_dirs if {one["bytes_peak"], one["bytes_after"]} != {one["bytes_before"]}]
    changing.sort(key=lambda one: (one["overflows"], one["fill"] or 0.0, one["bytes_peak"]), reverse=True)
    return changing[:count]


def _largest(brokers: list[dict[str, Any]]) -> dict[str, int]:
    """The largest value of each figure over brokers, before and after, so that bars share one scale."""
    return {
        key: max((broker[when][key] for broker in brokers for when in ("before", "after")), default=0)
        for key in ("bytes", "replicas", "leaders")
    }


def _code(text: str) -> str:
    """What any client can choose, as Markdown that is shown and not obeyed, in a table too."""
    return "`" + printable(text).replace("`", "'").replace("|", "\\|") + "`"


def _plain(text: str) -> str:
    """A sentence with words of a user's in it, as Markdown that is shown and not obeyed."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", printable(text))


def template(name: str) -> Template:
    """A template beside this file; HTML is escaped."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rebalance_lib.report"),
        autoescape=select_autoescape(["html", "html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["bytes"] = human_bytes
    environment.filters["duration"] = human_seconds
    environment.filters["figure"] = figure
    environment.filters["code"] = _code
    environment.filters["plain"] = _plain
    return environment
