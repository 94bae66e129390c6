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

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import json as arrow_json

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.plan.entry_json import entry_texts
from rebalance_lib.plan.faults import shown
from rebalance_lib.plan.plan import PLAN_SCHEMA, Plan

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 1
_INT32 = range(-(2**31), 2**31)
_REQUIRED = ("topic", "partition", "replicas")
_DOCUMENT = pa.schema(
    [pa.field("version", pa.int32()), pa.field("partitions", pa.list_(pa.struct(list(PLAN_SCHEMA))))]
)
_LARGEST_BLOCK = 2**31 - 2
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
    if not len(plan):
        return '{"version":1,"partitions":[]}\n'
    body = ",\n".join(",\n".join(texts) for texts in entry_texts(plan.entries))
    return f'{{"version":1,"partitions":[\n{body}\n]}}\n'


def load_document(text: str, *, keys: Iterable[str]) -> dict[str, Any]:
    """A JSON object of version 1 with exactly these keys beside the version."""
    document = _load_json(text)
    if type(document) is not dict:
        message = f'the document is {shown(document)}, not a JSON object; start it with {{"version":1, ...}}'
        raise PlanFormatError(message)
    _check_keys("the document", document, required=("version", *keys))
    version = document["version"]
    if type(version) is not int or version != VERSION:
        raise PlanFormatError(
            f'version is {shown(version)}, the only one that Kafka reads is 1; write "version":1'
        )
    return document


def decoded(text: str | bytes) -> str:
    """The text of a file, which must be UTF-8."""
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8; save the file as UTF-8 without a byte order mark"
        raise PlanFormatError(message) from error


def _read_columns(text: str) -> pa.Table | None:
    """The entries, read by Arrow, or None if anything about the text is out of the ordinary.

    Arrow cannot tell a null from a missing key, and crashes on a document that is nothing but null: a text
    that may have one is left to the other reader, as is all that does not look like one object.
    """
    content = text.strip()
    if not (content.startswith("{") and content.endswith("}")) or (
        "null" in content and _NULL.search(content)
    ):
        return None
    try:
        data = content.encode("utf-8")
        if len(data) > _LARGEST_BLOCK:
            return None
        documents = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=_DOCUMENT, newlines_in_values=True, unexpected_field_behavior="error"
            ),
        )
    except (pa.ArrowException, UnicodeEncodeError):
        return None
    if documents.num_rows != 1 or documents["version"][0].as_py() != VERSION:
        return None
    entries = documents["partitions"].combine_chunks()
    if entries.null_count:
        return None
    table = pa.Table.from_struct_array(entries.flatten())
    return None if any(table[name].null_count for name in _REQUIRED) else table


def _read_entries(text: str) -> pa.Table:
    """The entries, read one by one; raises for the first that is not in the form of an entry."""
    entries = load_document(text, keys=("partitions",))["partitions"]
    if type(entries) is not list:
        raise PlanFormatError(
            f'partitions is {shown(entries)}, not a list; list the entries in it: "partitions":[...]'
        )
    for number, entry in enumerate(entries):
        _check_form(number, entry)
    columns = [pa.array([entry.get(field.name) for entry in entries], field.type) for field in PLAN_SCHEMA]
    return pa.table(columns, names=PLAN_SCHEMA.names)


def _load_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        hint = "give the JSON alone"
        if "replica assignment" in text or "reassignment configuration" in text:
            hint = (
                "this looks like all that --generate printed; keep only the JSON line of one of its two parts"
            )
        message = f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}; {hint}"
        raise PlanFormatError(message) from error
    except (RecursionError, ValueError) as error:
        raise PlanFormatError(
            f"not JSON that Kafka reads: {error}; give a reassignment JSON of version 1"
        ) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise PlanFormatError(
            f"the key {shown(again)} is twice in the object {shown(found)}; keep one of the two"
        )
    return found


def _no_constant(name: str) -> Any:
    raise PlanFormatError(f"{name} is no JSON; give a number")


def _check_keys(
    where: str, found: dict[str, Any], *, required: Iterable[str], optional: Iterable[str] = ()
) -> None:
    for key in required:
        if key not in found:
            raise PlanFormatError(f"{where} has no {key}: {shown(found)}; add it")
    known = (*required, *optional)
    for key, value in found.items():
        if key not in known:
            message = f"{where} has the key {shown(key)} with {shown(value)}, which Kafka would ignore"
            raise PlanFormatError(f"{message}; remove it, or use one of {', '.join(known)}")


def _check_form(number: int, entry: Any) -> None:
    where = f"entry {number}"
    if type(entry) is not dict:
        form = '{"topic":..., "partition":..., "replicas":[...]}'
        raise PlanFormatError(f"{where} is {shown(entry)}, not an object; write {form}")
    if "topic" in entry and "partition" in entry:
        where += f" ({entry['topic']}-{entry['partition']})"
    _check_keys(where, entry, required=_REQUIRED, optional=("log_dirs",))
    _check_text(where, "topic", entry["topic"])
    _check_int32(where, "partition", entry["partition"])
    for name, check in (("replicas", _check_int32), ("log_dirs", _check_text)):
        values = entry.get(name, [])
        if type(values) is not list:
            raise PlanFormatError(f'{where}: {name} is {shown(values)}, not a list; write "{name}":[...]')
        for place, value in enumerate(values):
            check(where, f"{name}[{place}]", value)


def _check_text(where: str, field: str, value: Any) -> None:
    if type(value) is not str:
        raise PlanFormatError(f"{where}: {field} is {shown(value)}, not a string; write it in double quotes")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise PlanFormatError(
            f"{where}: {field} is {shown(value)}, half of a surrogate pair; write the character"
        )


def _check_int32(where: str, field: str, value: Any) -> None:
    # A bool is an int to Python, and 1.0 equals 1, but neither is an integer to Kafka.
    if type(value) is not int or value not in _INT32:
        raise PlanFormatError(
            f"{where}: {field} is {shown(value)}, not an integer of 32 bits; write such a number"
        )
