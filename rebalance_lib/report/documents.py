"""The review's Markdown and the run's page, from templates beside this file."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from rebalance_lib import __version__
from rebalance_lib.report.units import human_bytes


def render_review(summary: dict[str, Any]) -> str:
    """What the person who approves the plan reads, in GitHub-flavoured Markdown."""
    return _environment().get_template("review.md.j2").render(plan=summary)


def render_report(summary: dict[str, Any], outcome: dict[str, Any]) -> str:
    """The page of a run: what was planned, by whom it was approved, and what the cluster holds now."""
    template = _environment().get_template("report.html.j2")
    largest = _largest(outcome["brokers"])
    return template.render(plan=summary, outcome=outcome, largest=largest, version=__version__)


def _largest(brokers: list[dict[str, Any]]) -> dict[str, int]:
    """The largest value of each figure over brokers, before and after, so that bars share one scale."""
    return {
        key: max((broker[when][key] for broker in brokers for when in ("before", "after")), default=0)
        for key in ("bytes", "replicas", "leaders")
    }


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
    return environment
