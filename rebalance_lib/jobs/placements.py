"""Placements as tables, from the task that worked one out to the one that puts a choice together.

Only partitions that differ from the snapshot have a row: where they are in the model, and the brokers, bytes and log
dirs of their replicas, as the model numbers them. Partitions that are to be added follow behind the model's last.

Example: of brokers 10, 20 and 30, the first two hold ``foo-0``. With ``foo-0`` on [10, 30], a placement has one
row: partition 0, topic 0, number 0, leader 0, brokers [0, 2].
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_lib.plan.columns import Lists
from rebalance_lib.planner.workspace import Layout, Placement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner import ClusterModel

_KEPT = b"kept"


def layout_table(layout: Layout) -> pa.Table:
    """All slots of a layout."""
    return pa.table({"broker": layout.broker, "bytes": layout.bytes, "log_dir": layout.log_dir})


def read_layout(offsets: NDArray[np.int64], table: pa.Table) -> Layout:
    """What `layout_table` gave."""
    return Layout(offsets, *(table[name].to_numpy() for name in ("broker", "bytes", "log_dir")))


def placement_table(model: ClusterModel, placement: Placement) -> pa.Table:
    """The partitions whose replicas differ from the model's, and new ones."""
    after, layout = placement.model, placement.layout
    rows = _different(model, placement)
    lists = Lists(layout.offsets, np.arange(layout.offsets[-1], dtype=np.int32)).take(rows)
    offsets, slots = pa.array(lists.offsets, pa.int32()), lists.values
    return pa.table(
        {
            "partition": rows,
            "topic": after.topic[rows],
            "number": after.partition[rows],
            "leader": placement.leader[rows],
            "brokers": pa.ListArray.from_arrays(offsets, pa.array(layout.broker[slots])),
            "bytes": pa.ListArray.from_arrays(offsets, pa.array(layout.bytes[slots])),
            "log_dirs": pa.ListArray.from_arrays(offsets, pa.array(layout.log_dir[slots])),
        },
        metadata={_KEPT: str(placement.kept)},
    )


def read_placement(model: ClusterModel, table: pa.Table) -> Placement:
    """What `placement_table` gave, for the same model."""
    rows = table["partition"].to_numpy()
    added = int(np.count_nonzero(rows >= model.partitions))
    lengths = np.append(model.replication_factor, np.zeros(added, np.int64))
    listed = {name: table[name].combine_chunks() for name in ("brokers", "bytes", "log_dirs")}
    lengths[rows] = np.diff(listed["brokers"].offsets.to_numpy())
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    given = np.zeros(len(lengths), np.bool_)
    given[rows] = True
    of_table = np.repeat(given, lengths)
    kept = ~given[: model.partitions][model.slot_partition]

    def slots(column: str, known: NDArray[Any]) -> NDArray[Any]:
        values = np.empty(offsets[-1], known.dtype)
        values[~of_table] = known[kept]
        values[of_table] = listed[column].flatten().to_numpy()
        return values

    layout = Layout(
        offsets, slots("brokers", model.broker), slots("bytes", model.bytes), slots("log_dirs", model.log_dir)
    )
    leader = np.append(model.leader, np.full(added, -1, np.int32))
    leader[rows] = table["leader"].to_numpy()
    return Placement(_extended(model, table, added), layout, leader, int(table.schema.metadata[_KEPT]))


def _different(model: ClusterModel, placement: Placement) -> NDArray[np.int64]:
    """Partitions with any difference in a slot, be it only bytes, and all new ones."""
    layout, known = placement.layout, model.partitions
    lengths = np.diff(layout.offsets)
    differs = np.ones(len(lengths), np.bool_)
    differs[:known] = (lengths[:known] != model.replication_factor) | (placement.leader[:known] != model.leader)
    same = np.flatnonzero(~differs)
    before = Lists(model.offsets, np.arange(model.offsets[-1], dtype=np.int32)).take(same)
    after = Lists(layout.offsets, np.arange(layout.offsets[-1], dtype=np.int32)).take(same)
    other = np.zeros(len(before.values), np.bool_)
    for name in ("broker", "bytes", "log_dir"):
        other |= getattr(model, name)[before.values] != getattr(layout, name)[after.values]
    differs[same] = before.count_by_row(other) > 0
    return np.flatnonzero(differs)


def _extended(model: ClusterModel, table: pa.Table, added: int) -> ClusterModel:
    """The model with the partitions that are to be added, of which nothing is known yet but their names."""
    if not added:
        return model
    new = table.slice(table.num_rows - added)
    return replace(
        model,
        topic=np.append(model.topic, new["topic"].to_numpy()),
        partition=np.append(model.partition, new["number"].to_numpy()),
        size=np.append(model.size, np.zeros(added, np.int64)),
        moving=np.append(model.moving, np.zeros(added, np.bool_)),
        write_rate=None if model.write_rate is None else np.append(model.write_rate, np.zeros(added)),
        read_rate=None if model.read_rate is None else np.append(model.read_rate, np.zeros(added)),
    )
