"""Kafka's reassignment JSON, version 1, in and out.

The document that kafka-reassign-partitions reads and prints::

    {"version":1,"partitions":[
    {"topic":"foo","partition":0,"replicas":[1,2]},
    {"topic":"foo","partition":1,"replicas":[2,3],"log_dirs":["/data/a","any"]}
    ]}

Reading is strict, since what is read here is what a cluster will be changed to. All that Kafka's tool
prints is accepted. Some that it lets pass is not: a document without its version or partitions, a key that
it does not know (it drops them without a word, so that a misspelt ``log_dirs`` moves nothing), a key given
twice, a name that no topic can have, a negative number, a log dir that is no absolute path. Every error
names the entry, the field and the value.

There are two readers. Arrow's reads a million entries within a second or so, and is only believed when it
found nothing odd at all; whatever it does not take, the second one reads entry by entry, and either accepts
it or says why not.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.plan.columns import one_chunk
from rebalance_lib.plan.digest import digest_of_texts
from rebalance_lib.plan.documents import VERSION, check_int32, check_keys, check_text, decoded, load_document
from rebalance_lib.plan.entry_json import entry_texts
from rebalance_lib.plan.plan import PLAN_SCHEMA, Plan
from rebalance_lib.topology.naming import partition_name, shown

_REQUIRED = ("topic", "partition", "replicas")
_DOCUMENT = pa.schema([pa.field("version", pa.int32()), pa.field("partitions", pa.list_(pa.struct(list(PLAN_SCHEMA))))])
# Topics may have null in their names: only the word outside of a name or a path counts.
_NULL = re.compile(r'(?<![a-zA-Z0-9._/"-])null')


def parse_plan(text: str | bytes) -> Plan:
    """Read a reassignment JSON; raises PlanFormatError, naming the entry, for anything that is not one."""
    content = decoded(text)
    table = _read_columns(content)
    if table is None:
        table = _read_entries(content)
    return Plan.from_table(table)


def format_plan(plan: Plan) -> str:
    """Print a plan as Kafka's tool reads it, an entry a line, so that any diff can compare two."""
    pieces: list[str] = []
    digest = write_plan([plan.entries], pieces.append)
    plan.__dict__.setdefault("digest", digest)  # to write the entries once more for it would take longer
    return "".join(pieces)


def write_plan(entries: Iterable[pa.Table], write: Callable[[str], object]) -> str:
    """Write a plan as `format_plan` prints it, from its entries in order, some at a time; returns its digest."""
    begun = False

    def written() -> Iterator[str]:
        nonlocal begun
        for text in (text for some in entries for text in entry_texts(some, ",\n")):
            write(",\n" if begun else '{"version":1,"partitions":[\n')
            write(text)
            begun = True
            yield text

    digest = digest_of_texts(written())
    write("\n]}\n" if begun else '{"version":1,"partitions":[]}\n')
    return digest


def _read_columns(text: str) -> pa.Table | None:
    """The entries, read by Arrow, or None if anything about the text is out of the ordinary.

    Arrow cannot tell a null from a missing key, and crashes on a document that is nothing but null: a text
    that may have one is left to the other reader, as is all that does not look like one object.
    """
    content = text.strip(" \t\r\n")
    looks_like_one = content.startswith("{") and content.endswith("}")
    if not looks_like_one or ("null" in content and _NULL.search(content)):
        return None
    try:
        documents = _arrow_documents(content.encode("utf-8"))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    if documents.num_rows != 1 or documents["version"][0].as_py() != VERSION:
        return None
    lists = one_chunk(documents["partitions"])
    entries = pa.Table.from_struct_array(lists.flatten())
    has_nulls = lists.null_count or any(entries[name].null_count for name in _REQUIRED)
    return None if has_nulls else entries


def _arrow_documents(data: bytes) -> pa.Table:
    """Each JSON object in the data as a row; all of it is one block, since Arrow cannot split an object."""
    return arrow_json.read_json(
        io.BytesIO(data),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=_DOCUMENT, newlines_in_values=True, unexpected_field_behavior="error"
        ),
    )


def _read_entries(text: str) -> pa.Table:
    """The entries, read one by one; raises for the first that is not in the form of an entry."""
    entries = load_document(text, keys=("partitions",))["partitions"]
    if type(entries) is not list:
        raise PlanFormatError(f'partitions is {shown(entries)}, not a list; list the entries in it: "partitions":[...]')
    for number, entry in enumerate(entries):
        _check_form(number, entry)
    columns = [pa.array([entry.get(field.name) for entry in entries], field.type) for field in PLAN_SCHEMA]
    return pa.table(columns, names=PLAN_SCHEMA.names)


def _check_form(number: int, entry: Any) -> None:
    where = f"entry {number}"
    if type(entry) is not dict:
        form = '{"topic":..., "partition":..., "replicas":[...]}'
        raise PlanFormatError(f"{where} is {shown(entry)}, not an object; write {form}")
    if "topic" in entry and "partition" in entry:
        where += f" ({partition_name(entry['topic'], entry['partition'])})"
    check_keys(where, entry, required=_REQUIRED, optional=("log_dirs",))
    check_text(where, "topic", entry["topic"])
    check_int32(where, "partition", entry["partition"])
    for name, check in (("replicas", check_int32), ("log_dirs", check_text)):
        values = entry.get(name, [])
        if type(values) is not list:
            raise PlanFormatError(f'{where}: {name} is {shown(values)}, not a list; write "{name}":[...]')
        for place, value in enumerate(values):
            check(where, f"{name}[{place}]", value)
