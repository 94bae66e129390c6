"""The entries of a plan file as rows, by Arrow's JSON reader: a million of them in seconds.

A plan file has one entry on each line, between a first and a last line of its own. A file that is anything else is one
row, which says what is wrong with it. It is read in blocks, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
_FIRST, _LAST, _NONE = b'{"version":1,"partitions":[\n', b"\n]}\n", b'{"version":1,"partitions":[]}\n'
_BLOCK = 4 << 20


def entries_of(blocks: Iterable[bytes]) -> Iterator[pa.Table]:
    """An entry a row, and in ``line`` what is no entry; the file comes in blocks of whole lines."""
    begun, waiting = False, b""
    for block in blocks:
        if not begun and block == _NONE:
            yield _with_line(_ENTRY.empty_table(), None)
            return
        if not begun and not block.startswith(_FIRST):
            yield _unreadable(f"{block[:80].decode(errors='replace')!r} is not how a plan begins and ends")
            return
        some, begun = block if begun else block[len(_FIRST) :], True
        if waiting and len(some) >= len(_LAST):
            yield _entries(waiting.removesuffix(b",\n"), whole=waiting.endswith(b",\n"))
            waiting = some
        else:
            waiting += some  # the last line alone belongs to the entries before it
    yield _entries(waiting.removesuffix(_LAST), whole=waiting.endswith(_LAST))


def _entries(body: bytes, *, whole: bool) -> pa.Table:
    if not whole:
        return _unreadable(f"{body[-80:].decode(errors='replace')!r} is not how a plan begins and ends")
    if not body.startswith(b"{") or body.count(b"},\n{") != body.count(b"\n"):
        return _unreadable("an entry is not on a line of its own, or there is no comma behind it")
    lines = body.replace(b"},\n", b"}\n")
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
