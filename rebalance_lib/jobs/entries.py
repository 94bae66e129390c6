"""The entries of a plan file as rows, by Arrow's JSON reader: a million of them in seconds, some at a time.

A plan file has one entry on each line, between a first and a last line of its own. A file that is anything else is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from rebalance_lib.errors import InvalidInputError

ENTRY = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
        ("log_dirs", pa.list_(pa.string())),
    ]
)
_FIRST, _LAST, _NONE = b'{"version":1,"partitions":[\n', b"\n]}\n", b'{"version":1,"partitions":[]}\n'
_BLOCK = 4 << 20


def entries_of(pieces: Iterable[bytes]) -> Iterator[pa.Table]:
    """An entry a row, of a file that comes in pieces.

    Raises:
        InvalidInputError: The file is no plan.
    """
    begun, waiting = False, b""
    for piece in pieces:
        waiting += piece
        if not begun and len(waiting) >= len(_NONE):
            if waiting == _NONE:
                break
            if not waiting.startswith(_FIRST):
                raise InvalidInputError(f"{waiting[:80]!r} is not how a plan begins")
            begun, waiting = True, waiting[len(_FIRST) :]
        end = waiting.rfind(b"},\n{") + 3
        if begun and end > _BLOCK:
            yield _table(waiting[: end - 2] + b"\n")
            waiting = waiting[end:]
    if not begun and waiting == _NONE:
        return
    if not begun or not waiting.endswith(_LAST):
        raise InvalidInputError(f"{waiting[-80:]!r} is not how a plan begins or ends")
    yield _table(waiting[: -len(_LAST)] + b"\n")


def _table(lines: bytes) -> pa.Table:
    """The entries of some lines, with commas between them."""
    count = lines.count(b"\n")
    if not lines.startswith(b"{") or lines.count(b"},\n{") != count - 1:
        raise InvalidInputError("an entry is not on a line of its own, or there is no comma behind it")
    options = json.ParseOptions(explicit_schema=ENTRY, unexpected_field_behavior="error")
    try:
        body = pa.BufferReader(lines.replace(b"},\n", b"}\n"))
        table = json.read_json(body, json.ReadOptions(use_threads=False, block_size=_BLOCK), options)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(str(error)) from error
    needed = [*(table[name] for name in ("topic", "partition", "replicas")), pc.list_flatten(table["replicas"])]
    if any(column.null_count for column in needed) or table.num_rows != count:
        raise InvalidInputError(
            "an entry lacks its topic, its partition or its replicas, or shares its line with another"
        )
    return table.select(ENTRY.names)
