"""A plan: for each partition that it names, the replicas that the partition shall have, in order.

A plan is one Arrow table with one schema. It is checked and put in order when it is made, so there is no
plan in memory that Kafka would refuse to read: entries are sorted by topic and partition number, each
partition is there once, replicas are distinct brokers, and the first replica is the preferred leader.
``log_dirs`` is null where Kafka may choose (all of them ``any``, or none given), so that two plans are
equal exactly if Kafka treats them alike. A whole cluster's assignment has the same shape, and is a plan
too.

Example: ``Plan.from_assignment({TopicPartition("foo", 1): [2, 3], TopicPartition("foo", 0): [1, 2]})`` has
two entries, ``foo-0`` on 1 and 2 first, then ``foo-1`` on 2 and 3.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.plan.columns import Lists, few_chunks, list_lengths, one_chunk, partition_keys
from rebalance_lib.plan.digest import digest_of
from rebalance_lib.plan.faults import ANY_LOG_DIR, first_fault
from rebalance_lib.topology import TopicPartition
from rebalance_lib.topology.texts import decode_texts, encode_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_FIELDS: list[pa.Field[Any]] = [
    pa.field("topic", pa.string(), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("replicas", pa.list_(pa.int32()), nullable=False),
    pa.field("log_dirs", pa.list_(pa.string())),
]
PLAN_SCHEMA = pa.schema(_FIELDS)

_ROWS_AT_A_TIME = 1 << 16


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """The target of one partition; log_dirs is None where Kafka may choose all of them."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the entry is about."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class Plan:
    """Target replicas by partition, in order; raises PlanFormatError for what Kafka would refuse."""

    entries: pa.Table

    def __post_init__(self) -> None:
        entries = in_plan_schema(self.entries)
        fault = first_fault(entries)
        if fault is not None:
            raise PlanFormatError(str(fault))
        object.__setattr__(self, "entries", _sorted(_normalised(entries)))

    @classmethod
    def from_table(cls, table: pa.Table) -> Plan:
        """A plan from columns named as in the schema; without log_dirs, Kafka may choose all of them."""
        return cls(table)

    @classmethod
    def from_assignment(cls, assignment: Mapping[TopicPartition, Sequence[int]]) -> Plan:
        """A plan from the brokers of each partition, preferred leader first."""
        try:
            lengths = np.fromiter(map(len, assignment.values()), np.int64, len(assignment))
            brokers = [broker for replicas in assignment.values() for broker in replicas]
            columns = {
                "topic": pa.array([topic for topic, _ in assignment], pa.string()),
                "partition": pa.array([partition for _, partition in assignment], pa.int32()),
                "replicas": Lists.from_lengths(lengths, pa.array(brokers, pa.int32()).to_numpy()).to_arrow(),
            }
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            message = f"the assignment is not one of brokers to partitions: {error}; give ids as numbers of 32 bits"
            raise PlanFormatError(message) from error
        return cls(pa.table(columns))

    @classmethod
    def from_entries(cls, entries: Iterable[PlanEntry]) -> Plan:
        """A plan from entries in any order, with their log dirs."""
        listed = list(entries)
        columns = {
            "topic": pa.array([entry.topic for entry in listed], pa.string()),
            "partition": pa.array([entry.partition for entry in listed], pa.int32()),
            "replicas": pa.array([entry.replicas for entry in listed], pa.list_(pa.int32())),
            "log_dirs": pa.array([entry.log_dirs for entry in listed], pa.list_(pa.string())),
        }
        return cls(pa.table(columns))

    @cached_property
    def digest(self) -> str:
        """The content digest, ``sha256:...``: the same for all files that Kafka reads as this plan."""
        return digest_of(self.entries)

    def partition(self, topic_partition: TopicPartition) -> PlanEntry | None:
        """The entry of one partition, or None if the plan does not name it."""
        topics, partitions = self.entries["topic"], self.entries["partition"]

        def key(row: int) -> tuple[Any, Any]:
            return topics[row].as_py(), partitions[row].as_py()

        row = bisect.bisect_left(range(len(self)), tuple(topic_partition), key=key)
        if row == len(self) or key(row) != tuple(topic_partition):
            return None
        return next(_rows(self.entries.slice(row, 1)))

    def as_dict(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of each partition, in the order of partitions."""
        return {entry.topic_partition: entry.replicas for entry in self}

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    def __iter__(self) -> Iterator[PlanEntry]:
        for start in range(0, len(self), _ROWS_AT_A_TIME):
            yield from _rows(self.entries.slice(start, _ROWS_AT_A_TIME))

    def __hash__(self) -> int:
        return hash(self.digest)


def _rows(entries: pa.Table) -> Iterator[PlanEntry]:
    columns = (entries[name].to_pylist() for name in PLAN_SCHEMA.names)
    for topic, partition, replicas, log_dirs in zip(*columns, strict=True):
        yield PlanEntry(topic, partition, tuple(replicas), None if log_dirs is None else tuple(log_dirs))


def in_plan_schema(table: pa.Table) -> pa.Table:
    """The columns of the schema in its types, still nullable: a null is reported with its entry."""
    columns = []
    for field in PLAN_SCHEMA:
        if field.name in table.column_names:
            try:
                columns.append(few_chunks(table[field.name].cast(field.type)))
            except pa.ArrowException as error:
                message = f"column {field.name} of a plan is {field.type}, this is not: {error}; convert it"
                raise PlanFormatError(message) from error
        elif field.nullable:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            message = f"a plan needs the column {field.name}, this table has {table.column_names}; add it"
            raise PlanFormatError(message)
    return pa.table(columns, names=PLAN_SCHEMA.names)


def _normalised(entries: pa.Table) -> pa.Table:
    """Null for log dirs that leave the choice to Kafka."""
    log_dirs = one_chunk(entries["log_dirs"])
    if log_dirs.null_count < len(log_dirs):
        named = pc.not_equal(log_dirs.flatten(), pa.scalar(ANY_LOG_DIR)).to_numpy(zero_copy_only=False)
        lengths = list_lengths(log_dirs)
        named_of_row = Lists.from_lengths(lengths, np.empty(0, np.int32)).count_by_row(named)
        log_dirs = pc.if_else(pa.array(named_of_row > 0), log_dirs, pa.scalar(None, log_dirs.type))
    return pa.table([entries["topic"], entries["partition"], entries["replicas"], log_dirs], schema=PLAN_SCHEMA)


def _sorted(entries: pa.Table) -> pa.Table:
    keys = partition_keys(entries)[0]
    if np.all(keys[1:] > keys[:-1]):
        return entries
    order = np.argsort(keys, kind="stable")
    codes, texts = encode_texts(entries["topic"])
    others = entries.drop_columns("topic").take(order).combine_chunks()
    return others.add_column(0, PLAN_SCHEMA.field("topic"), decode_texts(codes[order], texts))
