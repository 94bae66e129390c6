"""What people say about brokers, besides the cluster itself: how much each can take, and which of them form a set.

    capacities:
      default: {network_in: 1250000000, network_out: 1250000000, cpu: 16}
      racks:
        b: {network_out: 2500000000}
      brokers:
        7: {disk: 16000000000000}
    broker_sets:
      payments: {brokers: [1, 2, 3], topics: ["payments-*"]}
      logs: [4, 5, 6]

``disk`` is bytes, the networks are bytes per second, ``cpu`` is cores. Of each, what is said of the broker counts, else
what the cluster's JSON says of it, else what is said of its rack, else the default. What nobody says is not known. A
``disk`` counts instead of what the broker's log dirs say.

A set is a list of brokers, or an object that also has the names or patterns of its topics. A topic that none of them
matches is in the set that holds most of its replicas, see ``rebalance_lib.planner.broker_sets``.

Example: with the above, broker 7 in rack b has 16 TB of disk, 1.25 GB/s in, 2.5 GB/s out and 16 cores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology.naming import shown
from rebalance_lib.topology.snapshot import BROKERS, CAPACITY, Snapshot

Capacity = Mapping[str, float]
_RESOURCES = tuple(one.name for one in CAPACITY)
_MOST_ID, _MOST_BYTES = 2**31 - 1, 2**62


@dataclass(frozen=True, slots=True)
class Capacities:
    """Capacities by resource: those that all brokers have, those of racks, and those of brokers."""

    default: Capacity = field(default_factory=dict)
    racks: Mapping[str, Capacity] = field(default_factory=dict)
    brokers: Mapping[int, Capacity] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: object) -> Self:
        """Read the section of a file; raises InvalidInputError, naming the entry, for what it cannot be."""
        given = _section("capacities", document, ("default", "racks", "brokers"))
        racks = _object("capacities.racks", given.get("racks"), "an object with a name for each rack")
        brokers = _object("capacities.brokers", given.get("brokers"), "an object with an id for each broker")
        ids = {_id("capacities.brokers", id_): capacity for id_, capacity in brokers.items()}
        if len(ids) < len(brokers):
            raise InvalidInputError("capacities.brokers has the same id as a number and as text: keep one of the two")
        return cls(
            default=_capacity("capacities.default", given.get("default")),
            racks={str(rack): _capacity(f"capacities.racks.{rack}", one) for rack, one in racks.items()},
            brokers={id_: _capacity(f"capacities.brokers.{id_}", one) for id_, one in ids.items()},
        )

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with these capacities; raises InvalidInputError for a broker or rack that it does not have."""
        rows = snapshot.brokers.to_pylist()
        racks = {row["rack"] for row in rows if row["rack"] is not None}
        if unknown := [rack for rack in self.racks if rack not in racks]:
            known = f"it has {', '.join(sorted(racks))}" if racks else "its brokers have none"
            raise InvalidInputError(f"capacities.racks has {unknown[0]!r}: the cluster has no such rack, {known}")
        _refuse_unknown("capacities.brokers", self.brokers, rows)
        capacities = [self._of(row) for row in rows]
        return _with_column(snapshot, "capacity", capacities)

    def _of(self, row: Mapping[str, Any]) -> dict[str, float] | None:
        of_rack = self.racks.get(row["rack"], {}) if row["rack"] is not None else {}
        own = {name: value for name, value in (row["capacity"] or {}).items() if value is not None}
        return {**self.default, **of_rack, **own, **self.brokers.get(row["broker"], {})} or None


