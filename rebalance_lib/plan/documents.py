"""What the two JSON documents of kafka-reassign-partitions have in common: how to read them without leniency.

Both are objects of version 1 with one list in them. Kafka's tool takes a document without its version,
ignores keys that it does not know and, of a key that is given twice, takes the last. Each of these hides a
mistake of the person who wrote the file, so here each is an error that says where it is.

Example: ``{"version":1,"topic":[]}``, read as a document with ``topics``, is refused because it has no
topics.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.topology.naming import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 1
_INT32 = range(-(2**31), 2**31)


def decoded(text: str | bytes) -> str:
    """The text of a file, which must be UTF-8."""
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8; save the file as UTF-8 without a byte order mark"
        raise PlanFormatError(message) from error


def load_document(text: str, *, keys: Iterable[str]) -> dict[str, Any]:
    """A JSON object of version 1 with exactly these keys beside the version."""
    document = _load_json(text)
    if type(document) is not dict:
        message = f'the document is {shown(document)}, not a JSON object; start it with {{"version":1, ...}}'
        raise PlanFormatError(message)
    check_keys("the document", document, required=("version", *keys))
    version = document["version"]
    if type(version) is not int or version != VERSION:
        raise PlanFormatError(f'version is {shown(version)}, the only one that Kafka reads is 1; write "version":1')
    return document


def _load_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        hint = "give the JSON alone"
        if "replica assignment" in text or "reassignment configuration" in text:
            hint = "this looks like all that --generate printed; keep only the JSON line of one part"
        message = f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}; {hint}"
        raise PlanFormatError(message) from error
    except (RecursionError, ValueError) as error:
        raise PlanFormatError(f"not JSON that Kafka reads: {error}; give a document that Kafka's tool reads") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise PlanFormatError(f"the key {shown(again)} is twice in the object {shown(found)}; keep one of the two")
    return found


def check_keys(where: str, found: dict[str, Any], *, required: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Refuse an object that lacks a required key or has one that is not known."""
    for key in required:
        if key not in found:
            raise PlanFormatError(f"{where} has no {key}: {shown(found)}; add it")
    known = (*required, *optional)
    for key, value in found.items():
        if key not in known:
            message = f"{where} has the key {shown(key)} with {shown(value)}, which Kafka would ignore"
            raise PlanFormatError(f"{message}; remove it, or use one of {', '.join(known)}")


def check_text(where: str, field: str, value: Any) -> None:
    """Refuse what is not a string of whole characters."""
    if type(value) is not str:
        raise PlanFormatError(f"{where}: {field} is {shown(value)}, not a string; write it in double quotes")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise PlanFormatError(f"{where}: {field} is {shown(value)}, half of a surrogate pair; write the character")


def check_int32(where: str, field: str, value: Any) -> None:
    """Refuse what is not an integer to Kafka."""
    # A bool is an int to Python, and 1.0 equals 1, but neither is an integer to Kafka.
    if type(value) is not int or value not in _INT32:
        raise PlanFormatError(f"{where}: {field} is {shown(value)}, not an integer of 32 bits; write such a number")
