"""What templates render: an object in a template field comes as JSON, since templates make text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_object(value: Mapping[str, Any] | str) -> dict[str, Any]:
    """An object as it is, or from its JSON.

    Raises:
        ValueError: It is neither.
    """
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
        raise ValueError(f"this is no object: {str(value)[:100]!r}; give one, or JSON made with the filter tojson")
    return dict(found)


def as_list(value: list[str] | str) -> list[str]:
    """Several texts as they are, or from their JSON, or one alone."""
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("[") else [value]
    return [str(one) for one in value]
