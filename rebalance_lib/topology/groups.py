"""The consumer groups of a cluster at one moment, as two Arrow tables with one declared schema each.

``members`` has one row per member of a group: what it subscribes to and which partitions it has. A group without
members has one row with no member, so that no group is missing. ``offsets`` has one row per partition for which a group
has committed an offset: less than the partition's end offset by the group's lag.

Example: group ``billing`` with the range assignor and one member that has both partitions of ``orders``, and has read
all 10 records of the first, is the row ``billing classic Stable range m-1 ... [orders] [(orders, [0, 1])]`` and the row
``billing orders 0 10``.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

CLASSIC, CONSUMER = "classic", "consumer"  # types of group
UNKNOWN = "Unknown"  # the state of a group that could not be described, mostly because this user may not

GROUP_MEMBERS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),  # classic: its clients assign; consumer: its broker does
        pa.field("state", pa.string(), nullable=False),  # as Kafka names it, or `UNKNOWN`
        pa.field("assignor", pa.string()),  # null where no partitions are assigned
        pa.field("member", pa.string()),  # null in the one row of a group without members
        pa.field("client_id", pa.string()),
        pa.field("host", pa.string()),
        pa.field("instance", pa.string()),  # group.instance.id of a static member
        pa.field("rack", pa.string()),  # client.rack
        pa.field("topics", pa.list_(pa.field("item", pa.string()))),  # what the member subscribes to
        pa.field(
            "assignment",
            pa.list_(pa.field("item", pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))),
        ),
    ]
)

GROUP_OFFSETS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("committed", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Groups:
    """The consumer groups of one cluster at one moment."""

    members: pa.Table
    offsets: pa.Table

    @classmethod
    def from_tables(cls, members: pa.Table, offsets: pa.Table) -> Groups:
        """The inverse of writing both tables."""
        return cls(members.cast(GROUP_MEMBERS), offsets.cast(GROUP_OFFSETS))
