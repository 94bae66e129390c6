"""A plan in a few figures, as data: what ``summary.json`` holds and every other text is made from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_lib.plan import Plan, PlanDiff, current_assignment, diff
from rebalance_lib.topology import Snapshot

PARTITION = ["topic", "partition"]
FIGURES = ("bytes", "replicas", "leaders")
LARGEST_MOVES = 10


def summarize(plan: Plan, snapshot: Snapshot) -> dict[str, Any]:
    """What the plan moves, and what each broker holds before and after it."""
    before = current_assignment(snapshot)
    changes = diff(before, plan, replica_sizes(snapshot))
    return {
        "version": 1,
        "cluster_id": snapshot.cluster_id,
        "snapshot_taken_at": snapshot.taken_at,
        "digest": plan.digest,
        "partitions": len(before),
        "partitions_changed": changes.partitions_changed,
        "replicas_moved": changes.replicas_moved,
        "leaders_moved": changes.leaders_moved,
        "order_only": changes.order_only,
        "bytes_moved": changes.bytes_moved,
        "bytes_total": pc.sum(snapshot.replicas["size_bytes"]).as_py() or 0,
        "dead_brokers": snapshot.brokers.filter(pc.invert(snapshot.brokers["alive"]))["broker"].to_pylist(),
        "replicas_of_unknown_size": snapshot.replicas["size_bytes"].null_count,
        "brokers": brokers_before_after(changes, snapshot),
        "largest_moves": largest_moves(changes),
    }


def replica_sizes(snapshot: Snapshot) -> pa.Table:
    """The size of each replica, where it is known and 0 where not, in the columns that `diff` takes."""
    sizes = snapshot.replicas.select(["topic", "partition", "broker", "size_bytes"])
    return sizes.set_column(3, "size_bytes", pc.fill_null(sizes["size_bytes"], 0))


def brokers_before_after(changes: PlanDiff, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Per broker: bytes, replicas and leaders, as they are and as the plan leaves them."""
    load = snapshot.load_per_broker()
    ids = load["broker"].to_numpy()
    table = changes.changes
    present = snapshot.replicas.join(table.select(PARTITION), PARTITION, join_type="left semi")
    leaving = present.join(_per_replica(table, "removing"), [*PARTITION, "broker"], join_type="left semi")
    coming = _per_replica(table, "adding")
    copied = pc.divide(coming["bytes_moved"], coming["copies"])
    led = present.filter(present["leader"])
    after = {
        "bytes": load["bytes"].to_numpy()
        + _tally(ids, coming["broker"], copied)
        - _tally(ids, leaving["broker"], pc.fill_null(leaving["size_bytes"], 0)),
        "replicas": load["replicas"].to_numpy() + _tally(ids, coming["broker"]) - _tally(ids, leaving["broker"]),
        "leaders": load["leaders"].to_numpy()
        + _tally(ids, pc.list_element(table["after"], 0))
        - _tally(ids, led["broker"]),
    }
    return [
        {
            "broker": row["broker"],
            "rack": row["rack"],
            "before": {key: row[key] for key in FIGURES},
            "after": {key: int(after[key][i]) for key in FIGURES},
        }
        for i, row in enumerate(load.to_pylist())
    ]


def _per_replica(changes: pa.Table, column: str) -> pa.Table:
    """A row for each broker in a list column, with its partition and how many copies that partition makes."""
    lists = changes[column].combine_chunks()
    rows = changes.select([*PARTITION, "bytes_moved"]).take(pc.list_parent_indices(lists))
    copies = pc.list_value_length(lists).take(pc.list_parent_indices(lists))
    return rows.append_column("broker", pc.list_flatten(lists)).append_column("copies", copies)


def _tally(ids: NDArray[np.int32], brokers: pa.ChunkedArray, weights: Any = None) -> NDArray[np.int64]:
    where = np.searchsorted(ids, brokers.to_numpy())
    counted = np.bincount(where, None if weights is None else weights.to_numpy(), minlength=len(ids))
    return counted.astype(np.int64)


def largest_moves(changes: PlanDiff) -> list[dict[str, Any]]:
    """The partitions that copy the most bytes, the largest first."""
    order = [("bytes_moved", "descending"), ("topic", "ascending"), ("partition", "ascending")]
    rows = changes.changes.take(pc.select_k_unstable(changes.changes, LARGEST_MOVES, order)).to_pylist()
    return [
        {
            "partition": f"{row['topic']}-{row['partition']}",
            "from": row["before"],
            "to": row["after"],
            "bytes": row["bytes_moved"],
        }
        for row in rows
    ]
