"""The kinds of fields that a form has, and the sections that they are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

WHAT, HOW, REVIEW = "What", "How", "Review"


def lines(title: str, description: str, section: str | None = None) -> Param:
    """A list, one entry per line."""
    return Param([], type=["array", "null"], title=title, description=description, section=section)


def number(
    title: str, description: str, *, default: float | None = None, section: str | None = None, **schema: Any
) -> Param:
    """A number of 0 or more, or nothing; whole, unless its default or its maximum is not."""
    whole = not isinstance(schema.get("maximum", default), float)
    kind = ["integer" if whole else "number", "null"]
    return Param(default, type=kind, title=title, description=description, section=section, minimum=0, **schema)


def choice(title: str, description: str, options: Mapping[str, str], section: str | None = None) -> Param:
    """One of some options; the first is the default."""
    default = next(iter(options))
    return Param(
        default,
        type="string",
        enum=list(options),
        values_display=dict(options),
        title=title,
        description=description,
        section=section,
    )


def flag(title: str, description: str, *, default: bool, section: str | None = None) -> Param:
    """Yes or no."""
    return Param(default, type="boolean", title=title, description=description, section=section)
