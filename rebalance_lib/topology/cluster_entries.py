"""A cluster's JSON read entry by entry: slower than by columns, and able to say what is wrong with which entry."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import isnan
from typing import Any

import pyarrow as pa

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology.cluster_faults import CLUSTER_SCHEMA, REMARKS
from rebalance_lib.topology.loads import RATES
from rebalance_lib.topology.naming import partition_name, shown
from rebalance_lib.topology.snapshot import CAPACITY

_INT32, _INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
_LISTS = ("targets", "add", "remove")
_CAPACITIES = tuple(field.name for field in CAPACITY)


def read_entries(data: bytes) -> pa.Table:
    """The document as one row in the schema of clusters; raises InvalidInputError for the first entry out of form."""
    document = _load(data)
    if type(document) is not dict:
        raise InvalidInputError(f'the file is {shown(document)}, not a JSON object; write {{"brokers": [...], ...}}')
    _check_keys("the file", document, ("brokers", "partitions"), (*_LISTS, *REMARKS))
    for number, broker in enumerate(_listed("the file", "brokers", document["brokers"])):
        _check_broker(f"broker entry {number}", broker)
    for name in _LISTS:
        if document.get(name) is not None:
            _check_whole_numbers("the file", name, document[name])
    for number, entry in enumerate(_listed("the file", "partitions", document["partitions"])):
        _check_partition(f"partition entry {number}", entry)
    columns = [pa.array([document.get(field.name)], field.type) for field in CLUSTER_SCHEMA]
    return pa.table(columns, schema=CLUSTER_SCHEMA)


def _load(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInputError(f"not JSON: {error.msg} at {where}; give one JSON object") from error
    except (RecursionError, ValueError) as error:
        raise InvalidInputError(f"not JSON of a cluster: {error}; give one JSON object") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise InvalidInputError(f"the key {shown(again)} is twice in the object {shown(found)}; keep one of the two")
    return found


def _check_broker(where: str, broker: Any) -> None:
    if type(broker) is not dict:
        raise InvalidInputError(f'{where} is {shown(broker)}, not an object; write {{"id": ..., "rack": ...}}')
    _check_keys(where, broker, ("id",), ("rack", "capacity", "broker_set", "cordoned"))
    _check_whole_number(where, "id", broker["id"], _INT32)
    for name in ("rack", "broker_set"):
        if broker.get(name) is not None:
            _check_text(where, name, broker[name])
    if broker.get("cordoned") is not None and type(broker["cordoned"]) is not bool:
        raise InvalidInputError(f"{where}: cordoned is {shown(broker['cordoned'])}: write true or false")
    if broker.get("capacity") is not None:
        _check_capacity(where, broker["capacity"])


def _check_capacity(where: str, capacity: Any) -> None:
    if type(capacity) is not dict:
        form = "{" + ", ".join(f'"{name}": ...' for name in _CAPACITIES) + "}"
        raise InvalidInputError(f"{where}: capacity is {shown(capacity)}, not an object; write {form}")
    _check_keys(f"{where}: capacity", capacity, (), _CAPACITIES)
    if capacity.get("disk") is not None:
        _check_whole_number(where, "capacity.disk", capacity["disk"], _INT64)
    for name in _CAPACITIES[1:]:
        if capacity.get(name) is not None:
            capacity[name] = _number(where, f"capacity.{name}", capacity[name])


def _check_partition(where: str, entry: Any) -> None:
    if type(entry) is not dict:
        form = '{"topic": ..., "partition": ..., "replicas": [...], "size": ...}'
        raise InvalidInputError(f"{where} is {shown(entry)}, not an object; write {form}")
    if "topic" in entry and "partition" in entry:
        where += f" ({partition_name(entry['topic'], entry['partition'])})"
    _check_keys(where, entry, ("topic", "partition", "replicas", "size"), (*RATES, "leader"))
    _check_text(where, "topic", entry["topic"])
    _check_whole_number(where, "partition", entry["partition"], _INT32)
    _check_whole_numbers(where, "replicas", entry["replicas"])
    _check_whole_number(where, "size", entry["size"], _INT64)
    for name in RATES:
        if entry.get(name) is not None:
            entry[name] = _number(where, name, entry[name])
    if entry.get("leader") is not None:
        _check_whole_number(where, "leader", entry["leader"], _INT32)


def _check_keys(where: str, found: dict[str, Any], required: Iterable[str], optional: Iterable[str]) -> None:
    for key in required:
        if key not in found:
            raise InvalidInputError(f"{where} has no {key}: {shown(found)}; add it")
    known = (*required, *optional)
    for key in found:
        if key not in known:
            raise InvalidInputError(f"{where} has the key {shown(key)}; remove it, or use one of {', '.join(known)}")


def _listed(where: str, name: str, values: Any) -> list[Any]:
    if type(values) is not list:
        raise InvalidInputError(f'{where}: {name} is {shown(values)}, not a list; write "{name}": [...]')
    return values


def _check_whole_numbers(where: str, name: str, values: Any) -> None:
    for place, value in enumerate(_listed(where, name, values)):
        _check_whole_number(where, f"{name}[{place}]", value, _INT32)


def _check_whole_number(where: str, name: str, value: Any, numbers: range) -> None:
    # A bool is an int to Python, and 1.0 equals 1, but neither is a whole number in JSON.
    if type(value) is not int or value not in numbers:
        bits = 32 if numbers is _INT32 else 64
        raise InvalidInputError(
            f"{where}: {name} is {shown(value)}, not an integer of {bits} bits; write such a number"
        )


def _number(where: str, name: str, value: Any) -> float:
    """The value as a floating-point number, which Arrow does not make of large integers itself."""
    # NaN is no JSON, but read by Python all the same.
    if type(value) not in (int, float) or (type(value) is float and isnan(value)):
        raise InvalidInputError(f"{where}: {name} is {shown(value)}, not a number; write one")
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidInputError(f"{where}: {name} is {shown(value)}: give a number of 64 bits") from error


def _check_text(where: str, name: str, value: Any) -> None:
    if type(value) is not str:
        raise InvalidInputError(f"{where}: {name} is {shown(value)}, not a string; write it in double quotes")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidInputError(f"{where}: {name} is {shown(value)}, half of a surrogate pair; write the character")
