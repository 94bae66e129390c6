"""A cluster at one moment, as two tables with one declared schema each.

``BROKERS`` has a row per registered broker, ``REPLICAS`` a row per replica, sorted by topic, partition and position in
the replica list; position 0 is the preferred leader. While a reassignment runs, Kafka lists the adding replicas among
the others: they are marked here, so that nobody takes them for a higher replication factor.

Offsets are those of the partition, so that all its replicas show the same two: ``start_offset`` that of the oldest
record on the leader's disk, ``end_offset`` that of the next record to come.

What a broker can take, ``capacity``, is null where nobody gave it; so is each of its parts. The space on its disks is
in ``log_dirs``; ``capacity.disk`` is only what a person or a cluster's JSON said. ``cordoned`` is null where the broker
did not say: before Kafka 4.3 nothing can be cordoned.

Example: partition 0 of ``orders`` on brokers 2 (leader) and 1, of 10 bytes each, with two records, is the two rows
``orders 0 0 2 leader in-sync 10 0..2`` and ``orders 0 1 1 - in-sync 10 0..2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology.broker import Broker

LOG_DIR = pa.struct(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("total_bytes", pa.int64()),
        pa.field("usable_bytes", pa.int64()),
        pa.field("cordoned", pa.bool_()),  # gets no new partitions (KIP-1066); null before Kafka 4.3
    ]
)
CAPACITY = pa.struct(
    [
        pa.field("disk", pa.int64()),  # bytes
        pa.field("network_in", pa.float64()),  # bytes per second
        pa.field("network_out", pa.float64()),
        pa.field("cpu", pa.float64()),  # cores
    ]
)
BROKERS = pa.schema(
    [
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("rack", pa.string()),
        pa.field("host", pa.string(), nullable=False),
        pa.field("port", pa.int32(), nullable=False),
        pa.field("alive", pa.bool_(), nullable=False),
        pa.field("log_dirs", pa.list_(LOG_DIR), nullable=False),
        pa.field("capacity", CAPACITY),  # as given by a person or a cluster's JSON
        pa.field("broker_set", pa.string()),  # its topics stay on brokers of the same set
        pa.field("cordoned", pa.bool_()),  # all its log dirs are
        pa.field("broker_set_topics", pa.list_(pa.string())),  # names and patterns of the topics of its set
    ]
)
REPLICAS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("position", pa.int16(), nullable=False),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("leader", pa.bool_(), nullable=False),
        pa.field("in_sync", pa.bool_(), nullable=False),
        pa.field("adding", pa.bool_(), nullable=False),
        pa.field("removing", pa.bool_(), nullable=False),
        pa.field("internal", pa.bool_(), nullable=False),
        pa.field("size_bytes", pa.int64()),  # null where the broker or the log dir did not answer
        pa.field("log_dir", pa.string()),
        pa.field("start_offset", pa.int64()),  # null where the leader did not tell, and in files of older versions
        pa.field("end_offset", pa.int64()),
        pa.field("min_insync_replicas", pa.int16()),  # the topic's; null where it was not told, or not asked for
    ]
)
LATER_COLUMNS = frozenset(  # not in files of older versions
    {"start_offset", "end_offset", "min_insync_replicas", "capacity", "broker_set", "broker_set_topics", "cordoned"}
)
_ADVICE = "it is no table of a snapshot, or a damaged one; take a new one with kafka-rebalance snapshot"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster's id, when it was looked at (ISO 8601, UTC), and its two tables."""

    cluster_id: str
    taken_at: str
    brokers: pa.Table
    replicas: pa.Table

    @classmethod
    def from_tables(cls, brokers: pa.Table, replicas: pa.Table) -> Self:
        """Read back what `tables` gave; what is missing or of another type is named as in the file of a snapshot."""
        metadata = brokers.schema.metadata or {}
        return cls(
            cluster_id=metadata.get(b"cluster_id", b"").decode(),
            taken_at=metadata.get(b"taken_at", b"").decode(),
            brokers=_in_schema(brokers, BROKERS, "brokers.parquet"),
            replicas=replica_rows(replicas),
        )

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both tables, each carrying the cluster id and the time, so that a file alone tells where it is from."""
        metadata = {"cluster_id": self.cluster_id, "taken_at": self.taken_at}
        return self.brokers.replace_schema_metadata(metadata), self.replicas.replace_schema_metadata(metadata)

    def alive_brokers(self) -> list[Broker]:
        """The brokers that were alive, by id."""
        alive = self.brokers.filter(self.brokers["alive"]).sort_by("broker")
        ids, racks = alive["broker"].to_pylist(), alive["rack"].to_pylist()
        return [Broker(id_, rack) for id_, rack in zip(ids, racks, strict=True)]

    def min_insync_replicas(self) -> dict[str, int] | None:
        """``min.insync.replicas`` by topic; None where no topic's is known."""
        known = self.replicas.filter(pc.is_valid(self.replicas["min_insync_replicas"]))
        if not known.num_rows:
            return None
        least = known.group_by("topic").aggregate([("min_insync_replicas", "min")])
        return dict(zip(least["topic"].to_pylist(), least["min_insync_replicas_min"].to_pylist(), strict=True))

    def load_per_broker(self) -> pa.Table:
        """Per registered broker: bytes, replicas and leaders, sorted by id; empty brokers have zeros."""
        held = self.replicas.group_by("broker").aggregate([("size_bytes", "sum"), ("broker", "count")])
        led = self.replicas.filter(self.replicas["leader"]).group_by("broker").aggregate([("leader", "count")])
        table = self.brokers.select(["broker", "rack"]).join(held, "broker").join(led, "broker").sort_by("broker")
        columns = {"bytes": "size_bytes_sum", "replicas": "broker_count", "leaders": "leader_count"}
        return pa.table(
            {
                "broker": table["broker"],
                "rack": table["rack"],
                **{name: pc.fill_null(table[column], 0) for name, column in columns.items()},
            }
        )


def replica_rows(table: pa.Table) -> pa.Table:
    """Rows of ``replicas.parquet`` in the columns of `REPLICAS`; what is missing or of another type is named."""
    return _in_schema(table, REPLICAS, "replicas.parquet")


def _in_schema(table: pa.Table, schema: pa.Schema, file: str) -> pa.Table:
    """The columns of a schema, and nulls for what older versions did not write."""
    columns = []
    for field in schema:
        name = field.name
        if name in LATER_COLUMNS and name not in table.column_names:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            continue
        if name not in table.column_names:
            raise InvalidInputError(f"{file} has no column {name}: {_ADVICE}")
        try:
            column = table[name].cast(field.type)
        except pa.ArrowException as error:
            found = table[name].type
            raise InvalidInputError(
                f"{file}: column {name} is {found}, and cannot be read as {field.type} ({error}): {_ADVICE}"
            ) from error
        if column.null_count and not field.nullable:
            raise InvalidInputError(f"{file}: column {name} has {column.null_count} rows without a value: {_ADVICE}")
        columns.append(column)
    return pa.table(columns, schema=schema)
