"""JSON for machines and for people: two spaces for each level, keys in order.

Python's encoder is written in C but for indentation, where it is some ten times slower. Its separators may be any text,
though: an object or a list that holds nothing but plain values is written by it at once, with the end of the line and
the indentation as part of the comma. Only what is above such ones is put together here.

Example: of ``{"a": [1, 2]}``, the list is written with ",", the end of a line and four spaces between its values.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any


def indented(value: Any, level: int = 0) -> str:
    """What ``json.dumps(value, indent=2, sort_keys=True)`` gives."""
    if not _holds_something(value):
        return _encoder(level).encode(value)
    inner, outer = "\n" + "  " * (level + 1), "\n" + "  " * level
    if not any(map(_holds_something, value.values() if isinstance(value, dict) else value)):
        text = _encoder(level + 1).encode(value)
        return f"{text[0]}{inner}{text[1:-1]}{outer}{text[-1]}"
    if isinstance(value, dict):
        lines = [f"{_key(key)}: {indented(one, level + 1)}" for key, one in sorted(value.items())]
        return f"{{{inner}{f',{inner}'.join(lines)}{outer}}}"
    return f"[{inner}{f',{inner}'.join(indented(one, level + 1) for one in value)}{outer}]"


def _holds_something(value: Any) -> bool:
    return isinstance(value, dict | list | tuple) and bool(value)


@cache
def _encoder(level: int) -> json.JSONEncoder:
    return json.JSONEncoder(sort_keys=True, separators=(",\n" + "  " * level, ": "))


def _key(key: object) -> str:
    """A key as it is written: numbers too are texts there."""
    return json.dumps({key: None})[1 : -len(": null}")]