@dataclass(frozen=True, slots=True)
class BrokerSets:
    """Sets of brokers by name, none in two of them, and the names or patterns of their topics, where they are given."""

    brokers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: object) -> Self:
        """Read the section of a file; raises InvalidInputError, naming the entry, for what it cannot be."""
        sets: dict[str, tuple[int, ...]] = {}
        topics: dict[str, tuple[str, ...]] = {}
        member_of: dict[int, str] = {}
        for name, entry in _object("broker_sets", document, "an object with a name for each set").items():
            where = f"broker_sets.{name}"
            if not isinstance(name, str) or not name:
                raise InvalidInputError(f"broker_sets has the name {shown(name)}: give a set's name as text")
            ids = entry
            if isinstance(entry, Mapping):
                ids = _section(where, entry, ("brokers", "topics")).get("brokers")
                topics[name] = _patterns(f"{where}.topics", entry.get("topics"))
                where = f"{where}.brokers"
            if not isinstance(ids, list | tuple) or not ids:
                raise InvalidInputError(f"{where} is {shown(ids)}: give a list of broker ids")
            sets[name] = tuple(_id(where, id_) for id_ in ids)
            for id_ in sets[name]:
                if (other := member_of.setdefault(id_, name)) != name:
                    raise InvalidInputError(f"{where} has broker {id_}, which is in {other}: keep it in one of the two")
            if len(set(sets[name])) < len(ids):
                raise InvalidInputError(f"{where} is {shown(ids)}: list each broker once")
        return cls(sets, topics)

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with these sets.

        Raises InvalidInputError for a broker that it does not have, and for a topic that two sets name.
        """
        rows = snapshot.brokers.to_pylist()
        for name, ids in self.brokers.items():
            _refuse_unknown(f"broker_sets.{name}", ids, rows)
        set_of = {id_: name for name, ids in self.brokers.items() for id_ in ids}
        names = [set_of.get(row["broker"], row["broker_set"]) for row in rows]
        found = _with_column(snapshot, "broker_set", names)
        if self.topics or any(row["broker_set_topics"] for row in rows):
            # What a set's topics were counts as long as the broker stays in it.
            listed = [
                list(self.topics[name])
                if name in self.topics
                else (row["broker_set_topics"] if name == row["broker_set"] else None)
                for name, row in zip(names, rows, strict=True)
            ]
            found = _with_column(found, "broker_set_topics", listed)
            sets_by_topic(found.brokers, pc.unique(found.replicas["topic"]).to_pylist())
        return found


def sets_by_topic(brokers: pa.Table, topics: Iterable[str]) -> dict[str, str]:
    """The set of each topic that a pattern names; raises InvalidInputError if two sets name one."""
    listed = brokers.select(["broker_set", "broker_set_topics"]).to_pylist()
    patterns = {row["broker_set"]: row["broker_set_topics"] for row in listed if row["broker_set_topics"]}
    found: dict[str, str] = {}
    by: dict[str, str] = {}
    for topic in topics if patterns else ():
        for name, of_set in patterns.items():
            pattern = next((one for one in of_set if one == topic or fnmatchcase(topic, one)), None)
            if pattern is not None and found.setdefault(topic, name) != name:
                raise InvalidInputError(
                    f"topic {topic} is in two broker sets: {found[topic]} has it by {by[topic]!r}, {name} by "
                    f"{pattern!r}; change one of the two"
                )
            if pattern is not None:
                by[topic] = pattern
    return found


def _patterns(where: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or any(not isinstance(one, str) or not one for one in value):
        raise InvalidInputError(f"{where} is {shown(value)}: give a list of names or patterns, such as payments-*")
    return tuple(value)


def _with_column(snapshot: Snapshot, name: str, values: list[Any]) -> Snapshot:
    place = BROKERS.get_field_index(name)
    column = pa.array(values, BROKERS.field(name).type)
    return replace(snapshot, brokers=snapshot.brokers.set_column(place, BROKERS.field(name), column))


def _refuse_unknown(where: str, ids: Any, rows: list[dict[str, Any]]) -> None:
    known = {row["broker"] for row in rows}
    if unknown := [id_ for id_ in ids if id_ not in known]:
        raise InvalidInputError(f"{where} has {unknown[0]}: the cluster has no such broker; remove it, or correct it")


def _object(where: str, value: object, wanted: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{where} is {shown(value)}: give {wanted}")
    return value


def _section(where: str, value: object, keys: tuple[str, ...]) -> Mapping[str, Any]:
    given = _object(where, value, f"an object with {', '.join(keys[:-1])} or {keys[-1]}")
    if unknown := [key for key in given if key not in keys]:
        raise InvalidInputError(f"{where} has the key {shown(unknown[0])}: use some of {', '.join(keys)}")
    return given


def _id(where: str, value: object) -> int:
    """A broker's id; a key of a JSON object is text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if type(value) is not int or not 0 <= value <= _MOST_ID:
        raise InvalidInputError(f"{where} has {shown(value)}: give the id of a broker, an integer of 0 or more")
    return value


def _capacity(where: str, value: object) -> dict[str, float]:
    given = _section(where, value, _RESOURCES)
    for name, number in given.items():
        whole = name == "disk"
        wanted = "bytes as an integer above 0" if whole else "a number above 0"
        fits = type(number) is int or (type(number) is float and not whole)
        if not fits or not 0 < number < (_MOST_BYTES if whole else math.inf):
            raise InvalidInputError(f"{where}.{name} is {shown(number)}: give {wanted}, or leave it out")
    return {name: number if name == "disk" else float(number) for name, number in given.items()}
