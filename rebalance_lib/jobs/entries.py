"""The entries of a plan file as rows, by Arrow's JSON reader: a million of them in seconds.

A plan file has one entry on each line, between a first and a last line of its own. A file that is anything else is one
row, which says what is wrong with it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

_ENTRY = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
        ("log_dirs", pa.list_(pa.string())),
    ]
)
_FIRST, _LAST, _NONE = '{"version":1,"partitions":[\n', "\n]}\n", '{"version":1,"partitions":[]}\n'
_BLOCK = 4 << 20


def entries_of(text: str) -> pa.Table:
    """An entry a row, and in ``line`` what is no entry."""
    if text == _NONE:
        return _with_line(_ENTRY.empty_table(), None)
    if not text.startswith(_FIRST) or not text.endswith(_LAST):
        return _unreadable(f"{text[:80]!r} is not how a plan begins and ends")
    body = text[len(_FIRST) : -len(_LAST)]
    if not body.startswith("{") or body.count("},\n{") != body.count("\n"):
        return _unreadable("an entry is not on a line of its own, or there is no comma behind it")
    lines = body.replace("},\n", "}\n").encode()
    options = json.ParseOptions(explicit_schema=_ENTRY, unexpected_field_behavior="error")
    try:
        table = json.read_json(pa.BufferReader(lines), json.ReadOptions(block_size=_BLOCK), options)
    except pa.ArrowInvalid as error:
        return _unreadable(str(error))
    needed = [*(table[name] for name in ("topic", "partition", "replicas")), pc.list_flatten(table["replicas"])]
    if any(column.null_count for column in needed) or table.num_rows != lines.count(b"\n") + 1:
        return _unreadable("an entry lacks its topic, its partition or its replicas, or shares its line with another")
    return _with_line(table.select(_ENTRY.names), None)


def _unreadable(why: str) -> pa.Table:
    return _with_line(pa.Table.from_pylist([{}], _ENTRY), why)


def _with_line(table: pa.Table, line: str | None) -> pa.Table:
    return table.append_column("line", pa.repeat(pa.scalar(line, pa.string()), table.num_rows))
