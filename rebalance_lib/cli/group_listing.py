"""Consumer groups in figures: one line per group, and one per member.

A figure is None where it is not known: nothing of a group that this user may not describe, no partitions while the
group is rebalancing, and no lag before anything is committed, or while a partition has no leader that tells its end.

Example: ``billing`` has three members for the two partitions of ``orders``, has read all 10 records of the first and 7
of the 10 of the second. It has 3 members, 1 of them idle, 2 partitions, at least 0 and at most 1 per member, and lag 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rebalance_lib.topology import Groups, TopicPartition
from rebalance_lib.topology.groups import UNKNOWN

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group: what it reads, how that is shared among its members, and how far behind it is."""

    group: str
    type: str
    state: str
    assignor: str | None
    members: int | None
    topics: int | None  # subscribed to, or with a committed offset
    partitions: int | None
    least: int | None  # partitions per member
    most: int | None
    idle: int | None  # members without a partition
    lag: int | None


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A member and the partitions that it has."""

    group: str
    member: str
    client_id: str
    host: str
    instance: str | None
    rack: str | None
    topics: list[str] | None
    partitions: list[str] | None


def group_lines(groups: Groups, ends: Mapping[TopicPartition, int]) -> list[GroupLine]:
    """One line per group, in order.

    Args:
        groups: The groups.
        ends: End offsets of the partitions for which offsets are committed, as far as they are known.
    """
    committed = {group: list(rows) for group, rows in _by_group(groups.offsets.to_pylist())}
    return [
        _group_line(list(rows), committed.get(group, []), ends) for group, rows in _by_group(groups.members.to_pylist())
    ]


def member_lines(groups: Groups) -> list[MemberLine]:
    """One line per member, in order."""
    return [
        MemberLine(
            **{name: row[name] for name in ("group", "member", "client_id", "host", "instance", "rack", "topics")},
            partitions=None if row["assignment"] is None else [str(partition) for partition in _assigned(row)],
        )
        for row in groups.members.to_pylist()
        if row["member"] is not None
    ]


def _by_group(rows: list[Row]) -> Iterator[tuple[str, Iterator[Row]]]:
    return groupby(rows, key=lambda row: str(row["group"]))


def _group_line(rows: list[Row], committed: list[Row], ends: Mapping[TopicPartition, int]) -> GroupLine:
    first = rows[0]
    known = first["state"] != UNKNOWN
    members = [row for row in rows if row["member"] is not None]
    topics = {topic for row in members for topic in row["topics"] or ()} | {row["topic"] for row in committed}
    stable = known and all(row["assignment"] is not None for row in members)
    counts = [len(_assigned(row)) for row in members] if stable else []
    return GroupLine(
        group=first["group"],
        type=first["type"],
        state=first["state"],
        assignor=first["assignor"],
        members=len(members) if known else None,
        topics=len(topics) if known else None,
        partitions=sum(counts) if stable else None,
        least=min(counts, default=None),
        most=max(counts, default=None),
        idle=counts.count(0) if stable else None,
        lag=_lag(committed, ends),
    )


def _assigned(row: Row) -> list[TopicPartition]:
    return [TopicPartition(entry["topic"], index) for entry in row["assignment"] for index in entry["partitions"]]


def _lag(committed: list[Row], ends: Mapping[TopicPartition, int]) -> int | None:
    read: dict[TopicPartition, int] = {
        TopicPartition(row["topic"], row["partition"]): row["committed"] for row in committed
    }
    if not read or not read.keys() <= ends.keys():
        return None
    return sum(max(0, ends[partition] - offset) for partition, offset in read.items())
