"""The assignment that a snapshot saw, as a plan: what a new plan is compared with, and what a rollback goes back to.

A replica that is only being added does not count: it is not part of the assignment until its reassignment ends, and
would raise the replication factor without anyone noticing.

Example: the rows ``orders 0 0 2``, ``orders 0 1 1`` and ``orders 0 2 3 adding`` are the entry ``orders-0`` on [2, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_lib.plan.columns import Lists, partition_keys
from rebalance_lib.plan.plan import Plan
from rebalance_lib.topology import Snapshot
from rebalance_lib.topology.texts import decode_texts, encode_texts


def current_assignment(snapshot: Snapshot) -> Plan:
    """Every partition of the snapshot with its replicas in order, without those that are being added."""
    rows = snapshot.replicas.select(["topic", "partition", "position", "broker"])
    adding = snapshot.replicas["adding"]
    if pc.any(adding).as_py():
        rows = rows.filter(pc.invert(adding))
    codes, topics = encode_texts(rows["topic"])
    partitions, brokers = rows["partition"].to_numpy(), rows["broker"].to_numpy()
    if (order := _order(rows)) is not None:
        codes, partitions, brokers = codes[order], partitions[order], brokers[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(codes) != 0) | (np.diff(partitions) != 0)][: rows.num_rows])
    lengths = np.diff(np.append(starts, rows.num_rows))
    return Plan.from_table(
        pa.table(
            {
                "topic": decode_texts(codes[starts], topics),
                "partition": pa.array(partitions[starts]),
                "replicas": Lists.from_lengths(lengths, brokers).to_arrow(),
            }
        )
    )


def _order(rows: pa.Table) -> NDArray[np.int64] | None:
    """How to sort by topic, partition and position; None if they are, as snapshots are written."""
    keys, position = partition_keys(rows)[0], rows["position"].to_numpy()
    if np.all((keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (position[1:] > position[:-1]))):
        return None
    return np.lexsort((position, keys))
