"""The assignment that a snapshot saw, as a plan: what a new plan is compared with, and what a rollback goes back to.

A replica that is only being added does not count: it is not part of the assignment until its reassignment ends, and
would raise the replication factor without anyone noticing.

Example: the rows ``orders 0 0 2``, ``orders 0 1 1`` and ``orders 0 2 3 adding`` are the entry ``orders-0`` on [2, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import Lists, partition_keys
from rebalance_lib.plan.plan import Plan
from rebalance_lib.topology import Snapshot


def current_assignment(snapshot: Snapshot) -> Plan:
    """Every partition of the snapshot with its replicas in order, without those that are being added."""
    rows = snapshot.replicas.select(["topic", "partition", "position", "broker"])
    adding = snapshot.replicas["adding"]
    if pc.any(adding).as_py():
        rows = rows.filter(pc.invert(adding))
    rows = _in_order(rows)
    topics = rows["topic"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    partitions = rows["partition"].to_numpy()
    starts = np.flatnonzero(np.r_[True, (np.diff(topics) != 0) | (np.diff(partitions) != 0)][: rows.num_rows])
    lengths = np.diff(np.append(starts, rows.num_rows))
    first = rows.take(pa.array(starts))
    brokers = rows["broker"].to_numpy()
    return Plan.from_table(
        pa.table(
            {
                "topic": first["topic"],
                "partition": first["partition"],
                "replicas": Lists.from_lengths(lengths, brokers).to_arrow(),
            }
        )
    )


def _in_order(rows: pa.Table) -> pa.Table:
    """By topic, partition and position, which is how snapshots are written: sorting is for those that are not."""
    keys, position = partition_keys(rows)[0], rows["position"].to_numpy()
    if np.all((keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (position[1:] > position[:-1]))):
        return rows
    return rows.take(pa.array(np.lexsort((position, keys))))
