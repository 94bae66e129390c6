"""A plan's work as tables: each replica that is copied, and each broker before and after.

A replica that comes to a broker is set beside one that the same partition gives up, in the order of both lists. That
one is not where the data comes from: the leader sends it.

Example: ``foo-0`` of 10 bytes goes from ``[1, 2]`` to ``[3, 2]``. That is one row: from broker 1 to broker 3, 10 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_lib.plan.columns import Lists
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.outcome import Outcome

MOVES = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("from_broker", pa.int32()),  # null where the partition gets more replicas than it gives up
        pa.field("to_broker", pa.int32(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("from_log_dir", pa.string()),
        pa.field("to_log_dir", pa.string()),
    ]
)
FIGURES = ("bytes", "replicas", "leaders")


def moves_table(outcome: Outcome) -> pa.Table:
    """A row for each replica copied to another broker or log dir, by topic, partition and broker."""
    model, after = outcome.model, outcome.placement
    source, slot, comes = _copies(outcome)
    partition = outcome.partition_after[slot]
    ids, topic, number = model.broker_ids, after.model.topic[partition], after.model.partition[partition]
    rank = np.argsort(np.argsort(np.array(model.topics, np.object_), kind="stable"), kind="stable")
    order = np.lexsort((after.layout.broker[slot], number, rank[topic]))
    source, slot, comes, partition = source[order], slot[order], comes[order], partition[order]
    known = np.append(model.broker, np.int32(0)), np.append(model.log_dir, np.int32(-1))  # -1 finds the last
    columns = [
        decode_texts(topic[order], pa.array(model.topics, pa.string())),
        pa.array(number[order], pa.int32()),
        pa.array(ids[known[0][source]], pa.int32(), mask=source < 0),
        pa.array(ids[after.layout.broker[slot]], pa.int32()),
        pa.array(np.where(comes, after.model.size[partition], outcome.bytes_after[slot]), pa.int64()),
        _paths(outcome, known[1][source]),
        _paths(outcome, after.layout.log_dir[slot]),
    ]
    return pa.table(columns, schema=MOVES)


def _copies(outcome: Outcome) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """For each copy: the slot before that it stands for, or -1; the slot after; whether its broker is another one."""
    model, after, changed = outcome.model, outcome.placement, outcome.changed
    known = np.append(model.offsets, np.repeat(model.offsets[-1:], after.model.partitions - model.partitions))
    old_slots, new_slots = _slots(known, changed), _slots(after.layout.offsets, changed)
    old = Lists(old_slots.offsets, model.broker[old_slots.values])
    new = Lists(new_slots.offsets, after.layout.broker[new_slots.values])
    place = new.position_in(old)
    comes = place < 0
    source = np.full(len(place), -1, np.int64)
    source[comes] = _given_up(old, new, comes, old_slots)
    source[~comes] = old_slots.values[place[~comes]]
    within = np.flatnonzero(~comes)
    from_dir, to_dir = model.log_dir[source[within]], after.layout.log_dir[new_slots.values[within]]
    copied = comes.copy()
    copied[within] = (from_dir >= 0) & (to_dir >= 0) & (from_dir != to_dir)
    return source[copied], new_slots.values[copied].astype(np.int64), comes[copied]


def _slots(offsets: NDArray[np.int64], partitions: NDArray[np.int64]) -> Lists:
    return Lists(offsets, np.arange(offsets[-1], dtype=np.int32)).take(partitions)


def _given_up(old: Lists, new: Lists, comes: NDArray[np.bool_], old_slots: Lists) -> NDArray[np.int64]:
    """For each replica that comes, the slot of one that goes, the first for the first; -1 where none is left."""
    goes = ~old.contained_in(new)
    leaving = old.count_by_row(goes)
    coming = new.count_by_row(comes)
    row = new.rows[comes]
    nth = np.arange(len(row)) - (np.cumsum(coming) - coming)[row]
    slots = np.append(old_slots.values[goes], -1)
    place = (np.cumsum(leaving) - leaving)[row] + nth
    return slots[np.where(nth < leaving[row], place, -1)]


def _paths(outcome: Outcome, log_dirs: NDArray[Any]) -> Any:
    paths = pa.array(outcome.model.log_dirs.paths, pa.string())
    return paths.take(pa.array(log_dirs, pa.int32(), mask=log_dirs < 0))


def brokers_table(outcome: Outcome) -> pa.Table:
    """A row for each broker: bytes, replicas and leaders, as they are and as the plan leaves them."""
    model = outcome.model
    racks = dict(zip(*(model.snapshot.brokers[name].to_pylist() for name in ("broker", "rack")), strict=True))
    loads = outcome.loads()
    columns: dict[str, Any] = {
        "broker": pa.array(model.broker_ids, pa.int32()),
        "rack": pa.array([racks.get(broker) for broker in model.broker_ids.tolist()], pa.string()),
        "alive": pa.array(model.alive),
    }
    for name in FIGURES:
        for when, values in zip(("before", "after"), loads[name], strict=True):
            columns[f"{name}_{when}"] = pa.array(values, pa.int64())
    return pa.table(columns)
