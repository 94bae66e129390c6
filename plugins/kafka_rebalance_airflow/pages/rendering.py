"""Templates become pages, in the look of the report, escaped, and under a policy that lets in nothing from outside."""

from __future__ import annotations

import secrets
from functools import cache
from typing import TYPE_CHECKING, Any

from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from kafka_rebalance_airflow.pages.run_status import share
from rebalance_lib import __version__
from rebalance_lib.report.durations import human_seconds
from rebalance_lib.report.summary import BROKERS_SHOWN
from rebalance_lib.report.units import figure, human_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request


def page(request: Request, template: str, values: Mapping[str, Any], status_code: int = 200) -> HTMLResponse:
    """A page; what it carries of style and script is marked by a number used once, and the browser takes no other."""
    nonce = secrets.token_urlsafe(16)
    root = request.scope["root_path"].rstrip("/")  # Airflow may live below a path of its own
    html = _environment().get_template(template).render(nonce=nonce, root=root, version=__version__, **values)
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
    headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return HTMLResponse(html, status_code, headers)


def fragment(template: str, **values: Any) -> str:
    """A part of a page."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("kafka_rebalance_airflow.pages"), PackageLoader("rebalance_lib.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["bytes"] = human_bytes
    environment.filters["duration"] = human_seconds
    environment.filters["figure"] = figure
    environment.filters["share"] = share
    environment.filters["behind"] = behind
    environment.filters["moment"] = moment
    return environment


def behind(brokers: Mapping[str, dict[str, Any]], count: int = BROKERS_SHOWN) -> dict[str, dict[str, Any]]:
    """Of many brokers those that lack the most bytes, in their order."""
    lacking = sorted(brokers, key=lambda name: brokers[name]["copied"] - brokers[name]["to_copy"])[:count]
    return {name: brokers[name] for name in sorted(lacking, key=int)}


def moment(at: str | None) -> str:
    """A time to the second, as people read it: ``2026-11-16 20:15:30 UTC``."""
    if not at:
        return "-"
    day, _, time = str(at).partition("T")
    return f"{day} {time[:8]} UTC" if time.endswith(("+00:00", "Z")) else f"{day} {time}".strip()
